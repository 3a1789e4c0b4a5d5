"""Text that goes into Terraform: escaping, and names that fit a cloud's limits.  Pure."""

from __future__ import annotations

import hashlib


def literal(text: str) -> str:
    """The text as Terraform will read it back: `${` and `%{` in a user's words are words, not templates."""
    return text.replace("${", "$${").replace("%{", "%%{")


def fit(name: str, limit: int) -> str:
    """The name, or, where it is longer than `limit`, its beginning and 8 hex digits of the whole."""
    if len(name) <= limit:
        return name
    return f"{name[: limit - 9]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def literal_tags(tags: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Tags as Terraform's map.  The first of two equal keys wins: skyplan's own tags stand first."""
    found: dict[str, str] = {}
    for key, value in tags:
        found.setdefault(literal(key), literal(value))
    return found
