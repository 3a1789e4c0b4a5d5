"""Which reader a text is for.  By what stands in it, unless the format is named; a text that no reader knows is a problem, never a guess."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from planner.model.diagnostic import Diagnostic, Location
from planner.replay import availability, given, prices
from planner.replay.points import TooLong

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from planner.replay.trace import Trace

    Read = Callable[[Sequence[str], str, str], tuple[tuple[Trace, ...], list[Diagnostic]]]

FORMATS = ("auto", "points", "spotlake", "aws-archive", "events", "availability")


@dataclass(frozen=True, slots=True)
class Text:
    """A file's text.  `file` as the user wrote it, `name` for people."""

    file: str
    name: str
    text: str


def read(
    texts: Sequence[Text], *, form: str = "auto", polarity: str = ""
) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """All traces of all files, or all problems of all files."""
    traces: list[Trace] = []
    problems: list[Diagnostic] = []
    zones: list[availability.Seen] = []
    files: list[str] = []
    for one in texts:
        text = one.text.lstrip("\ufeff")
        lines = text.splitlines()
        kind = form if form != "auto" else _kind(lines)
        if kind == "availability":
            seen, wrong = availability.read_availability(text, one.file, one.name, polarity)
            zones += seen
            files.append(one.name)
        elif not lines or kind not in _READERS:
            wrong = [
                Diagnostic(
                    code=given.CODE,
                    summary="of no form that is known: points, spotlake, aws-archive, events, availability",
                    location=Location(one.file, 1),
                )
            ]
        else:
            looks, reader = _READERS[kind]
            if not looks(lines):
                wrong = [
                    Diagnostic(code=given.CODE, summary=f"not in the format `{kind}`", location=Location(one.file, 1))
                ]
            else:
                found, wrong = _tried(reader, lines, one)
                traces += found
        problems += wrong
    if zones and not problems:
        first = next(one for one in texts if one.name == files[0])
        found, problems = _tried(partial(_of_zones, zones, tuple(files)), (), first)
        traces += found
    return ((), problems) if problems else (tuple(traces), [])


def _of_zones(
    zones: list[availability.Seen], files: tuple[str, ...], _lines: Sequence[str], _file: str, _name: str
) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    return availability.market_of_zones(zones, files)


def _tried(read_one: Read, lines: Sequence[str], one: Text) -> tuple[tuple[Trace, ...], list[Diagnostic]]:
    """What a reader says, or that it could make nothing of the text."""
    try:
        return read_one(lines, one.file, one.name)
    except (csv.Error, TooLong) as error:
        return (), [Diagnostic(code=given.CODE, summary=str(error), location=Location(one.file, 1))]


_READERS: dict[str, tuple[Callable[[Sequence[str]], bool], Read]] = {
    "points": (given.is_given, given.read_given),
    "spotlake": (prices.is_spotlake, prices.read_spotlake),
    "events": (prices.is_events, prices.read_events),
    "aws-archive": (prices.is_archive, prices.read_archive),
}


def _kind(lines: Sequence[str]) -> str:
    if lines and lines[0].lstrip()[:1] in {"{", "["}:
        return "availability"
    return next((kind for kind, (looks, _) in _READERS.items() if looks(lines)), "")
