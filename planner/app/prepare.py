"""What must stand before a launch: the network of a region, the access of a job in it.  The deployer's work.

Each (target, region) is prepared once per call.  A network is shared by jobs, so it is changed under a lease of its own, and a job's access stack is
noted under that lease: whoever destroys the network next sees that it is in use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from planner.app.lease import held
from planner.app.steps import apply_stack, stack_of
from planner.model.record import StackStatus

if TYPE_CHECKING:
    from planner.app.ports import Ports
    from planner.model.stack import StackSet
    from planner.state.writer import Writer

Outputs = tuple[dict[str, Any], dict[str, Any]]
NETWORK_WAIT_SECONDS = 600.0


class Preparer:
    """Prepares places for one job, each once."""

    def __init__(self, ports: Ports, writer: Writer) -> None:
        self._ports = ports
        self._writer = writer
        self._made: dict[tuple[str, str, str], Outputs] = {}

    def prepare(self, stacks: StackSet) -> Outputs:
        """Outputs of the network and of the access stack.  Raises Refused, LeaseHeld."""
        from stacks.wiring import access_variables  # noqa: PLC0415 - beside its use

        net, acc = stacks.network, stacks.access
        place = (net.cloud.value, net.target, net.region)
        if place in self._made:
            return self._made[place]
        ports, writer = self._ports, self._writer
        with held(ports, net.name, wait_seconds=NETWORK_WAIT_SECONDS):
            network = apply_stack(ports, writer, stack_of(net, ports.synth(net), {}))
            access = stack_of(acc, ports.synth(acc), access_variables(acc, network))
            writer.adopt(replace(access, status=StackStatus.TOUCHED), ports.clock.now())
        made = (network, apply_stack(ports, writer, access))
        self._made[place] = made
        return made
