"""A schema that admits no field it does not name: published ones are open for what a later minor version adds, and a test must see what they forgot."""

from __future__ import annotations

from typing import Any


def closed(schema: Any) -> Any:
    """A copy in which every object with named fields has these and no others."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: closed(one) for name, one in schema.items()}
    if made.get("additionalProperties") is True and "properties" in made:
        made["additionalProperties"] = False
    return made
