"""Which node identity a job's nodes have, place by place, as its access stack names it: what a proof's principal is held to.  Pure.

Decides by names that the project, the job and the place give, never by the record: so a forged record cannot make one job's machine pass for another's.
On Nebius the cloud makes the service account's id, which nobody can know beforehand: the operator says it (`principals`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from modules.azure.names import resource_name
from modules.gcp.names import account_id
from modules.text import fit
from planner.app.compose import Place, access_name, network_name
from planner.model.offer import Cloud
from planner.model.plan import Placement, PlacementPlan
from planner.model.project import Project, Target
from planner.model.runtime import NodeIdentity
from planner.model.server import KnownPrincipal

_ROLE: Final = re.compile(r"arn:[a-z-]+:iam::([0-9]{12}):role/(?:.*/)?([^/]+)")
_MANAGED: Final = re.compile(
    r"/subscriptions/([^/]+)/resourcegroups/([^/]+)/providers/microsoft\.managedidentity/userassignedidentities/([^/]+)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeNames:
    """The project, and what the operator added."""

    project: Project
    principals: tuple[KnownPrincipal, ...] = ()

    def piece(self, plan: PlacementPlan, who: NodeIdentity) -> tuple[Placement, Placement] | None:
        """The first of the plan's placements that has nodes of that identity, and which part of it they are; None where it is none of this job's.

        All placements of one place share one identity, so which of them it is makes no difference to what may be minted.
        """
        return next((found for found in _pieces(plan.ranked) if self._is(plan.name, found[1], who)), None)

    def denies(self, job: str, place: Place, who: NodeIdentity) -> bool:
        """Whether that identity is known to be none of the job's nodes there.  False where nothing tells: Nebius without `principals`, a target without account."""
        told = [p.principal for p in self.principals if (p.job, p.target) == (job, place.target)]
        named = who.cloud != Cloud.NEBIUS and any(
            t.account for t in self.project.targets if (t.cloud.value, t.name) == (place.cloud, place.target)
        )
        return bool(told or named) and not self._is(job, place, who)

    def _is(self, job: str, piece: Place, who: NodeIdentity) -> bool:
        if not who.principal or who.cloud != piece.cloud:
            return False
        told = [p.principal for p in self.principals if (p.job, p.target) == (job, piece.target)]
        if told:
            return who.principal in told
        target = next((t for t in self.project.targets if (t.cloud.value, t.name) == (piece.cloud, piece.target)), None)
        # without the account of the target, anybody could make a role of that name in his own
        if target is None or not target.account:
            return False
        return self._named(job, piece, target, who)

    def _named(self, job: str, piece: Place, target: Target, who: NodeIdentity) -> bool:
        project, stack = self.project.name, access_name(job, piece)
        match Cloud(piece.cloud):
            case Cloud.AWS:
                # STS leaves out the path; names of roles are unique in an account whatever their path
                found = _ROLE.fullmatch(who.principal)
                return found is not None and found.groups() == (target.account, fit(f"skyplan-{project}-{stack}", 64))
            case Cloud.GCP:
                email = f"{account_id(project, stack, job)}@{target.account}.iam.gserviceaccount.com"
                return who.principal == email and who.account == target.account
            case Cloud.AZURE:
                found = _MANAGED.fullmatch(who.principal.lower())
                group = target.resource_group or resource_name(project, network_name(piece), limit=90)
                name = resource_name(project, stack, limit=128)
                return found is not None and found.groups() == tuple(
                    text.lower() for text in (target.account or "", group, name)
                )
            case Cloud.NEBIUS:
                return False


def _pieces(ranked: Sequence[Placement]) -> Iterator[tuple[Placement, Placement]]:
    for placement in ranked:
        yield from ((placement, piece) for piece in placement.pieces)
