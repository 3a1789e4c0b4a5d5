"""Whether one condition text follows from another: CEL as Google's bindings have it, ABAC as Azure's assignments do.

Decides by structure: conjunctions, disjunctions and prefixes that grow; anything else only equals itself.  Sound and not complete.  It evaluates
nothing: that is `planner.iam.evaluate`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_CEL_PREFIX: Final = re.compile(
    r"(?P<what>[\w.()/'\",:{}\[\]\s-]+)\.startsWith\((?P<quote>[\"'])(?P<text>[^\"'\\]*)(?P=quote)\)"
)
_ABAC_PREFIX: Final = re.compile(r"(?P<what>@\w+\[[^\]]+\])\s+StringStartsWith\s+(?P<quote>')(?P<text>[^']*)'")
#: quoting that the splitter does not follow: such a text only equals itself
_UNREAD: Final = ("\\", '"""', "'''")


@dataclass(frozen=True, slots=True, kw_only=True)
class Grammar:
    """How a language joins clauses.

    mixed   AND is known to bind tighter than OR
    opaque  what binds more loosely, or is another spelling: a top level that has one is left whole
    """

    both: str
    either: str
    mixed: bool
    opaque: tuple[str, ...]
    prefix: re.Pattern[str]


CEL: Final = Grammar(both="&&", either="||", mixed=True, opaque=("?",), prefix=_CEL_PREFIX)
ABAC: Final = Grammar(both="AND", either="OR", mixed=False, opaque=("&&", "||", "and", "or"), prefix=_ABAC_PREFIX)


def follows(grammar: Grammar, want: str, have: str) -> bool:
    """Wherever `want` holds, `have` holds; "" always holds."""
    if not have.strip():
        return True
    if not want.strip():
        return False
    if any(mark in text for mark in _UNREAD for text in (want, have)):
        return want.strip() == have.strip()
    return _follows(grammar, _bare(want), _bare(have))


def _follows(grammar: Grammar, want: str, have: str) -> bool:
    if want == have:
        return True
    either, both = _parts(grammar, want), _parts(grammar, have)
    if len(either[1]) > 1:
        return all(_follows(grammar, part, have) for part in either[1])
    if len(both[0]) > 1:
        return all(_follows(grammar, want, part) for part in both[0])
    if len(both[1]) > 1 and any(_follows(grammar, want, part) for part in both[1]):
        return True
    if len(either[0]) > 1:
        return any(_follows(grammar, part, have) for part in either[0])
    return _longer(grammar, want, have)


def _longer(grammar: Grammar, want: str, have: str) -> bool:
    """Both ask for a prefix of one thing, and `want`'s is the longer."""
    left, right = grammar.prefix.fullmatch(want), grammar.prefix.fullmatch(have)
    return bool(left and right and left["what"] == right["what"] and left["text"].startswith(right["text"]))


def _parts(grammar: Grammar, text: str) -> tuple[list[str], list[str]]:
    """(conjuncts, disjuncts) of the top level; one of the two is the text alone, both are where it is neither."""
    whole = [text]
    both, either = _split(text, grammar.both), _split(text, grammar.either)
    if any(len(_split(text, mark)) > 1 for mark in grammar.opaque):
        return whole, whole
    if len(either) > 1:
        return whole, whole if len(both) > 1 and not grammar.mixed else [_bare(part) for part in either]
    return [_bare(part) for part in both], whole


def _split(text: str, mark: str) -> list[str]:
    """At each `mark` outside quotes and brackets; words only between blanks or brackets."""
    out: list[str] = []
    depth, start, quote = 0, 0, ""
    word = mark.isalpha()
    for index, char in enumerate(text):
        if quote:
            # an escape only ever hides a quote: counted as still inside, which leaves the text whole
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif not depth and index >= start and text.startswith(mark, index) and (not word or _alone(text, index, mark)):
            out.append(text[start:index])
            start = index + len(mark)
    return [*out, text[start:]] if not quote and not depth else [text]


def _alone(text: str, index: int, mark: str) -> bool:
    before, after = text[index - 1 : index], text[index + len(mark) : index + len(mark) + 1]
    return not (before.isalnum() or before == "_") and not (after.isalnum() or after == "_")


def _bare(text: str) -> str:
    """Without blanks around it and without brackets that hold all of it."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and _closes(text):
        text = text[1:-1].strip()
    return text


def _closes(text: str) -> bool:
    """The first bracket closes with the last."""
    depth, quote = 0, ""
    for index, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[index - 1] != "\\" else quote
        elif char in "\"'":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if not depth and index < len(text) - 1:
                return False
    return not depth and not quote
