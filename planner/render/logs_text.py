"""A job's output and its events, for terminals.  What a job printed is text of strangers: nothing of it may steer the terminal.  Decides nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from planner.model.record import Event
    from planner.model.runtime import LogChunk
    from planner.render.text import Paint

#: escape sequences: CSI (colours, cursor), OSC and other strings (titles, clipboard), two-character ones
_SEQUENCES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
#: all other controls but tab and line feed; C1 too, which some terminals obey, and marks that turn text around
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
STYLES = {
    "lost": "red",
    "failed": "red",
    "exit": "red",
    "refused": "yellow",
    "leak": "yellow",
    "notice": "yellow",
    "skipped": "yellow",
    "running": "green",
    "exited": "green",
}


def plain(text: str) -> str:
    """Without anything that a terminal would obey; of a line that was written over (progress bars) the last state."""
    text = _SEQUENCES.sub("", text).replace("\r\n", "\n")
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n")]
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", "\n".join(lines))


def log_lines(chunks: Sequence[LogChunk], paint: Paint, *, ranks: bool) -> list[str]:
    """Lines in order of arrival; with `ranks`, each with its rank in front."""
    out: list[str] = []
    for chunk in chunks:
        lines = plain(chunk.text.removesuffix("\n")).split("\n")
        mark = paint(f"r{chunk.seat.rank:02d} ", "dim") if ranks else ""
        out += [mark + line for line in lines]
    return out


def event_lines(events: Sequence[Event], paint: Paint) -> list[str]:
    """`2026-11-30T12:00:00Z  train-g3  running  3 node(s) running`, one line each."""
    out: list[str] = []
    for e in events:
        where = f"{e.job}-g{e.generation}" if e.generation is not None else e.job
        kind = plain(e.kind)
        text = " ".join(plain(e.text).split())
        out.append(f"{e.at[:19]}Z  {where}  {paint(kind, STYLES.get(kind, 'bold'))}  {text}")
    return out
