"""One line of the job's progress file: what it says, or that it says nothing (docs/job-protocol.md)."""

from __future__ import annotations

import json
import math
import re
import signal
from typing import Any, NamedTuple, cast

LONGEST_LINE = 4096
MOST_METRICS = 32
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,63}", re.ASCII)
_MOST_STEPS = 1 << 53
_KNOWN = ("loss", "rate")


class Step(NamedTuple):
    """A step, as an item's body."""

    body: dict[str, Any]


class Made(NamedTuple):
    """A checkpoint folder is whole."""

    folder: str


class Wants(NamedTuple):
    """A process wants a signal when something is asked of the job."""

    pid: int
    signal: int


def parse(raw: bytes) -> Step | Made | Wants | None:
    """What a line says; None where it is none of the protocol's."""
    text = raw.decode("utf-8", "replace").strip()
    if text.startswith("{"):
        try:
            document: Any = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict):
            return None
        known = cast("dict[str, Any]", document)
        return _special(known) if "skyplan" in known else _step(known)
    pairs = [word.partition("=") for word in text.split()]
    if not pairs or not all(sign for _, sign, _ in pairs):
        return None
    return _step({name: _number(value) for name, _, value in pairs})


def _special(said: dict[str, Any]) -> Made | Wants | None:
    if said["skyplan"] == "checkpoint":
        folder = said.get("folder")
        return Made(folder) if isinstance(folder, str) and 0 < len(folder) < LONGEST_LINE else None
    if said["skyplan"] == "signals":
        pid, number = said.get("pid"), said.get("signal")
        if type(pid) is int and type(number) is int and pid > 1 and 0 < number < signal.NSIG:
            return Wants(pid, number)
    return None


def _step(said: dict[str, Any]) -> Step | None:
    step = said.get("step")
    if isinstance(step, float) and step.is_integer():
        step = int(step)
    if type(step) is not int or not 0 <= step < _MOST_STEPS:
        return None
    body: dict[str, Any] = {"step": step}
    metrics: dict[str, float] = {}
    for name, value in said.items():
        if name == "step" or isinstance(value, bool) or not isinstance(value, (int, float)):
            continue
        if not _finite(value) or not _NAME.fullmatch(name):
            continue
        if name in _KNOWN:
            body[name] = float(value)
        elif len(metrics) < MOST_METRICS:
            metrics[name] = float(value)
    return Step({**body, "metrics": metrics} if metrics else body)


def _finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _number(text: str) -> Any:
    if len(text) > 40:  # noqa: PLR2004 - longer than any double
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
