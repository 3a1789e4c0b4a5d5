"""A report's bytes -> `Report`.  The hot route's own validation: no schema library, about 10 microseconds an item.

Decides what of a report is usable.  What is wrong with the report itself refuses it (`malformed`).  What is wrong with one item becomes an event in its
place: an agent of another version, or a job that reports nonsense, must not hold up everything behind it in the spool.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, cast

from planner.model.record import stamp
from planner.model.runtime import MAX_REPORT_ITEMS, Item, Kind, Refusal, Refused, Report, Session

MAX_SKEW: Final = timedelta(seconds=300)
"""An item from further in the future has its time replaced by ours: steps and costs are plotted over it.  The past is what spools are for."""
MAX_WHOLE: Final = 2**63 - 1
MAX_LOG_BYTES: Final = 8 * 1024
MAX_METRICS: Final = 32


def _none(_text: str) -> None:
    """A NaN or an infinity counts as not said."""


_JSON: Final = json.JSONDecoder(parse_constant=_none)
_STAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", re.ASCII)
"""A time as the record writes it, which agents send: nothing is to be rewritten."""
_STREAM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_WORD: Final = re.compile(r"[a-z][a-z0-9-]{0,31}", re.ASCII)
_HEX64: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UNFIT: Final = re.compile("[\0\ud800-\udfff]")
"""No database takes these in a text."""
_WHATS: Final = ("spot", "rebalance", "maintenance")
_STATES: Final = ("minted", "degraded", "critical", "refused")


class _Wrong(Exception):
    """What is wrong with an item."""


Check = Callable[[Any], Any]


def report_of(session: Session, body: bytes, now: datetime) -> Report:
    """Raises Refused (malformed) where this is no report."""
    try:
        found: Any = _JSON.decode(body.decode())
    except (ValueError, RecursionError):
        raise _malformed("the body is no JSON") from None
    if not isinstance(found, dict):
        raise _malformed("the body must be an object")
    fields = cast("dict[str, Any]", found)
    stream, items = fields.get("stream"), fields.get("items")
    if not isinstance(stream, str) or not _STREAM.fullmatch(stream):
        raise _malformed("`stream` must be a UUID in lower case")
    if not isinstance(items, list):
        raise _malformed("`items` must be a list")
    listed = cast("list[Any]", items)
    if len(listed) > MAX_REPORT_ITEMS:
        raise _malformed(f"a report has at most {MAX_REPORT_ITEMS} items")
    latest = now + MAX_SKEW
    before = 0
    taken: list[Item] = []
    for one in listed:
        item = _item(one, now, latest)
        if item.seq <= before:
            raise _malformed("`seq` must rise")
        before = item.seq
        taken.append(item)
    holder = (session.instance_id, session.key_sha256)
    return Report(seat=session.seat, stream=stream, items=tuple(taken), holder=holder)


def _item(found: Any, now: datetime, latest: datetime) -> Item:
    if not isinstance(found, dict):
        raise _malformed("an item must be an object")
    fields = cast("dict[str, Any]", found)
    seq = fields.get("seq")
    if type(seq) is not int or not 1 <= seq <= MAX_WHOLE:
        raise _malformed("`seq` must be a whole number from 1")
    kind = fields.get("kind")
    at = _time(fields.get("at"), now, latest)
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        return _event(seq, at, f"kind {_shown(kind)} is not known here")
    try:
        body = _body(fields, known[1])
    except _Wrong as wrong:
        return _event(seq, at, f"{kind}: {wrong}")
    return Item(seq=seq, kind=known[0], at=at, body=body)


def _event(seq: int, at: str, text: str) -> Item:
    return Item(seq=seq, kind=Kind.EVENT, at=at, body={"word": "malformed", "text": text})


def _time(text: Any, now: datetime, latest: datetime) -> str:
    try:
        at = datetime.fromisoformat(text)
        if at > latest:
            return stamp(now)
        return text if _STAMP.fullmatch(text) else stamp(at)
    except (TypeError, ValueError, OverflowError):  # no text; no time; no zone; the first or last day of all
        raise _malformed("`at` must be an ISO time with its zone") from None


def _body(fields: Mapping[str, Any], checks: Mapping[str, tuple[bool, Check]]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, (required, check) in checks.items():
        value = fields.get(name)
        if value is None:
            if required:
                raise _Wrong(f"`{name}` is missing")
            continue
        try:
            body[name] = check(value)
        except _Wrong as wrong:
            raise _Wrong(f"`{name}` {wrong}") from None
    return body


def clean(text: str) -> str:
    """A text that every database takes."""
    return _UNFIT.sub("\N{REPLACEMENT CHARACTER}", text)


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= MAX_WHOLE:
        raise _Wrong("must be a whole number from 0")
    return value


def _signed(value: Any) -> int:
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise _Wrong("must be a whole number")
    return value


def _number(value: Any) -> float:
    if type(value) not in {int, float}:
        raise _Wrong("must be a number")
    try:
        number = float(value)
    except OverflowError:
        raise _Wrong("must be a finite number") from None
    if not math.isfinite(number):
        raise _Wrong("must be a finite number")
    return number


def _metrics(value: Any) -> dict[str, float]:
    if not isinstance(value, dict):
        raise _Wrong("must be an object of numbers")
    found = cast("dict[str, Any]", value)
    if len(found) > MAX_METRICS:
        raise _Wrong(f"has more than {MAX_METRICS} numbers")
    return {clean(name[:64]): _number(number) for name, number in found.items() if number is not None}


def _hex(value: Any) -> str:
    if not isinstance(value, str) or not _HEX64.fullmatch(value):
        raise _Wrong("must be 64 lower-case hex digits")
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise _Wrong("must be a short word in small letters")
    return value


def _text(most: int) -> Check:
    def check(value: Any) -> str:
        if not isinstance(value, str):
            raise _Wrong("must be a text")
        return clean(value[:most])

    return check


def _uri(value: Any) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 2048:  # noqa: PLR2004 - the bound on every address here
        raise _Wrong("must be an address of at most 2048 characters")
    return clean(value)


def _log(value: Any) -> str:
    if not isinstance(value, str):
        raise _Wrong("must be a text")
    text = clean(value)
    return text.encode()[:MAX_LOG_BYTES].decode(errors="ignore")


def _one_of(words: tuple[str, ...]) -> Check:
    def check(value: Any) -> str:
        if value not in words:
            raise _Wrong(f"must be one of {', '.join(words)}")
        return value

    return check


def _moment(value: Any) -> str:
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is not None:
            return stamp(at)
    except (TypeError, ValueError, OverflowError):
        pass
    raise _Wrong("must be an ISO time with its zone")


def _shown(value: Any) -> str:
    return f"`{clean(value[:32])}`" if isinstance(value, str) else "that is no text"


def _malformed(reason: str) -> Refused:
    return Refused(Refusal.MALFORMED, reason)


_CHECKS: Final[dict[Kind, dict[str, tuple[bool, Check]]]] = {
    Kind.HEARTBEAT: {"gpu_memory_mib": (False, _whole), "gpu_utilization_percent": (False, _number)},
    Kind.PROGRESS: {
        "step": (True, _whole),
        "loss": (False, _number),
        "rate": (False, _number),
        "metrics": (False, _metrics),
    },
    Kind.CHECKPOINT: {
        "step": (True, _whole),
        "uri": (True, _uri),
        "digest": (True, _hex),
        "mac": (True, _hex),
        "bytes": (True, _whole),
        "files": (True, _whole),
    },
    Kind.SKIPPED: {"uri": (True, _uri), "reason": (True, _text(1024))},
    Kind.NOTICE: {"what": (True, _one_of(_WHATS)), "deadline": (False, _moment)},
    Kind.CREDENTIAL: {"uri": (True, _uri), "state": (True, _one_of(_STATES)), "expires_at": (False, _moment)},
    Kind.LOG: {"text": (True, _log)},
    Kind.EVENT: {"word": (True, _word), "text": (True, _text(2048))},
    Kind.EXIT: {"code": (True, _signed), "signal": (False, _signed)},
}
_KINDS: Final = {kind.value: (kind, checks) for kind, checks in _CHECKS.items()}
