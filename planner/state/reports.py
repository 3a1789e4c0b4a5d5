"""What a report's items become as rows.  Pure: no database here.

Decides what is malformed (nothing of that report is taken then) and what is bent into shape: a moment in the future becomes that of arrival, a number
that is none is left out, a checkpoint whose mac is not its generation's becomes an event and no checkpoint.
"""

from __future__ import annotations

import hmac
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, cast

from planner.model.record import stamp
from planner.model.runtime import (
    MAX_REPORT_ITEMS,
    Item,
    Kind,
    Refusal,
    Refused,
    Report,
    Seat,
    checkpoint_mac,
    checkpoint_message,
)
from planner.state.guards import writable

MAX_SKEW = timedelta(minutes=5)
MAX_TEXT: Final = 1000
MAX_LOG: Final = 8192
MAX_METRICS: Final = 32
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
_STREAM: Final = re.compile(r"[\x21-\x7e]{1,64}", re.ASCII)
_WORD: Final = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_URI: Final = re.compile(r"[\x21-\x7e\u0080-\ud7ff\ue000-\U0010ffff]{1,1000}")
_MOST_URI_BYTES: Final = 2000
"""PostgreSQL keeps no key of more than 2,704 bytes, and one that it cannot keep looks like a database that is away."""
_HEX: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_BIG: Final = 2**63
_WHOLE: Final = 2**31

Values = dict[str, Any]


PROGRESS: Final = ("project", "job", "generation", "rank", "at", "step", "loss", "rate", "metrics")
"""Its columns, in the order of its rows: nearly all that comes is progress."""


@dataclass(slots=True)
class Rows:
    """Rows to insert, by table, of one report or many; `seen` by seat."""

    progress: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    checkpoint: list[Values] = field(default_factory=list[Values])
    event: list[Values] = field(default_factory=list[Values])
    log: list[Values] = field(default_factory=list[Values])
    seen: dict[Seat, Values] = field(default_factory=dict[Seat, Values])
    exited: set[Seat] = field(default_factory=set[Seat])


def place_problem(generation: int, step: int, uri: str, digest: str, size: int) -> str | None:
    """Why that can be no checkpoint: each lies in its own generation's folder, under its step."""
    if not 0 <= step < _BIG or not 0 <= size < _BIG or not _HEX.fullmatch(digest) or not _URI.fullmatch(uri):
        return "no step, size, address or digest that a checkpoint can have"
    if len(uri.encode()) > _MOST_URI_BYTES:
        return f"an address of more than {_MOST_URI_BYTES} bytes"
    if not re.search(rf"/g{generation}/step-{step:012d}(-[0-9]+)?/?$", uri, re.ASCII):
        return f"not under g{generation}/step-{step:012d}"
    return None


def authentic(project: str, job: str, key: bytes, it: Mapping[str, Any]) -> bool:
    """Whether the mac is the generation's own.  `it` has generation, step, uri, digest, mac."""
    about = {name: it[name] for name in ("generation", "step", "uri", "digest")}
    wanted = checkpoint_mac(key, checkpoint_message(project=project, job=job, **about))
    return hmac.compare_digest(wanted.encode(), str(it["mac"]).encode(errors="replace"))


def shape_problem(report: Report) -> Refused | None:
    """Whether it can be a report at all."""
    if not _STREAM.fullmatch(report.stream):
        return _malformed("a stream's name is up to 64 printable characters")
    if len(report.items) > MAX_REPORT_ITEMS:
        return _malformed(f"more than {MAX_REPORT_ITEMS} items")
    last = 0
    for item in report.items:
        if not last < item.seq < _BIG:
            return _malformed("`seq` must rise, from 1")
        last = item.seq
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads items.  `key` gives a generation's key; it is asked where a checkpoint is told."""

    project: str
    at: datetime
    key: Callable[[str, int], bytes]
    arrived: str = field(init=False)
    latest: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arrived", stamp(self.at))
        object.__setattr__(self, "latest", stamp(self.at + MAX_SKEW))

    def progress(self, seat: Seat, items: Iterable[Item]) -> list[tuple[Any, ...]]:
        """The rows of items that are all progress.  Raises Refused (malformed)."""
        project, job, generation, rank = self.project, seat.job, seat.generation, seat.rank
        rows: list[tuple[Any, ...]] = []
        for item in items:
            at = self._moment(item)
            try:
                rows.append((project, job, generation, rank, at, *_progress(item.body)))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise _not_as_documented(item, error) from error
        return rows

    def read(self, seat: Seat, items: Iterable[Item], rows: Rows) -> None:
        """Add a seat's items to the rows.  Raises Refused (malformed); `rows` is then half filled and of no use."""
        base = {"project": self.project, "job": seat.job, "generation": seat.generation}
        for item in items:
            if item.kind is Kind.PROGRESS:
                rows.progress += self.progress(seat, (item,))
                continue
            at, body = self._moment(item), item.body
            try:
                match item.kind:
                    case Kind.HEARTBEAT:
                        rows.seen.setdefault(seat, {}).update(_heartbeat(body))
                    case Kind.LOG:
                        line = writable(_text(body, "text", MAX_LOG), MAX_LOG)
                        rows.log.append({**base, "rank": seat.rank, "at": at, "text": line})
                    case Kind.CHECKPOINT:
                        self._checkpoint(seat, {**base, "at": at}, body, rows)
                    case Kind.EXIT:
                        self._exit(seat, {**base, "at": at}, body, rows)
                    case _:
                        kind, text = _event(item.kind, body)
                        rows.event.append(_told(base, at, kind, seat, text))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                raise _not_as_documented(item, error) from error

    def _moment(self, item: Item) -> str:
        at = item.at
        if not isinstance(at, str) or not _MOMENT.fullmatch(at):  # pyright: ignore[reportUnnecessaryIsInstance] - nodes send it
            raise _malformed(f"item {item.seq}: `at` is no moment such as {self.arrived}")
        return self.arrived if at > self.latest else at

    def _checkpoint(self, seat: Seat, base: Values, body: Mapping[str, Any], rows: Rows) -> None:
        told: Values = {
            "generation": seat.generation,
            "step": _whole(body, "step"),
            "uri": _text(body, "uri", MAX_TEXT),
            "digest": _hash(body, "digest"),
            "mac": _hash(body, "mac"),
            "bytes": _whole(body, "bytes"),
        }
        problem = place_problem(seat.generation, told["step"], told["uri"], told["digest"], told["bytes"])
        if problem is None and not authentic(self.project, seat.job, self.key(seat.job, seat.generation), told):
            problem = "its mac is not by this generation's key"
        if problem:
            text = f"{told['uri']}: {problem} (SKY-RUN-511)"
            rows.event.append(_told(base, base["at"], "skipped", seat, text))
        else:
            rows.checkpoint.append({**base, **told, "source": "report"})

    def _exit(self, seat: Seat, base: Values, body: Mapping[str, Any], rows: Rows) -> None:
        code, signal = body["code"], body.get("signal")
        if not _is_whole(code) or not -_WHOLE <= code < _WHOLE:
            raise ValueError("`code` is no whole number")
        rows.seen.setdefault(seat, {})["exit_code"] = code
        rows.exited.add(seat)
        if code or signal:
            by = f" by signal {writable(str(signal), 20)}" if signal else ""
            rows.event.append(
                _told(base, base["at"], "exit", seat, f"the job ended with code {code}{by} (SKY-RUN-522)")
            )


