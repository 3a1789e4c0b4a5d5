"""What stacks will hold of rights, from their inputs alone: what `skyplan audit PLAN` looks at, with no CDK, no Node and no Terraform.

The blocks that matter are written down as the stacks write them, and read by the same readers as any Terraform.  How long a credential lasts and whether
it is renewed follows from how nodes reach their stores: a platform's own identity and a federated one are renewed by the SDKs, what the broker mints by the
agent on the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from planner.iam.read import written_aws, written_azure, written_gcp, written_nebius
from planner.iam.read.terraform import blocks_of, joined, rights_of
from planner.iam.read.written import Blocks
from planner.iam.read.written_minted import minted, providers
from planner.iam.secrets import scan_document
from planner.model.control import Operation
from planner.model.control_names import DATA_SESSION_SECONDS
from planner.model.digest import set_only
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, Leak, LeasePath
from planner.model.reach import DataPath, Reach
from planner.model.stack import AccessInput, AddressInput, AnyStack, ComputeInput, FoundationInput, NetworkInput
from planner.model.workload import Workload

_WRITTEN: dict[Cloud, ModuleType] = {
    Cloud.AWS: written_aws,
    Cloud.GCP: written_gcp,
    Cloud.AZURE: written_azure,
    Cloud.NEBIUS: written_nebius,
}
_KINDS = {NetworkInput: "network", AddressInput: "addresses", AccessInput: "access", ComputeInput: "compute"}
#: seconds that a node's own credentials last, where the cloud says so: EC2 gives roles' up to 6 hours, Google's metadata server tokens of 1 hour;
#: Azure decides by itself and Nebius does not say (notes on IAM 2.1)
_PLATFORM_SECONDS = {Cloud.AWS: 6 * 3600, Cloud.GCP: 3600}
#: of federation: what SDKs ask for unless they are told otherwise
_FEDERATED_SECONDS = 3600
#: how a store's own cloud hands out credentials that the broker would mint
_MINTED = {"s3": "assume-role", "gs": "gcp-token", "az": "azure-sas", "nebius": "nebius-key"}


def read_inputs(stacks: Sequence[AnyStack]) -> Audited:
    """All that the stacks will hold, without places in files, and what the control identities need for them."""
    parts = [_read(given) for given in stacks]
    access = [given for given in stacks if isinstance(given, AccessInput)]
    rest = Audited(
        leases=tuple(lease for given in access for lease in _leases(given)),
        leaks=tuple(leak for given in stacks for leak in _leaks(given)),
        allowed=tuple(dict.fromkeys(one for given in access for one in _allowed(given.workload))),
        needs=planned_needs(stacks, operations_of),
    )
    return joined(*parts, rest)


def document_of(given: AnyStack) -> dict[str, Any]:
    """Terraform JSON of the blocks of a stack that hold rights."""
    written = _WRITTEN[given.cloud]
    blocks: Blocks = written.blocks(given)
    beside: dict[str, Any] = {}
    if isinstance(given, AccessInput):
        minted(blocks, given)
        beside = providers(given)
    return {
        "//": {"metadata": {"backend": given.backend.kind, "stackName": given.name}},
        "provider": {**written.provider(given), **beside},
        **blocks,
    }


def _read(given: AnyStack) -> Audited:
    return rights_of(blocks_of(document_of(given), file="", text=""))


def _leases(given: AccessInput) -> Iterator[LeasePath]:
    hours = given.workload.constraints.stop_after_hours or given.workload.work.hours
    for path in given.data_paths:
        kind, seconds = _kind(path, given.cloud)
        yield LeasePath(
            cloud=given.cloud,
            origin=f"{given.name} {path.uri}",
            job=given.workload.name,
            kind=kind,
            lifetime_seconds=seconds,
            renewed=not path.out_of_reach,
            run_hours=hours,
        )


def _kind(path: DataPath, cloud: Cloud) -> tuple[str, int | None]:
    match path.reach:
        case Reach.PLATFORM:
            return "platform", _PLATFORM_SECONDS.get(cloud)
        case Reach.FEDERATION:
            return "federation", _FEDERATED_SECONDS
        case Reach.BROKER:
            return _MINTED.get(path.uri.partition("://")[0], "broker"), DATA_SESSION_SECONDS if path.minted else None


def _leaks(given: AnyStack) -> tuple[Leak, ...]:
    return scan_document(set_only(given), origin=given.name)


def _allowed(workload: Workload) -> Iterator[tuple[str, str, bool]]:
    for data in workload.data:
        yield workload.name, data.at.uri, False
    for part in (workload.checkpoint, workload.output):
        if part is not None:
            yield workload.name, part.at.uri, True


def planned_needs(
    stacks: Sequence[AnyStack], operations: Callable[[Cloud], Sequence[Operation]]
) -> dict[tuple[Identity, Cloud], dict[str, str]]:
    """By control identity and cloud: what the cloud is asked for, with the operation that needs it, as far as these kinds of stacks are at hand.

    skyplan's own calls count wherever there is a stack of that cloud.  The foundation is applied by an administrator and needs nothing of these.
    """
    present: dict[Cloud, set[str]] = {}
    for given in stacks:
        if not isinstance(given, FoundationInput):
            present.setdefault(given.cloud, {""}).add(_KINDS[type(given)])
            if isinstance(given, AccessInput):
                for one in given.data_identities:
                    present.setdefault(one.cloud, {""}).add(_KINDS[AccessInput])
    out: dict[tuple[Identity, Cloud], dict[str, str]] = {}
    for cloud, kinds in present.items():
        for operation in operations(cloud):
            if operation.stack in kinds:
                needs = out.setdefault((operation.identity, cloud), {})
                for action in operation.actions:
                    needs.setdefault(action, _told(operation))
    return out


def _told(operation: Operation) -> str:
    where = f" ({operation.stack})" if operation.stack else ""
    return f"{operation.step.value} {operation.resource}{where}"


def operations_of(cloud: Cloud) -> Sequence[Operation]:
    """What skyplan does in that cloud."""
    table: Sequence[Operation] = import_module(f"planner.iam.operations.{cloud.value}").OPERATIONS
    return table
