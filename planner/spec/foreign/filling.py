"""`$NAME` and `${NAME}` in a value, filled in from a task's own variables.

Decides what is filled in and what stays unknown: a variable whose value is given at launch leaves the value unknown, never empty.
"""

from __future__ import annotations

import re
from typing import Final

_USE: Final = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))", re.ASCII)


def filled(text: str, known: dict[str, str | None]) -> tuple[str, str | None]:
    """(the text with what is known filled in, the first variable that is not known or None)."""
    unknown: list[str] = []

    def value(found: re.Match[str]) -> str:
        name = found[1] or found[2]
        text = known.get(name)
        if text is None:
            unknown.append(name)
            return found[0]
        return text

    made = _USE.sub(value, text)
    return made, unknown[0] if unknown else None
