"""A table of operations, written short.  Knows no cloud and grants nothing: that is `planner.iam.foundation`'s."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from planner.model.control import Operation, Step
from planner.model.grants import Identity, Permission


def all_under(permission: Permission, _: str) -> Permission:
    """Every action of a row under the row's own right."""
    return permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What the rows of one kind of stack share.

    prefix   put before an action that names no service
    under    which right an action falls under, from the row's and the action: reads are DESCRIBE wherever they happen
    """

    stack: str
    identity: Identity
    permission: Permission
    prefix: str = ""
    under: Callable[[Permission, str], Permission] = all_under

    def row(self, resource: str, *, unused: str = "", **steps: str) -> tuple[Operation, ...]:
        """One resource: `create="A B", read="C"`.  A step whose actions fall under several rights makes several operations."""
        return tuple(self._operations(resource, unused, {Step(step): words.split() for step, words in steps.items()}))

    def _operations(self, resource: str, unused: str, steps: dict[Step, list[str]]) -> Iterator[Operation]:
        for step, words in steps.items():
            actions = [word if ":" in word or not self.prefix else f"{self.prefix}:{word}" for word in words]
            rights: dict[Permission, list[str]] = {} if actions else {self.permission: []}
            for action in actions:
                rights.setdefault(self.under(self.permission, action), []).append(action)
            for permission, found in rights.items():
                yield Operation(
                    stack=self.stack,
                    resource=resource,
                    step=step,
                    identity=self.identity,
                    permission=permission,
                    actions=tuple(found),
                    unused=unused,
                )
