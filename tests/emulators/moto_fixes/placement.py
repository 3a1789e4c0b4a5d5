"""Placement groups, which moto has not: create, describe, delete, with tags and with EC2's errors."""

from typing import Any

from moto.core.responses import ActionResult, EmptyResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.core import TaggedEC2Resource
from moto.ec2.responses import EC2Response
from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX, generic_filter, random_id


class PlacementGroup(TaggedEC2Resource):
    def __init__(self, backend: Any, name: str, strategy: str, partitions: int | None, spread: str | None):
        self.ec2_backend = backend
        self.id = self.group_id = random_id("pg")
        self.group_name = name
        self.strategy = strategy
        self.partition_count = partitions
        self.spread_level = spread
        self.state = "available"

    @property
    def group_arn(self) -> str:
        backend = self.ec2_backend
        return (
            f"arn:{backend.partition}:ec2:{backend.region_name}:{backend.account_id}:placement-group/{self.group_name}"
        )

    @property
    def tags(self) -> list[dict[str, str]]:
        return self.get_tags()


def placement_groups(backend: Any) -> dict[str, PlacementGroup]:
    """The groups of one region by name; they go when moto resets the region."""
    return vars(backend).setdefault("placement_groups", {})


def _found(backend: Any, name: str) -> PlacementGroup:
    group = placement_groups(backend).get(name)
    if group is None:
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{name}' is unknown.")
    return group


def _create(self: Any) -> ActionResult:
    name = self._get_param("GroupName")
    strategy = self._get_param("Strategy", "cluster")
    self.error_on_dryrun()
    if name in placement_groups(self.ec2_backend):
        raise EC2ClientError("InvalidPlacementGroup.Duplicate", f"The Placement Group '{name}' already exists.")
    if strategy not in ("cluster", "spread", "partition"):
        raise EC2ClientError("InvalidParameterValue", f"Value ({strategy}) for parameter strategy is invalid.")
    partitions = self._get_int_param("PartitionCount", 2 if strategy == "partition" else None)
    spread = self._get_param("SpreadLevel", "rack" if strategy == "spread" else None)
    group = PlacementGroup(self.ec2_backend, name, strategy, partitions, spread)
    group.add_tags(self._parse_tag_specification().get("placement-group", {}))
    placement_groups(self.ec2_backend)[name] = group
    return ActionResult({"PlacementGroup": group})


def _describe(self: Any) -> ActionResult:
    groups = list(placement_groups(self.ec2_backend).values())
    if names := self._get_param("GroupNames", []):
        groups = [_found(self.ec2_backend, n) for n in names]
    if ids := self._get_param("GroupIds", []):
        groups = [g for g in groups if g.group_id in ids]
        if len(groups) < len(set(ids)):
            raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group in {ids} is unknown.")
    return ActionResult({"PlacementGroups": generic_filter(self._filters_from_querystring(), groups)})


def _delete(self: Any) -> EmptyResult:
    name = self._get_param("GroupName")
    self.error_on_dryrun()
    _found(self.ec2_backend, name)
    inside = [i for i in self.ec2_backend.all_instances() if i.placement.group_name == name and i.state != "terminated"]
    if inside:
        raise EC2ClientError(
            "InvalidPlacementGroup.InUse", f"The placement group '{name}' is in use and may not be deleted."
        )
    del placement_groups(self.ec2_backend)[name]
    return EmptyResult()


def install() -> None:
    EC2_RESOURCE_TO_PREFIX["placement-group"] = "pg"
    EC2_PREFIX_TO_RESOURCE["pg"] = "placement-group"
    EC2Response.create_placement_group = _create
    EC2Response.describe_placement_groups = _describe
    EC2Response.delete_placement_group = _delete
