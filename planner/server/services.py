"""What the routes work with, handed in whole: no route opens a database, reads a clock or the environment by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from planner.model.server import ServerSettings

if TYPE_CHECKING:
    from planner.app.mint_nodes import NodeNames
    from planner.server.identity import Verifier
    from planner.state.record import Record
    from planner.state.runtime import Runtime


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The record as its readers see it, the runtime as nodes write it, whom to believe, and the time.

    verifiers  by scheme of a proof (docs/node-protocol.md); a scheme that is not here is refused
    clock      the time in UTC
    accounts   by (cloud, target) the account whose machines are the target's; a target that is not here may have any
    names      which identities nodes have; None where nothing tells
    """

    record: Record
    runtime: Runtime
    settings: ServerSettings
    verifiers: Mapping[str, Verifier]
    clock: Callable[[], datetime]
    project: str
    accounts: Mapping[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    names: NodeNames | None = None
