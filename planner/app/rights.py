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


Policies = tuple[tuple["PolicyDocument", ...], tuple[str, ...]]


class JobRights:
    """The rights of one job in each place, worked out once a place: most of twenty ranked placements share one."""

    def __init__(self, workload: Workload, project: Project) -> None:
        self._workload, self._project = workload, project
        self._paths: dict[tuple[str, str], tuple[DataPath, ...]] = {}
        self._grants: dict[tuple[str, str, bool], tuple[Grant, ...]] = {}
        self._policies: dict[tuple[str, str, str, bool], Policies] = {}
        self._minted: dict[tuple[str, str, str, bool], tuple[DataIdentity, ...]] = {}

    def paths(self, placement: Placement) -> tuple[DataPath, ...]:
        """As `placement_paths`: by cloud and target."""
        at = (placement.cloud, placement.target)
        if at not in self._paths:
            self._paths[at] = placement_paths(self._workload, placement, self._project)
        return self._paths[at]

    def grants(self, placement: Placement) -> tuple[Grant, ...]:
        """As `placement_grants`: by cloud, target and whether it is part of a tunnelled job."""
        at = (placement.cloud, placement.target, bool(placement.tunnel_addresses))
        if at not in self._grants:
            self._grants[at] = placement_grants(self._workload, placement, self._project)
        return self._grants[at]

    def policies(self, placement: Placement) -> Policies:
        """What the nodes' own identity may do in the cloud's own shape, and what owners of stores have to allow themselves; by region."""
        at = (placement.cloud, placement.target, placement.region, bool(placement.tunnel_addresses))
        if at not in self._policies:
            paths, whole = self.paths(placement), self.grants(placement)
            held = held_by_nodes(whole, paths)
            documents, snippets = _of_nodes(self._workload, placement, self._project, held, paths)
            more = data_snippets(self._workload, placement, self._project, whole, paths)
            self._policies[at] = documents, tuple(dict.fromkeys((*snippets, *more)))
        return self._policies[at]

    def minted(self, placement: Placement) -> tuple[DataIdentity, ...]:
        """What the broker becomes for the nodes; by region."""
        at = (placement.cloud, placement.target, placement.region, bool(placement.tunnel_addresses))
        if at not in self._minted:
            paths, whole = self.paths(placement), self.grants(placement)
            self._minted[at] = data_identities(self._workload, placement, self._project, whole, paths)
        return self._minted[at]


def _of_nodes(
    workload: Workload,
    placement: Placement,
    project: Project,
    grants: tuple[Grant, ...],
    paths: Sequence[DataPath],
) -> Policies:
    target, region = target_of(project, placement), placement.region
    account = target.account
    match Cloud(placement.cloud):
        case Cloud.AWS:
            tokens = aws.token_policy(paths)
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
