"""Nebius by its SDK (gRPC), which is imported when a lister is made, never before.

Pages, waiting for operations and the mapping of errors are here; which machines are wanted is the caller's business.
A project is in one region, so the project says it.  Boot disks are managed ones, which Nebius deletes with their machine; reserved addresses are not.
Never run against live Nebius: held to the SDK's own descriptors (0.6.29) by a gRPC server of our own.
"""

# pyright: basic

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from planner.clouds import errors_map
from planner.clouds.asked import of_nebius
from planner.clouds.port import Instance, Where
from planner.model.errors import CloudError
from planner.model.labels import TAG_PREFIX, label_value, own_key, tags_of

T = TypeVar("T")

TOKEN_VARIABLE = "NEBIUS_IAM_TOKEN"  # noqa: S105 - its name
PAGE = 100
RETRIES = 3
ASK_SECONDS = 60.0
ENDING_SECONDS = 900.0
NOT_FOUND = "NOT_FOUND"
#: an instance that is not listed here is on its way out
STATES = {
    "UNSPECIFIED": "pending",
    "CREATING": "pending",
    "STARTING": "pending",
    "RUNNING": "running",
    "UPDATING": "running",
    "STOPPING": "stopping",
    "STOPPED": "stopped",
    "ERROR": "stopped",
}
#: how ids of reserved addresses begin
ADDRESS_PREFIX = "vpcallocation-"
SPOT_FIELDS = ("preemptible", "follows_spot_price", "spot_pricing_policy")


class NebiusLister:
    """One project.  `open_sdk`, `retries` and `seconds` are for tests; each look opens the SDK and closes it, for it holds a thread while it is open."""

    def __init__(
        self,
        where: Where,
        *,
        open_sdk: Callable[[], Any] | None = None,
        retries: int = RETRIES,
        seconds: float = ASK_SECONDS,
    ) -> None:
        self._open = open_sdk or sdk_opener(where)
        self._where = where
        self._limits: dict[str, Any] = {"retries": retries, "timeout": seconds}

    def instances(self, *, project: str, job: str | None, generation: int | None = None) -> tuple[Instance, ...]:
        """See `ResourceLister`.  Nebius cannot be asked by labels, so all machines and reserved addresses of the project are read.

        A launch that died may have reserved an address without a machine.
        """
        known = {"skyplan:project": project} | ({"skyplan:job": job} if job is not None else {})
        labels = {own_key(key.removeprefix(TAG_PREFIX)): label_value(value) for key, value in known.items()}
        if generation is not None:
            labels[own_key("generation")] = str(generation)
        # the machines last: an address that gets its machine while we look must not be taken for a leftover
        addresses, machines = self._asked("instances.list", lambda sdk: (self._reserved(sdk), self._listed(sdk)))
        taken = {card.ip_address.allocation_id for machine in machines for card in machine.spec.network_interfaces}
        found = [
            _instance(machine, known)
            for machine in machines
            if labels.items() <= dict(machine.metadata.labels).items() and machine.status.state.name in STATES
        ]
        found += [
            _leftover(address, known)
            for address in addresses
            if labels.items() <= dict(address.metadata.labels).items()
            and own_key("generation") in address.metadata.labels  # a tunnel's endpoints wait for their nodes on purpose
            and address.status.state.name not in {"ASSIGNED", "DELETING"}
            and address.metadata.id not in taken
        ]
        return tuple(sorted(found, key=lambda i: (i.rank, i.launched_at, i.id)))

    def terminate(self, ids: Sequence[str]) -> None:
        """See `ResourceLister`: deletes (one that is only stopped keeps its address and its name).  One refusal keeps no other alive."""

        def end(sdk: Any) -> None:
            problems: list[CloudError] = []
            begun: list[Any] = []
            for one in ids:
                try:
                    begun += of_nebius("instances.delete", lambda one=one: self._delete(sdk, one))
                except CloudError as error:
                    problems.append(error)
            for operation in begun:
                try:
                    of_nebius("instances.delete", lambda o=operation: _wait(o))
                except CloudError as error:
                    problems.append(error)
            if problems:
                raise problems[0]

        self._asked("instances.delete", end)

    def _asked(self, operation: str, ask: Callable[[Any], T]) -> T:
        sdk = of_nebius("credentials", self._open)
        try:
            return of_nebius(operation, lambda: ask(sdk))
        finally:
            sdk.sync_close()

    def _listed(self, sdk: Any) -> list[Any]:
        from nebius.api.nebius.compute.v1 import InstanceServiceClient, ListInstancesRequest  # noqa: PLC0415 - slow

        return self._pages(sdk, InstanceServiceClient(sdk), ListInstancesRequest)

    def _reserved(self, sdk: Any) -> list[Any]:
        from nebius.api.nebius.vpc.v1 import AllocationServiceClient, ListAllocationsRequest  # noqa: PLC0415 - slow

        return self._pages(sdk, AllocationServiceClient(sdk), ListAllocationsRequest)

    def _pages(self, sdk: Any, client: Any, request: Any) -> list[Any]:
        parent = self._where.account or sdk.parent_id()
        if not parent:
            hint = "set `project` of the target in skyplan.yaml, or parent-id in the CLI's profile"
            raise errors_map.no_account("Nebius", "project", hint)
        found, token = [], ""
        while True:
            asked = request(parent_id=parent, page_size=PAGE, page_token=token)
            page = client.list(asked, **self._limits).wait()
            found += page.items
            if not (token := page.next_page_token):
                return found

    def _delete(self, sdk: Any, one: str) -> list[Any]:
        """The operation that deletes it; none where it is gone already."""
        from nebius.aio.service_error import RequestError  # noqa: PLC0415 - optional
        from nebius.api.nebius.compute.v1 import DeleteInstanceRequest, InstanceServiceClient  # noqa: PLC0415 - slow
        from nebius.api.nebius.vpc.v1 import AllocationServiceClient, DeleteAllocationRequest  # noqa: PLC0415

        try:
            if one.startswith(ADDRESS_PREFIX):
                return [AllocationServiceClient(sdk).delete(DeleteAllocationRequest(id=one), **self._limits).wait()]
            return [InstanceServiceClient(sdk).delete(DeleteInstanceRequest(id=one), **self._limits).wait()]
        except RequestError as error:
            if error.status.code.name == NOT_FOUND:
                return []
            raise


