"""A tunnel's nodes meet at the control plane: each says its key and endpoint by the session of its own, platform-signed identity, and learns the others' once all have come.

No join secret: the control plane knows who each node is, and which nodes to expect.  Decides nothing about keys; judges the answer as the rendezvous' is judged.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any, cast

from .errors import CONFIG, REFUSED, UNAVAILABLE, AgentError, Away, Denied
from .rendezvous import POLL_SECONDS, members, missing, pause

if TYPE_CHECKING:
    from collections.abc import Callable

    from .client import Plane
    from .config import Peer, SessionMeeting, TunnelConfig


def by_session(config: TunnelConfig, session: SessionMeeting, mine: str) -> tuple[Peer, ...]:
    """All members, this node included.  Raises AgentError."""
    from . import parts, settings  # noqa: PLC0415 - a tunnel that meets elsewhere needs none of it
    from .place import Place  # noqa: PLC0415

    seat = {"SKYPLAN_GENERATION": str(config.generation), "SKYPLAN_RANK": config.name.lstrip("r")}
    found = settings.read(session.agent_config, {**seat, **os.environ})
    if (found.seat.job, found.seat.generation, f"r{found.seat.rank:02d}") != (
        config.job,
        config.generation,
        config.name,
    ):
        raise AgentError(CONFIG, f"{session.agent_config} is of another node than {config.name} of {config.job}")
    place = Place(found.state_folder, found.run_folder, found.seat)
    try:
        plane = parts.plane(found, place)
        if plane is None:
            raise AgentError(CONFIG, f"{session.agent_config} names no control plane")
        with contextlib.closing(plane):
            return meet(config, plane, mine, session.timeout_seconds)
    finally:
        place.close()


def meet(
    config: TunnelConfig,
    plane: Plane,
    mine: str,
    seconds: float,
    *,
    steady: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Peer, ...]:
    """Raises AgentError: who is missing, why it was refused, or that nobody answered."""
    ends = steady() + seconds
    absent: list[str] = []
    failures, problem, said = 0, "no attempt was made", False
    while (left := ends - steady()) > 0:
        try:
            answer: dict[str, Any] = (
                plane.peers(min(POLL_SECONDS, left)) if said else plane.meet(config.name, mine, config.endpoint)
            )
            said, failures = True, 0
            rows, names = answer.get("peers"), answer.get("missing")
            absent = [str(name)[:32] for name in cast("list[Any]", names)] if isinstance(names, list) else []
            if rows and not absent:
                return members(rows, config, mine)
        except Denied as denied:
            raise AgentError(REFUSED, f"the control plane refused {config.name}: {denied}") from denied
        except Away as away:
            problem, failures = str(away), failures + 1
        sleep(min(pause(failures), max(0.0, ends - steady())))
    if absent:
        raise missing(absent, seconds)
    raise AgentError(UNAVAILABLE, f"the control plane did not answer within {seconds:g} s: {problem}")
