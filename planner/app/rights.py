"""What a placement's nodes may do and how they reach each store: grants, paths, and the documents of the cloud that the nodes are in.

The only place that knows which renderer of `planner.iam` a cloud has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.app.data_identities import data_identities, data_snippets, held_by_nodes
from planner.app.lookup import target_of
from planner.iam import aws, azure, gcp, nebius
from planner.iam.grants import grants_for
from planner.iam.paths import data_paths
from planner.model.digest import digest
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.plan import Placement
    from planner.model.project import Project
    from planner.model.reach import DataPath
    from planner.model.stack import DataIdentity, PolicyDocument
    from planner.model.workload import Workload


def placement_grants(workload: Workload, placement: Placement, project: Project) -> tuple[Grant, ...]:
    """What the nodes of this placement may do with data, and, of a part of a tunnelled job, how they prove who they are."""
    found = grants_for(workload, target_of(project, placement), Cloud(placement.cloud), project)
    meeting = project.rendezvous if placement.tunnel_addresses else None
    secret = meeting.secret(placement.cloud) if meeting else None
    if secret is None:
        return found
    join = Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource=f"{secret.store}://{secret.path}",
        reason="the secret with which a node joins its job's tunnel",
    )
    return tuple(sorted({*found, join}))


def placement_paths(workload: Workload, placement: Placement, project: Project) -> tuple[DataPath, ...]:
    """How the nodes of this placement reach each store."""
    return data_paths(workload, project, target_of(project, placement), Cloud(placement.cloud))


def grants_digest(grants: Sequence[Grant]) -> str:
    """Digest of grants in order."""
    return digest([g.document() for g in grants])


def policies(
    workload: Workload, placement: Placement, project: Project
) -> tuple[tuple[PolicyDocument, ...], tuple[str, ...]]:
    """What the nodes' own identity may do in the cloud's own shape, and what owners of stores have to allow themselves."""
    paths = placement_paths(workload, placement, project)
    whole = placement_grants(workload, placement, project)
    documents, snippets = _of_nodes(workload, placement, project, held_by_nodes(whole, paths))
    more = data_snippets(workload, placement, project, whole, paths)
    return documents, tuple(dict.fromkeys((*snippets, *more)))


def minted_identities(workload: Workload, placement: Placement, project: Project) -> tuple[DataIdentity, ...]:
    """What the broker becomes for the nodes of this placement."""
    paths = placement_paths(workload, placement, project)
    return data_identities(workload, placement, project, placement_grants(workload, placement, project), paths)


def _of_nodes(
    workload: Workload, placement: Placement, project: Project, grants: tuple[Grant, ...]
) -> tuple[tuple[PolicyDocument, ...], tuple[str, ...]]:
    target, region = target_of(project, placement), placement.region
    account = target.account
    match Cloud(placement.cloud):
        case Cloud.AWS:
            tokens = aws.token_policy(placement_paths(workload, placement, project))
            made = aws.policies(grants, account=account, region=region, kms_key_arn=target.kms_key_arn)
            return (*made, *tokens), ()
        case Cloud.GCP:
            return (
                gcp.policies(grants, account=account, region=region),
                gcp.snippets(grants, account=account, kms_key=target.kms_key_arn),
            )
        case Cloud.AZURE:
            return (
                azure.policies(grants, account=account, region=region),
                azure.snippets(grants, account=account, region=region),
            )
        case Cloud.NEBIUS:
            group = nebius.group_name(project.name, workload.name, target.name, region)
            return (
                nebius.policies(grants, account=account, region=region, group=group),
                nebius.snippets(grants, group=group, tenant=target.tenant),
            )
