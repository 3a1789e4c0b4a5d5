"""The canonical text of what is set in a value, each shared part of it written once.

Decides nothing: `SetText().text(v)` is `canonical(set_only(v))`, byte for byte.  A thousand jobs with twenty ranked places each are digested part by part, and most
parts (the job, its policies, a region's network) are the same object in many of them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from json.encoder import encode_basestring
from math import isfinite
from typing import Any, Final, cast

#: how `planner.model.digest` says "not set": None, "", [], {}, False and the numbers that equal it
_UNSET: Final = frozenset({"null", '""', "[]", "{}", "false", "0", "0.0", "-0.0"})


class SetText:
    """Remembers the text of parts for as long as it lives: use one for values that share parts."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        # the parts are kept with their texts, for an id is another value's once its own is gone
        self._known: dict[int, tuple[object, str]] = {}

    def text(self, value: Any) -> str:
        """Raises ValueError on NaN and infinities."""
        if isinstance(value, str):
            return encode_basestring(value)
        if value is None or isinstance(value, int | float):
            return _number(value)
        known = self._known.get(id(value))
        if known is None:
            known = self._known[id(value)] = (value, self._made(value))
        return known[1]

    def _made(self, value: Any) -> str:
        if isinstance(value, tuple | list):
            return f"[{','.join(map(self.text, cast('list[Any]', value)))}]"
        out: list[str] = []
        if isinstance(value, dict):
            for name, inner in sorted(cast("dict[str, Any]", value).items()):
                if (text := self.text(inner)) not in _UNSET:
                    out.append(f"{encode_basestring(name)}:{text}")
        elif is_dataclass(value):
            for name, key in _sorted_fields(cast("type", type(value))):
                inner = getattr(value, name)
                if inner.__class__ is str:  # most are: at once
                    if inner:
                        out.append(f"{key}{encode_basestring(inner)}")
                elif inner is not None and inner is not False and (text := self.text(inner)) not in _UNSET:
                    out.append(f"{key}{text}")
        else:
            raise TypeError(f"{value.__class__.__name__} is not JSON")
        return "{" + ",".join(out) + "}"


def _number(value: float | None) -> str:
    if value is None:
        return "null"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(f"{value} is not JSON")
    return float.__repr__(value) if isinstance(value, float) else int.__repr__(value)


@cache
def _sorted_fields(kind: type) -> tuple[tuple[str, str], ...]:
    return tuple((name, f'"{name}":') for name in sorted(found.name for found in fields(kind)))
