"""Sizes, durations and numbers as people write them -> bytes, hours, numbers.

Every function raises Malformed with words and a hint; none accepts NaN, infinities, zero or negative values where they make no sense,
and none guesses a unit that was left out.
"""

from __future__ import annotations

import math
import re
from typing import Final

GIB: Final = 1 << 30
SIZES: Final[dict[str, int]] = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "TiB": 1 << 40,
    "PiB": 1 << 50,
}
_BY_LOWER: Final = {name.lower(): name for name in SIZES}
HOURS: Final[dict[str, float]] = {"w": 168.0, "d": 24.0, "h": 1.0, "m": 1 / 60, "s": 1 / 3600}
MAX_BYTES: Final = 10**18
MAX_HOURS: Final = 87_600.0

NUMBER: Final = r"[0-9]+(?:\.[0-9]+)?"
_SIZE: Final = re.compile(rf"({NUMBER})\s*([A-Za-z]*)", re.ASCII)
_DURATION: Final = re.compile(rf"(?:{NUMBER}\s*[A-Za-z]+\s*)+", re.ASCII)
_PART: Final = re.compile(rf"({NUMBER})\s*([A-Za-z]+)", re.ASCII)
_REAL: Final = re.compile(r"[+]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?", re.ASCII)


class Malformed(ValueError):
    """A value that cannot be read.  `hint` says how to write it."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def size_bytes(text: str, example: str = "500GB") -> int:
    """`500GB` (10^9), `500GiB` (2^30), with a `+` or without ("at least" is always meant) -> bytes, 1 to 10^18."""
    found = _SIZE.fullmatch(text.strip().removesuffix("+").rstrip())
    if found is None:
        raise Malformed("is not a size", f"write a number and a unit, such as {example}")
    number, unit = found.groups()
    if not unit:
        raise Malformed("has no unit", f"write {number}GiB (2^30 bytes) or {number}GB (10^9 bytes)")
    name = _BY_LOWER.get(unit.lower())
    if name is None:
        raise Malformed(f"has no unit that is known: {unit}", f"units are {', '.join(SIZES)}")
    value = float(number) * SIZES[name]
    if not 1 <= value <= MAX_BYTES:
        raise Malformed("is out of range", f"sizes are at least 1 byte and at most 1 EB, such as {example}")
    return int(number) * SIZES[name] if number.isdigit() else round(value)


def hours(text: str, *, bare: bool = False) -> float:
    """`30m`, `48h`, `1d12h` -> hours, above 0 and at most ten years.  `bare` admits a number without unit, which counts hours."""
    stripped = text.strip()
    if _REAL.fullmatch(stripped):
        if not bare:
            raise Malformed("has no unit", f"write {stripped}h, {stripped}m or {stripped}d")
        total = real(stripped)
    elif _DURATION.fullmatch(stripped):
        total = sum(float(number) * _hours_of(unit) for number, unit in _PART.findall(stripped))
    else:
        raise Malformed("is not a duration", "write it like 30m, 48h or 1d12h")
    if not 0 < total <= MAX_HOURS:
        raise Malformed("is out of range", "durations are above 0 and at most ten years, such as 48h")
    return total


def _hours_of(unit: str) -> float:
    try:
        return HOURS[unit]
    except KeyError:
        raise Malformed(f"has no unit that is known: {unit}", "units are w, d, h, m and s, such as 1d12h") from None


def integer(text: str, low: int, high: int) -> int:
    """A whole number from `low` to `high`; a sign only where negative ones are admitted."""
    if not re.fullmatch(r"-?[0-9]{1,18}", text, re.ASCII):
        raise Malformed("is not a whole number", f"write a whole number from {low} to {high}")
    value = int(text)
    if not low <= value <= high:
        raise Malformed("is out of range", f"write a whole number from {low} to {high}")
    return value


def real(text: str, *, above: float = 0.0, high: float = 1e9, example: str = "") -> float:
    """A finite number above `above` and at most `high`."""
    if not _REAL.fullmatch(text):
        raise Malformed("is not a number" if not re.match(r"-[0-9.]", text) else "is negative", example)
    value = float(text)
    if not (math.isfinite(value) and above < value <= high):
        raise Malformed("is out of range", f"write a number above {above:g} and at most {high:g}")
    return value
