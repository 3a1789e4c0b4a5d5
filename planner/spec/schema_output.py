"""The words of the schemas of what skyplan writes: plans, diffs, findings, listings.

Objects are open: within a major version fields are only ever added, so who reads them must pass over what it does not know.  What is named is
always there unless it is said to be optional.
"""

from __future__ import annotations

from typing import Any, Final

from planner.spec.schema_words import Schema

USD_PATTERN: Final = r"^-?[0-9]+\.[0-9]{4}$"


def written(description: str, optional: tuple[str, ...] = (), /, **properties: Schema) -> Schema:
    """An object: all of `properties` are there, less the `optional` ones, and others may be."""
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": sorted(set(properties) - set(optional)),
        "additionalProperties": True,
    }


def word(description: str, pattern: str = "") -> Schema:
    """A text, perhaps an empty one."""
    return {"type": "string", "description": description} | ({"pattern": pattern} if pattern else {})


def one_of(description: str, *values: str) -> Schema:
    """One of these words."""
    return {"enum": list(values), "description": description}


def flag(description: str) -> Schema:
    """True or false."""
    return {"type": "boolean", "description": description}


def count(description: str, least: int = 0) -> Schema:
    """A whole number."""
    return {"type": "integer", "minimum": least, "description": description}


def number(description: str) -> Schema:
    """A number of JSON, not below 0."""
    return {"type": "number", "minimum": 0, "description": description}


def decimal(description: str) -> Schema:
    """An amount as text with four places, so that no reader rounds it."""
    return {"type": "string", "pattern": USD_PATTERN, "description": description}


def items(description: str, item: Schema, **more: Any) -> Schema:
    """A list."""
    return {"type": "array", "description": description, "items": item, **more}


def words(description: str) -> Schema:
    """A list of texts."""
    return items(description, {"type": "string"})


def mapping(description: str, value: Schema) -> Schema:
    """An object whose names are data."""
    return {"type": "object", "description": description, "additionalProperties": value}


def or_null(schema: Schema) -> Schema:
    """It, or null where it is not known or does not apply."""
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    return {"description": schema.get("description", ""), "anyOf": [schema, {"type": "null"}]}


def ref(name: str, description: str) -> Schema:
    """A definition of the same schema."""
    return {"$ref": f"#/$defs/{name}", "description": description}


def version(major: int = 1) -> Schema:
    """`format_version`, its major number pinned."""
    return {
        "type": "string",
        "pattern": rf"^{major}\.[0-9]+$",
        "description": f"Fields are only ever added within {major}.x: pass over what you do not know, refuse another major number.",
    }


def digest(description: str) -> Schema:
    """A SHA-256 of canonical JSON, or of bytes."""
    return word(description, "^sha256:[0-9a-f]{64}$")


def diagnostics(description: str) -> Schema:
    """Problems, as every command tells them."""
    return items(
        description,
        written(
            "A problem.",
            code=word("What kind; `skyplan explain CODE` says more.", "^SKY-[A-Z]+-[0-9]{3}$"),
            severity=one_of("How bad.", "error", "warning"),
            summary=word("The problem in a sentence, with its numbers."),
            hint=word("What to do."),
            file=or_null(word("The file, where there is one.")),
            line=or_null(count("The line, from 1.", 1)),
            column=or_null(count("The column, from 1.", 1)),
        ),
    )


def caveats(description: str) -> Schema:
    """What a reader of a placement should know."""
    return items(
        description,
        written("A caveat.", code=word("What kind.", "^SKY-[A-Z]+-[0-9]{3}$"), text=word("In a sentence.")),
    )
