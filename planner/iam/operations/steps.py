"""The four steps of one Terraform resource as rows of an operations table.  Pure; knows no cloud."""

from __future__ import annotations

from dataclasses import dataclass

from planner.model.control import Operation, Step
from planner.model.grants import Identity, Permission


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """What the steps of a resource call, all of them by one identity.  An empty step is none: what cannot be updated is not."""

    stack: str
    resource: str
    identity: Identity
    permission: Permission
    create: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    update: tuple[str, ...] = ()
    delete: tuple[str, ...] = ()
    ends: Permission | None = None
    """Under which right the deletion falls, where it is another one."""

    def rows(self) -> tuple[Operation, ...]:
        """A row per step.  Looking at one's own thing falls under the right to make it: without it Terraform makes nothing."""
        steps = (
            (Step.CREATE, self.create, self.permission),
            (Step.READ, self.read, self.permission),
            (Step.UPDATE, self.update, self.permission),
            (Step.DELETE, self.delete, self.ends or self.permission),
        )
        return tuple(
            Operation(
                stack=self.stack,
                resource=self.resource,
                step=step,
                identity=self.identity,
                permission=permission,
                actions=actions,
            )
            for step, actions, permission in steps
            if actions
        )


def call(
    resource: str, identity: Identity, permission: Permission, actions: tuple[str, ...], *, unused: str = ""
) -> Operation:
    """One of skyplan's own calls."""
    return Operation(
        stack="",
        resource=resource,
        step=Step.CALL,
        identity=identity,
        permission=permission,
        actions=actions,
        unused=unused,
    )


def also(managed: Managed, permission: Permission, actions: tuple[str, ...], step: Step = Step.CREATE) -> Operation:
    """Rights of another kind that one step of the resource takes too: handing on an identity, attaching an address."""
    return Operation(
        stack=managed.stack,
        resource=managed.resource,
        step=step,
        identity=managed.identity,
        permission=permission,
        actions=actions,
    )
