"""Whether one wildcard pattern takes in another, and whether two can meet.  Decides on text alone; what a pattern stands for is its reader's.

`*` is any run of characters, `?` any one, `${*}` `${?}` `${$}` those characters themselves.  Any other `${…}` is a value known later: it equals
itself and nothing else.  `includes` is sound: it may say no where a longer proof would say yes, never the other way round.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_TOKEN: Final = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}|.", re.DOTALL)
_LITERAL: Final = {"${*}": "*", "${?}": "?", "${$}": "$"}
#: parts of an ARN; a wildcard stays within its part, but in the last
ARN_PARTS: Final = 6


class _Wild:
    """A wildcard, told apart from the character that it is written with."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


MANY: Final = _Wild("*")
ONE: Final = _Wild("?")
#: one character, or one `${…}` whole
Token = str | _Wild
Tokens = tuple[Token, ...]
_ANYTHING: Final[Tokens] = (MANY,)


@lru_cache(maxsize=65536)
def tokens(pattern: str, *, wild: bool = True, fold: bool = False) -> Tokens:
    """The pattern token by token.  `wild` False reads `*` and `?` as themselves, `fold` ignores case."""
    out: list[Token] = []
    for found in _TOKEN.findall(pattern):
        if found in _LITERAL:
            out.append(_LITERAL[found])
        elif wild and found in {"*", "?"}:
            one = MANY if found == "*" else ONE
            if one is not MANY or not out or out[-1] is not MANY:
                out.append(one)
        else:
            out.append(found.lower() if fold and len(found) == 1 else found)
    return tuple(out)


def includes(have: Tokens, want: Tokens) -> bool:
    """All that `want` matches, `have` matches."""
    if MANY not in have:
        return len(have) == len(want) and all(_takes(h, w) for h, w in zip(have, want, strict=True))
    # greedy from the left: what stands before each MANY is matched at the first place it fits
    at, mark, back = 0, -1, 0
    index = 0
    while index < len(want):
        if at < len(have) and have[at] is MANY:
            mark, back = at, index
            at += 1
        elif at < len(have) and _takes(have[at], want[index]):
            at, index = at + 1, index + 1
        elif mark >= 0:
            back += 1
            at, index = mark + 1, back
        else:
            return False
    return all(token is MANY for token in have[at:])


def _takes(have: Token, want: Token) -> bool:
    """One token of `have` stands for the one of `want`.  `?` is no `${…}`: that may be longer."""
    if have is ONE:
        return want is ONE or (isinstance(want, str) and len(want) == 1)
    return have == want and have is not MANY


def meet(one: Tokens, other: Tokens) -> bool:
    """Some text matches both.  A value known later may be any text, so that this errs towards yes."""
    left, right = _open(one), _open(other)
    if _ANYTHING in (left, right):
        return True
    if not (_begin_alike(left, right) and _begin_alike(left[::-1], right[::-1])):
        return False
    row = {0}
    row = _skip(row, right)
    for token in left:
        row = _skip(_step(row, token, right), right)
        if not row:
            return False
    return len(right) in row


def _begin_alike(left: Tokens, right: Tokens) -> bool:
    """Up to the first wildcard over many, no letter stands against another: that settles most of what is asked, at the first letters."""
    for one, other in zip(left, right, strict=False):
        if one is MANY or other is MANY:
            return True
        if one is not ONE and other is not ONE and one != other:
            return False
    return True


@lru_cache(maxsize=65536)
def _open(pattern: Tokens) -> Tokens:
    return tuple(MANY if isinstance(token, str) and len(token) > 1 else token for token in pattern)


def _skip(row: set[int], right: Tokens) -> set[int]:
    """Each MANY on the right may stand for nothing."""
    out = set(row)
    for at in sorted(row):
        index = at
        while index < len(right) and right[index] is MANY:
            index += 1
            out.add(index)
    return out


def _step(row: set[int], token: Token, right: Tokens) -> set[int]:
    if token is MANY:
        return set(range(min(row), len(right) + 1)) if row else set()
    out: set[int] = set()
    for at in row:
        if at < len(right):
            if right[at] is MANY:
                out.add(at)
            elif right[at] is ONE or token is ONE or right[at] == token:
                out.add(at + 1)
    return out


@lru_cache(maxsize=65536)
def includes_action(have: str, want: str) -> bool:
    """Of actions: in any case."""
    return have == want or includes(tokens(have, fold=True), tokens(want, fold=True))


@lru_cache(maxsize=65536)
def actions_meet(one: str, other: str) -> bool:
    """Some action is both."""
    return meet(tokens(one, fold=True), tokens(other, fold=True))


@lru_cache(maxsize=65536)
def includes_arn(have: str, want: str) -> bool:
    """Of ARNs: part by part, since no wildcard but the last part's spans a colon."""
    if have in {"*", want}:
        return True
    left, right = _parts(have), _parts(want)
    if (len(left) == ARN_PARTS) != (len(right) == ARN_PARTS):
        return False
    if len(left) != ARN_PARTS:
        return includes(tokens(have), tokens(want))
    return all(includes(h, w) for h, w in zip(left, right, strict=True))


@lru_cache(maxsize=65536)
def arns_meet(one: str, other: str) -> bool:
    """Some ARN is both."""
    return meet(tokens(one), tokens(other))


@lru_cache(maxsize=65536)
def parts_meet(one: str, other: str) -> bool:
    """Some ARN of the usual six parts is both: no wildcard takes a colon for a letter.  Too strict where a Deny is weighed; right for what a type is."""
    left, right = _parts(one), _parts(other)
    if len(left) != ARN_PARTS or len(right) != ARN_PARTS:
        return meet(tokens(one), tokens(other))
    # from the last, where ARNs of one service differ
    return all(meet(a, b) for a, b in zip(reversed(left), reversed(right), strict=True))


@lru_cache(maxsize=65536)
def _parts(pattern: str) -> tuple[Tokens, ...]:
    return tuple(_split(tokens(pattern)))


def _split(pattern: Tokens) -> list[Tokens]:
    """At the first five colons."""
    out: list[Tokens] = []
    start = 0
    for index, part in enumerate(pattern):
        if part == ":" and len(out) < ARN_PARTS - 1:
            out.append(pattern[start:index])
            start = index + 1
    return [*out, pattern[start:]]
