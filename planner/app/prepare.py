"""What must stand before a launch: the network of a region, a tunnel's endpoints, the access of a job.  The deployer's work.

Each (target, region) is prepared once per call.  A network is shared by jobs, so it is changed under a lease of its own, and a job's access stack is
noted under that lease: whoever destroys the network next sees that it is in use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from planner.app.lease import held
from planner.app.steps import apply_stack, destroy_stack, stack_of
from planner.model.errors import TerraformError
from planner.model.offer import parts_of_offer_id
from planner.model.record import StackStatus

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.model.record import Run, Stack
    from planner.model.stack import AccessInput, AddressInput, NetworkInput, StackInput, StackSet
    from planner.state.writer import Writer

NETWORK_WAIT_SECONDS = 600.0
Place = tuple[str, str, str]
Outputs = dict[str, Any]
Users = list[tuple["StackInput", dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A place that is ready: outputs of its access stack, and of a tunnel's part the reserved endpoints by rank key.

    rights_made  when the access stack's rights were made or changed by this call; None where they stood before
    """

    access: Outputs
    rights_made: datetime | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict[str, str])
    address_ids: Mapping[str, str] = field(default_factory=dict[str, str])


class Preparer:
    """Prepares places for one job, each once."""

    def __init__(self, ports: Ports, writer: Writer) -> None:
        self._ports = ports
        self._writer = writer
        self._made: dict[Place, Prepared] = {}

    def prepare(self, stacks: StackSet) -> Prepared:
        """The place of a placement in one cloud.  Raises Refused, LeaseHeld."""
        from stacks.wiring import access_variables  # noqa: PLC0415 - beside its use

        place = _place(stacks)
        if place not in self._made:
            acc = stacks.access
            stood = self._stands(acc)
            network = self._network(stacks.network, lambda made: [(acc, access_variables(acc, made))])
            access = self._apply(acc, access_variables(acc, network))
            self._made[place] = Prepared(access=access, rights_made=None if stood else self._ports.clock.now())
        return self._made[place]

    def prepare_parts(
        self, sets_of: Callable[[Mapping[str, str]], tuple[StackSet, ...]]
    ) -> tuple[tuple[StackSet, Prepared], ...]:
        """The places of a job in several clouds: every network, then every endpoint, then what needs to know them all.

        `sets_of` makes the stacks' inputs, given the endpoints by rank key.  Raises Refused, LeaseHeld.
        """
        from stacks.wiring import access_variables, address_variables, peer_variables  # noqa: PLC0415 - beside its use

        networks: list[Outputs] = []
        parts = [(stacks, _endpoints(stacks)) for stacks in sets_of({})]
        stood = {stacks.access.name for stacks, _ in parts if self._stands(stacks.access)}
        for stacks, adr in parts:
            self._made.pop(_place(stacks), None)  # the job's access there becomes the tunnel's
            acc = stacks.access

            def users(made: Outputs, acc: AccessInput = acc, adr: AddressInput = adr) -> Users:
                return [
                    (adr, address_variables(adr, made)),
                    (acc, access_variables(acc, made) | peer_variables([])),
                ]

            networks.append(self._network(stacks.network, users))
        reserved = [
            self._apply(adr, address_variables(adr, network)) for (_, adr), network in zip(parts, networks, strict=True)
        ]
        everyone = {rank: address for part in reserved for rank, address in part["endpoints"].items()}
        made: list[tuple[StackSet, Prepared]] = []
        for stacks, network, own in zip(sets_of(everyone), networks, reserved, strict=True):
            # its own part's too: nodes of one part meet by their public addresses as well
            variables = access_variables(stacks.access, network) | peer_variables(everyone.values())
            ready = Prepared(
                access=self._apply(stacks.access, variables),
                rights_made=None if stacks.access.name in stood else self._ports.clock.now(),
                endpoints=own["endpoints"],
                address_ids=own["address_ids"],
            )
            made.append((stacks, ready))
        return tuple(made)

    def _stands(self, access: AccessInput) -> bool:
        """Whether an earlier call made the stack as it is; asked before this call notes it as touched."""
        known = self._ports.record.stack(access.name)
        return known is not None and known.status is StackStatus.APPLIED and known.document == self._ports.synth(access)

    def _network(self, net: NetworkInput, users: Callable[[Outputs], Users]) -> Outputs:
        """Its outputs.  `users` are noted before its lease is given back, with variables that destroying them would need."""
        ports, writer = self._ports, self._writer
        with held(ports, net.name, wait_seconds=NETWORK_WAIT_SECONDS):
            outputs = apply_stack(ports, writer, stack_of(net, ports.synth(net), {}))
            for user, variables in users(outputs):
                stack = stack_of(user, ports.synth(user), variables)
                writer.adopt(replace(stack, status=StackStatus.TOUCHED), ports.clock.now())
        return outputs

    def _apply(self, given: StackInput, variables: Mapping[str, Any]) -> Outputs:
        return apply_stack(self._ports, self._writer, stack_of(given, self._ports.synth(given), variables))


def give_back_endpoints(ports: Ports, writer: Writer, run: Run | None) -> None:
    """End the endpoints that no part of `run` uses: those of splits that did not run would be paid for.  A refusal only warns."""
    mine = ports.record.stacks(writer.job)
    split = run is not None and bool(parts_of_offer_id(run.offer_id))
    used = {_where(s) for s in mine if split and run and (s.kind, s.generation) == ("compute", run.generation)}
    for stack in mine:
        if stack.kind == "addresses" and _where(stack) not in used:
            try:
                destroy_stack(ports, writer, stack)
            except TerraformError as error:
                ports.tell(stack.name, f"could not be given back: {error}")


def _where(stack: Stack) -> Place:
    return (stack.cloud, stack.target, stack.region)


def _endpoints(stacks: StackSet) -> AddressInput:
    if stacks.addresses is None:
        raise ValueError("a part of a job in several clouds has endpoints")
    return stacks.addresses


def _place(stacks: StackSet) -> Place:
    return (stacks.network.cloud.value, stacks.network.target, stacks.network.region)