def _progress(body: Mapping[str, Any]) -> tuple[int, float | None, float | None, str]:
    metrics = body.get("metrics")
    kept = "{}"
    if metrics:
        if not isinstance(metrics, Mapping):
            raise TypeError("`metrics` is no object")
        numbers = {
            writable(str(name), 64): _number(value)
            for name, value in list(cast("Mapping[str, Any]", metrics).items())[:MAX_METRICS]
        }
        kept = json.dumps({name: n for name, n in numbers.items() if n is not None}, sort_keys=True)
    return _whole(body, "step"), _number(body.get("loss")), _number(body.get("rate")), kept


def _heartbeat(body: Mapping[str, Any]) -> Values:
    memory, used = _number(body.get("gpu_memory_mib")), _number(body.get("gpu_utilization_percent"))
    values: Values = {}
    if memory is not None and 0 <= memory < _WHOLE:
        values["gpu_memory_mib"] = int(memory)
    if used is not None:
        values["gpu_utilization_percent"] = used
    return values


def _event(kind: Kind, body: Mapping[str, Any]) -> tuple[str, str]:
    """Kind and text of the event that an item is."""
    if kind is Kind.EVENT:
        word = _text(body, "word", MAX_TEXT)
        if not _WORD.fullmatch(word):
            raise ValueError("`word` is a short word in small letters")
        return f"node-{word}", _text(body, "text", MAX_TEXT)
    if kind is Kind.SKIPPED:
        return "skipped", f"{_text(body, 'uri', MAX_TEXT)}: {_text(body, 'reason', MAX_TEXT)} (SKY-RUN-511)"
    if kind is Kind.NOTICE:
        until = body.get("deadline")
        return "notice", f"{_text(body, 'what', 64)}{f' until {until}' if until else ''} (SKY-RUN-518)"
    until = body.get("expires_at")
    return (
        "credential",
        f"{_text(body, 'uri', MAX_TEXT)}: {_text(body, 'state', 64)}{f' until {until}' if until else ''}",
    )


def _told(base: Values, at: str, kind: str, seat: Seat, text: str) -> Values:
    plain = {name: base[name] for name in ("project", "job", "generation")}
    return {**plain, "at": at, "kind": kind, "text": f"r{seat.rank:02d}: {writable(text, 2 * MAX_TEXT)}"}


def _text(body: Mapping[str, Any], name: str, limit: int) -> str:
    value = body[name]
    if not isinstance(value, str):
        raise TypeError(f"`{name}` is no text")
    return value[:limit]


def _hash(body: Mapping[str, Any], name: str) -> str:
    value = _text(body, name, 100)
    if not _HEX.fullmatch(value):
        raise ValueError(f"`{name}` is no SHA-256 in hex")
    return value


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _whole(body: Mapping[str, Any], name: str) -> int:
    value = body[name]
    if not _is_whole(value) or not 0 <= value < _BIG:
        raise ValueError(f"`{name}` is no whole number from 0 on")
    return int(value)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _malformed(reason: str) -> Refused:
    return Refused(Refusal.MALFORMED, reason)


def _not_as_documented(item: Item, error: Exception) -> Refused:
    return _malformed(f"item {item.seq} ({item.kind.value}): {error or 'not as documented'}")
