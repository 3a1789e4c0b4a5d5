"""From neutral grants to the words of a cloud: which actions of an operations table an identity needs, and why it has them.  Pure; knows no cloud."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from planner.iam.control import control_grants
from planner.model.control import ControlScope, Operation
from planner.model.grants import Grant, Identity, Permission


def grants_of(scope: ControlScope, identity: Identity) -> tuple[Grant, ...]:
    """What one control identity may do, in order."""
    return tuple(grant for grant in control_grants(scope) if grant.identity is identity)


def actions(operations: Iterable[Operation], identity: Identity, permissions: Iterable[Permission]) -> tuple[str, ...]:
    """The actions behind those rights, each once, sorted.  A right that no operation needs gives nothing."""
    wanted = set(permissions)
    return tuple(
        sorted(
            {
                action
                for row in operations
                if row.identity is identity and row.permission in wanted
                for action in row.actions
            }
        )
    )


def reason(grants: Sequence[Grant], permissions: Iterable[Permission]) -> str:
    """Why those rights are given, in one line."""
    wanted = set(permissions)
    return "; ".join(dict.fromkeys(grant.reason for grant in grants if grant.permission in wanted))
