"""What a placement's names stand for in the market and the project.  Looks up; decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.model.offer import Cloud

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.offer import InstanceType, Region
    from planner.model.plan import Placement
    from planner.model.project import OwnNetwork, Project, Reservation, Target


#: what is tested: the versions whose schemas are shipped; AWS is applied with 5.100.0 too (docs/decisions/0009)
DEFAULT_PROVIDER_VERSIONS = {
    Cloud.AWS: ">= 5.100.0, < 7.0.0",
    Cloud.GCP: ">= 6.50.0, < 7.0.0",
    Cloud.AZURE: ">= 4.55.0, < 5.0.0",
    Cloud.NEBIUS: ">= 0.6.32, < 0.7.0",
}


def instance_type(market: Market, placement: Placement) -> InstanceType:
    """The placement's instance type.  Raises KeyError where the catalog has lost it."""
    return market.type_index[placement.cloud, placement.instance_type]


def region_of(market: Market, placement: Placement) -> Region:
    """The placement's region."""
    return market.regions[market.region_index[(placement.cloud, placement.region)]]


def target_of(project: Project, placement: Placement) -> Target:
    """The placement's target."""
    return next(t for t in project.targets if t.name == placement.target and t.cloud.value == placement.cloud)


def own_network(target: Target, region: str) -> OwnNetwork | None:
    """The user's own network in that region, if the target brings one."""
    return next((n for n in target.networks if n.region == region), None)


def reservation_of(project: Project, placement: Placement) -> Reservation | None:
    """The reservation that a placement uses."""
    return next((r for r in project.reserved if r.id == placement.reservation and r.target == placement.target), None)
