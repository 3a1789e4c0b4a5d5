"""Names and tags as Azure takes them.  Pure."""

from __future__ import annotations

import hashlib
import re

from modules.text import fit, literal
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError

#: Azure Resource Manager's limits on tags (Microsoft Learn, tag-resources, 2024-06)
MOST_TAGS = 50
LONGEST_KEY = 512
LONGEST_VALUE = 256
_ILLEGAL = re.compile(r"[<>%&\\?/]")
_RESERVED = ("azure", "microsoft", "windows")


def resource_name(project: str, *parts: str, limit: int) -> str:
    """`skyplan-PROJECT-…`, shortened to the limit; letters, digits and dashes, as every kind of resource takes them."""
    text = "-".join(("skyplan", project, *parts))
    plain = re.sub(r"[^A-Za-z0-9-]", "-", text)
    return fit(plain if plain == text else f"{plain}-{_digest(text)}", limit)


def azure_tags(tags: tuple[tuple[str, str], ...], *more: tuple[str, str]) -> dict[str, str]:
    """Tags as Terraform's map; what does not fit is shortened and ends in 8 hex digits of the whole.  `more` are Terraform expressions.

    Azure compares keys without case; the first of two equal keys wins: skyplan's own stand first.  Raises InputError for more than 50.
    """
    found: dict[str, str] = {}
    seen: set[str] = {key.lower() for key, _ in more}
    for key, value in tags:
        name = _key(key)
        if name.lower() not in seen:
            seen.add(name.lower())
            found[literal(name)] = literal(fit(value, LONGEST_VALUE))
    found.update(more)
    if len(found) > MOST_TAGS:
        summary = f"{len(found)} tags, skyplan's own among them; Azure takes {MOST_TAGS}"
        raise InputError([Diagnostic(code="SKY-SPEC-105", summary=summary, hint="remove some of `tags`")])
    return found


def _key(text: str) -> str:
    plain = _ILLEGAL.sub("-", text)
    if plain.lower().startswith(_RESERVED):
        plain = f"x-{plain}"
    return fit(plain if plain == text else f"{plain}-{_digest(text)}", LONGEST_KEY)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
