"""Stacks as the record holds them, driven by Terraform under `ROOT/.skyplan/work/STACK`.  What `app` asks of Terraform, and no more.

No method decides whether something is done; they do it or raise TerraformError.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from planner.model.diagnostic import Diagnostic
from planner.model.errors import TerraformError
from planner.model.record import Stack
from stacks.classify import classify
from stacks.events import Event
from stacks.exists import existing
from stacks.naming import state_key
from stacks.process import died_unseen
from stacks.runner import Lock, Terraform

Tell = Callable[[str, str], None]

#: seconds that a Terraform which outlived its parent may take; launching nodes takes a minute
PATIENCE = 900.0
#: a lock from another machine is taken for dead after this: no command of ours takes as long
LOCK_AGE = timedelta(minutes=30)
#: cloud -> type of the resource that is a node; its name is `node` everywhere
NODE_TYPES = {
    "aws": "aws_instance",
    "gcp": "google_compute_instance",
    "azure": "azurerm_linux_virtual_machine",
    "nebius": "nebius_compute_v1_instance",
}


class TerraformStacks:
    """Terraform for a project's stacks.  `root` is the folder that holds `.skyplan`; `environment` default: this process's."""

    def __init__(self, root: Path, project: str, *, environment: Mapping[str, str] | None = None) -> None:
        self._root = root
        self._project = project
        self._environment = environment
        self._known: dict[str, Terraform] = {}

    def terraform(self, name: str) -> Terraform:
        """Terraform in a stack's work folder.  One per stack: finding the program is done once."""
        if name not in self._known:
            base = self._root / ".skyplan"
            self._known[name] = Terraform(base / "work" / name, cache=base / "cache", environment=self._environment)
        return self._known[name]

    def prepare(self, stack: Stack) -> None:
        """Write its work folder and initialise it, backend included."""
        terraform = self.terraform(stack.name)
        terraform.write(stack.document, stack.variables)
        terraform.init(stack.backend, state_key(self._project, stack.name), root=self._root)

    def apply(self, stack: Stack, tell: Tell) -> None:
        """Make it real."""
        self.terraform(stack.name).apply(_telling(stack, tell))

    def destroy(self, stack: Stack, tell: Tell) -> None:
        """End it."""
        self.terraform(stack.name).destroy(_telling(stack, tell))

    def outputs(self, stack: Stack) -> dict[str, object]:
        """Its outputs; {} where it was never applied."""
        return self.terraform(stack.name).output()

    def nodes(self, stack: Stack) -> dict[str, str]:
        """Of a compute stack, rank key to machine id, as the state has them."""
        return {
            found.key: str(found.attributes["id"])
            for found in self.terraform(stack.name).show()
            if (found.type, found.name) == (NODE_TYPES[stack.cloud], "node")
            and found.key is not None
            and found.attributes.get("id")
        }

    def holds(self, stack: Stack) -> frozenset[str]:
        """Ids of everything that a stack's state has."""
        found = self.terraform(stack.name).show()
        return frozenset(str(one.attributes["id"]) for one in found if one.attributes.get("id"))

    def adopt(self, stack: Stack, rank: str, machine: str) -> None:
        """Import a machine as a rank's node."""
        self.terraform(stack.name).import_resource(_address(stack, rank), machine)

    def forget(self, stack: Stack, rank: str) -> None:
        """Drop a rank's node from the state; the machine itself is not touched."""
        self.terraform(stack.name).state_rm(_address(stack, rank))

    def take_existing(self, stack: Stack, error: TerraformError) -> bool:
        """Import what an apply could not create because it is there; False where the error names nothing of the kind."""
        found = existing(error.diagnostics)
        for address, identity in found:
            self.terraform(stack.name).import_resource(address, identity)
        return bool(found)

    def settle(self, stack: Stack, tell: Tell) -> None:
        """Wait for a Terraform that outlived its parent, end it where it takes too long, and remove the lock of a dead one."""
        terraform = self.terraform(stack.name)
        if terraform.survivor():
            tell(stack.name, "an earlier Terraform is still at work; waiting for it")
        unseen = died_unseen(terraform.folder)
        terraform.settle(patience=PATIENCE)
        self.prepare(stack)
        if stack.backend.kind == "local":
            return  # the system releases a dead process's lock
        if (lock := terraform.lock()) is None:
            return
        if not _dead(lock, unseen=unseen):
            held = f"{stack.name}: its state is locked by {lock.who} since {lock.created} (lock {lock.id})"
            raise TerraformError([Diagnostic(code="SKY-APPLY-305", summary=held)])
        tell(stack.name, f"removing the state lock that {lock.who} left behind")
        terraform.force_unlock(lock.id)

    def classify(self, error: TerraformError) -> tuple[str, str]:
        """(kind, code): kind capacity, quota, permission or unknown; code the cloud's own word, "" where it gave none."""
        return classify(error.diagnostics)


def _address(stack: Stack, rank: str) -> str:
    """A rank's node in its stack."""
    return f'{NODE_TYPES[stack.cloud]}.node["{rank}"]'


def _dead(lock: Lock, *, unseen: bool) -> bool:
    """Whether a lock's holder is gone.

    The caller holds the job's lease and no Terraform of the folder lives: a lock from this machine is a dead one's.  From another machine it may be
    a survivor that is still writing its state, until it is old.
    """
    if lock.who.rpartition("@")[2] == socket.gethostname() or unseen:
        return True
    try:
        created = datetime.fromisoformat(lock.created.split(".")[0].removesuffix(" +0000 UTC")).replace(tzinfo=UTC)
    except ValueError:
        return False
    return datetime.now(UTC) - created > LOCK_AGE


def _telling(stack: Stack, tell: Tell) -> Callable[[Event], None]:
    return lambda event: tell(stack.name, event.message)
