"""What one guard is: a statement's name, whose it is, which actions it may carry, and within which bounds.  Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from planner.iam.foundation.aws_ground import Condition, Ground
from planner.model.grants import Identity, Permission

#: resources, condition
Bounds = tuple[list[str], Condition]


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """One statement.  `bounds` gives no resources where there is nothing to guard: then the statement falls away.

    permissions  the grants that it is part of; the first one's bounds are its values
    """

    sid: str
    identity: Identity
    permissions: tuple[Permission, ...]
    actions: tuple[str, ...]
    bounds: Callable[[Ground], Bounds]
