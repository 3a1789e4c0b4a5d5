"""What the broker becomes for a placement's nodes: one identity per cloud and target whose stores it mints credentials for, with the job's prefixes there.

Decides which grants go to it in place of the nodes' own identity, and what owners of stores have to allow it.  Names are `planner.model.control_names`'s, which
the broker computes too.  Mints nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.app.lookup import DEFAULT_PROVIDER_VERSIONS, target_of
from planner.iam import aws, gcp, nebius
from planner.iam.control import DATA_BOUNDARY, NODE_BOUNDARY
from planner.model.control_names import data_identity_name
from planner.model.offer import Cloud
from planner.model.stack import DataIdentity
from planner.model.workload import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.grants import Grant
    from planner.model.plan import Placement
    from planner.model.project import Project, Target
    from planner.model.reach import DataPath
    from planner.model.stack import PolicyDocument
    from planner.model.workload import Workload


def held_by_nodes(grants: Sequence[Grant], paths: Sequence[DataPath]) -> tuple[Grant, ...]:
    """What the nodes' own identity holds: what the broker mints, it holds not, so that a node that comes back late writes nothing."""
    without = {path.uri for path in paths if path.minted}
    return tuple(grant for grant in grants if grant.resource not in without)


def data_identities(
    workload: Workload, placement: Placement, project: Project, grants: Sequence[Grant], paths: Sequence[DataPath]
) -> tuple[DataIdentity, ...]:
    """In the order of cloud and target.  `grants` and `paths` are the placement's."""
    return tuple(
        _identity(holder, mine, workload, placement, project)
        for holder, mine in _held(project, grants, paths)
        if holder.cloud is not Cloud.AZURE
    )


def data_snippets(
    workload: Workload, placement: Placement, project: Project, grants: Sequence[Grant], paths: Sequence[DataPath]
) -> tuple[str, ...]:
    """What owners of stores have to allow these identities themselves."""
    out: list[str] = []
    for holder, mine in _held(project, grants, paths):
        name = data_identity_name(holder.cloud, project.name, workload.name, _place(placement))
        match holder.cloud:
            case Cloud.GCP:
                out += gcp.snippets(mine, account=holder.account)
            case Cloud.NEBIUS:
                out += nebius.snippets(mine, group=name, tenant=holder.tenant)
            case _:
                pass
    return tuple(out)


def _held(
    project: Project, grants: Sequence[Grant], paths: Sequence[DataPath]
) -> list[tuple[Target, tuple[Grant, ...]]]:
    """Targets that hold an identity, each with what it may do."""
    held: dict[tuple[Cloud, str], set[str]] = {}
    for path in paths:
        if path.minted:
            cloud = Cloud(Store(path.uri.partition("://")[0]).cloud)
            held.setdefault((cloud, dict(path.settings)["identity_target"]), set()).add(path.uri)
    return [
        (
            next(one for one in project.targets if (one.cloud, one.name) == place),
            tuple(grant for grant in grants if grant.resource in uris),
        )
        for place, uris in sorted(held.items())
    ]


def _identity(
    holder: Target, grants: tuple[Grant, ...], workload: Workload, placement: Placement, project: Project
) -> DataIdentity:
    cloud, account = holder.cloud, holder.account or ""
    region = placement.region if holder == target_of(project, placement) else _region(workload, grants)
    name = data_identity_name(cloud, project.name, workload.name, _place(placement))
    documents: tuple[PolicyDocument, ...]
    match cloud:
        case Cloud.AWS:
            documents = aws.policies(grants, account=account, region=region, kms_key_arn=holder.kms_key_arn)
        case Cloud.GCP:
            documents = gcp.policies(grants, account=account, region=region)
        case Cloud.NEBIUS:
            documents = nebius.policies(grants, account=account, region=region, group=name)
        case Cloud.AZURE:  # nothing can be become there: the broker signs with its own rights
            documents = ()
    return DataIdentity(
        cloud=cloud,
        target=holder.name,
        account=account,
        name=name,
        broker=holder.broker_role or "",
        policies=documents,
        provider_version=dict(project.provider_versions).get(cloud.value, DEFAULT_PROVIDER_VERSIONS[cloud]),
        region=region,
        role_arn=holder.deployer_role,
        boundary=_boundary(holder),
        tenant=holder.tenant,
        resource_group=holder.resource_group,
    )


def _place(placement: Placement) -> tuple[str, str, str]:
    return placement.cloud, placement.target, placement.region


def _region(workload: Workload, grants: tuple[Grant, ...]) -> str:
    """Of the first store that says its region; "" where none does."""
    parts = [d.at for d in workload.data] + [part.at for part in (workload.checkpoint, workload.output) if part]
    known = {at.uri: at.region for at in parts}
    return next((region for grant in grants if (region := known.get(grant.resource))), "")


def _boundary(holder: Target) -> str | None:
    """AWS: the foundation makes the boundary of data identities beside that of nodes, which the target names."""
    bound = holder.permissions_boundary
    if bound is None or not bound.endswith(NODE_BOUNDARY):
        return bound
    return f"{bound.removesuffix(NODE_BOUNDARY)}{DATA_BOUNDARY}"