def _wait(operation: Any) -> None:
    from nebius.aio.service_error import RequestError  # noqa: PLC0415 - optional

    try:
        operation.sync_wait(timeout=ENDING_SECONDS)
    except RequestError as error:
        if error.status.code.name != NOT_FOUND:
            raise


def _instance(found: Any, known: dict[str, str]) -> Instance:
    created = found.metadata.created_at
    resources = found.spec.resources
    cards = list(found.status.network_interfaces)
    spot = any(found.spec.check_presence(field) for field in SPOT_FIELDS)
    return Instance(
        id=found.metadata.id,
        state=STATES[found.status.state.name],
        zone="",
        instance_type=f"{resources.platform}_{resources.preset}",
        capacity="spot" if spot else "on_demand",
        address=cards[0].ip_address.address.partition("/")[0] if cards else "",
        launched_at=created.isoformat() if created is not None else "",
        tags={**tags_of(dict(found.metadata.labels)), **known},
    )


def _leftover(found: Any, known: dict[str, str]) -> Instance:
    return Instance(
        id=found.metadata.id,
        state="leftover",
        zone="",
        instance_type="",
        capacity="",
        address=found.status.details.allocated_cidr.partition("/")[0],
        launched_at="",
        tags={**tags_of(dict(found.metadata.labels)), **known},
    )


def sdk_opener(where: Where) -> Callable[[], Any]:
    """Opens the SDK: with the token in the environment, else as the CLI's profile, which may be a service account."""
    try:
        from nebius.aio.cli_config import Config  # noqa: PLC0415 - optional
        from nebius.sdk import SDK  # noqa: PLC0415
    except ImportError as error:
        raise errors_map.missing("Nebius", "its SDK", "nebius") from error
    if where.role is not None:
        raise errors_map.no_credentials("a role cannot be taken on; use a profile that is it already", "Nebius")
    agent: dict[str, Any] = {"user_agent_prefix": "skyplan"}
    if where.account:
        agent["parent_id"] = where.account

    def opened() -> Any:
        if os.environ.get(TOKEN_VARIABLE):
            return SDK(**agent)
        return SDK(config_reader=Config(), **agent)

    return opened
