"""The stub provider's log as a cloud that can be looked at: machines by tags, with the same words as the real listers, and an end for them.

Like the real ones, a lister shows what a lost machine has left behind: an Azure interface or a Nebius address that no machine has, state `leftover`.
Ending writes `delete` lines, so that Terraform misses the thing at its next refresh.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from planner.clouds.port import RANK_TAG, Instance, Where
from planner.model.labels import label_value, tags_of
from tests.emulators import stub_provider

State = dict[str, Any]
Found = dict[tuple[str, str], State]

MACHINES = {
    "aws": "aws_instance",
    "gcp": "google_compute_instance",
    "azure": "azurerm_linux_virtual_machine",
    "nebius": "nebius_compute_v1_instance",
}
#: what a machine hangs on, where that is a resource of its own
HELD = {"azure": "azurerm_network_interface", "nebius": "nebius_vpc_v1_allocation"}


class StubCloud:
    """Implements `planner.clouds.port.Clouds` over a STUB_LOG."""

    def __init__(self, log: Path) -> None:
        self.log = log

    def lines(self) -> list[State]:
        if not self.log.exists():
            return []
        with self.log.open(encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return [json.loads(line) for line in file.read().splitlines()]

    def alive(self) -> Found:
        """Every resource that exists, by (type, id)."""
        return stub_provider.alive(self.lines())

    def of(self, kind: str) -> dict[str, State]:
        """Resources of a type, by id."""
        return {one: state for (type_, one), state in self.alive().items() if type_ == kind}

    def created(self, kind: str) -> int:
        """How many of a type were ever made."""
        return sum(line["verb"] == "create" and line["type"] == kind for line in self.lines())

    def end(self, ids: Sequence[str]) -> None:
        """What is deleted takes with it what only joins it to something."""
        gone = {(kind, one) for kind, one in self.alive() if one in set(ids)}
        for (kind, one), state in self.alive().items():
            if kind.endswith("_association") and state.get("network_interface_id") in ids:
                gone.add((kind, one))
        with self.log.open("a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for kind, one in sorted(gone):
                file.write(json.dumps({"verb": "delete", "type": kind, "id": one, "at": time.time()}) + "\n")

    def lister(self, where: Where) -> StubLister:
        """See `Clouds`."""
        return StubLister(self, where)


class StubLister:
    """One place; see `ResourceLister`."""

    def __init__(self, cloud: StubCloud, where: Where) -> None:
        self._cloud = cloud
        self._where = where

    def instances(self, *, project: str, job: str, generation: int | None = None) -> tuple[Instance, ...]:
        by_label = self._where.cloud in {"gcp", "nebius"}
        wanted = {"skyplan:project": project, "skyplan:job": job}
        if generation is not None:
            wanted["skyplan:generation"] = str(generation)
        held = {key: label_value(value) for key, value in wanted.items()} if by_label else wanted
        alive = self._cloud.alive()
        found = [one for one in READ[self._where.cloud](alive, self._where.region) if held.items() <= one.tags.items()]
        return tuple(sorted(found, key=lambda i: (i.tags.get(RANK_TAG, ""), i.launched_at, i.id)))

    def terminate(self, ids: Sequence[str]) -> None:
        self._cloud.end(ids)


def _aws(alive: Found, _: str) -> Iterator[Instance]:
    for one, state in _kind(alive, MACHINES["aws"]):
        spot = bool(state.get("instance_market_options"))
        yield _instance(one, state["tags"], kind=state["instance_type"], spot=spot, address=state["private_ip"])


def _gcp(alive: Found, region: str) -> Iterator[Instance]:
    for one, state in _kind(alive, MACHINES["gcp"]):
        if state["zone"].rpartition("-")[0] == region:
            spot = state["scheduling"][0]["provisioning_model"] == "SPOT"
            address = state["network_interface"][0]["network_ip"]
            tags = tags_of(state["labels"])
            yield _instance(one, tags, zone=state["zone"], kind=state["machine_type"], spot=spot, address=address)


def _azure(alive: Found, region: str) -> Iterator[Instance]:
    joined: set[str] = set()
    for one, state in _kind(alive, MACHINES["azure"]):
        joined |= set(state["network_interface_ids"])
        if state["location"] == region:
            tags = {key.lower(): value for key, value in state["tags"].items()}
            yield _instance(one, tags, kind=state["size"], spot=state.get("priority") == "Spot")
    for one, state in _kind(alive, HELD["azure"]):
        if one not in joined and state["location"] == region:
            yield _instance(one, {key.lower(): value for key, value in state["tags"].items()}, state="leftover")


def _nebius(alive: Found, _: str) -> Iterator[Instance]:
    joined: set[str] = set()
    for one, state in _kind(alive, MACHINES["nebius"]):
        joined |= {card["ip_address"].get("allocation_id") for card in state["network_interfaces"]}
        kind = f"{state['resources']['platform']}_{state['resources']['preset']}"
        yield _instance(one, tags_of(state["labels"]), kind=kind, spot=bool(state.get("preemptible")))
    for one, state in _kind(alive, HELD["nebius"]):
        if one not in joined:
            yield _instance(one, tags_of(state["labels"]), state="leftover")


READ: dict[str, Callable[[Found, str], Iterator[Instance]]] = {
    "aws": _aws,
    "gcp": _gcp,
    "azure": _azure,
    "nebius": _nebius,
}


def _kind(alive: Found, kind: str) -> Iterator[tuple[str, State]]:
    return ((one, state) for (type_, one), state in alive.items() if type_ == kind)


def _instance(
    one: str,
    tags: dict[str, str],
    *,
    state: str = "running",
    zone: str = "",
    kind: str = "",
    spot: bool = False,
    address: str = "",
) -> Instance:
    return Instance(
        id=one,
        state=state,
        zone=zone,
        instance_type=kind,
        capacity="spot" if spot else "on_demand",
        address=address,
        launched_at="",
        tags={key: value for key, value in tags.items() if key.startswith("skyplan:")},
    )
