"""EC2 calls other than a launch: the resources that are named, and the one that is made.

Which types an action is checked against is the Service Authorization Reference's (`planner.iam.actions`); which resources those are is read from the
parameters, whose ids say their type; their tags come from the emulator's own books.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..placement import placement_groups  # noqa: TID252 - as in `launch`
from .asked import Asked, Caller, Context, carried, requested

#: prefix of an id -> resource type, as ARNs write it
TYPES = {
    "vpc": "vpc",
    "subnet": "subnet",
    "igw": "internet-gateway",
    "rtb": "route-table",
    "eipalloc": "elastic-ip",
    "nat": "natgateway",
    "vpce": "vpc-endpoint",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "lt": "launch-template",
    "pg": "placement-group",
    "i": "instance",
    "vol": "volume",
    "eni": "network-interface",
    "sir": "spot-instances-request",
    "ami": "image",
    "cr": "capacity-reservation",
    "key": "key-pair",
}
#: action -> what it makes
MADE = {
    "CreateVpc": "vpc",
    "CreateSubnet": "subnet",
    "CreateInternetGateway": "internet-gateway",
    "CreateRouteTable": "route-table",
    "AllocateAddress": "elastic-ip",
    "CreateNatGateway": "natgateway",
    "CreateVpcEndpoint": "vpc-endpoint",
    "CreateSecurityGroup": "security-group",
    "AuthorizeSecurityGroupIngress": "security-group-rule",
    "AuthorizeSecurityGroupEgress": "security-group-rule",
    "CreateLaunchTemplate": "launch-template",
    "CreatePlacementGroup": "placement-group",
    "CreateVolume": "volume",
    "CreateNetworkInterface": "network-interface",
    "RequestSpotInstances": "spot-instances-request",
}
_ID = re.compile(r"([a-z]+)-[0-9a-f]{6,}")
#: parameters that name without an id
_BY_NAME = {"GroupName": "placement-group", "LaunchTemplateName": "launch-template"}
#: parameters whose ids stand for a filter, a place or a text, not for what the action is checked against
_UNCHECKED = {
    "Filters",
    "ClientToken",
    "Description",
    "PolicyDocument",
    "LaunchTemplateData",
    "TagSpecifications",
    "Tags",
}


def arn(caller: Caller, kind: str, identity: str) -> str:
    """Images are written without an account."""
    return caller.arn_of("ec2", f"{kind}/{identity}", account=kind != "image")


def asked(
    caller: Caller, backend: Any, action: str, params: Mapping[str, Any], types: frozenset[str]
) -> Iterator[Asked]:
    """`types`: the resource types that the action is checked against; none where it knows no resource."""
    common = {**caller.around(), "ec2:Region": (caller.region,)}
    if action in ("CreateTags", "DeleteTags"):
        yield from _tagging(caller, backend, action, params, common)
        return
    found = False
    made = MADE.get(action)
    specified = params.get("TagSpecifications") or []
    if made in types:
        found = True
        tags = [tag for one in specified if one.get("ResourceType") == made for tag in one.get("Tags") or []]
        name = str(params["GroupName"]) if action == "CreatePlacementGroup" else "*"
        context = {**common, **requested(tags), **_of_new(caller, backend, made, params)}
        yield Asked(f"ec2:{action}", arn(caller, made, name), context, made)
    for kind, identity in sorted(set(_named(backend, action, params))):
        if kind in types and kind != made:
            found = True
            context = {**common, **known(caller, backend, kind, identity)}
            yield Asked(f"ec2:{action}", arn(caller, kind, identity), context, kind)
    if not found and not _gone(params):
        yield Asked(f"ec2:{action}", "*", common)
    for one in specified:
        if one.get("Tags"):
            context = {**common, **requested(one["Tags"]), "ec2:CreateAction": (action,)}
            yield Asked("ec2:CreateTags", arn(caller, one["ResourceType"], "*"), context, one["ResourceType"])


def _gone(params: Mapping[str, Any]) -> bool:
    """Whether it is about an association that is there no more.

    EC2 needs what is associated to judge, so it is taken to say "not found" before it asks (not compared with a live account).  Such a call is written
    down as asking nothing, so that a test can see it.
    """
    return any(str(params.get("AssociationId", "")).startswith(prefix) for prefix in ("eipassoc-", "rtbassoc-"))


def _tagging(caller: Caller, backend: Any, action: str, params: Mapping[str, Any], common: Context) -> Iterator[Asked]:
    for identity in params.get("Resources") or []:
        kind = TYPES.get(str(identity).partition("-")[0], "unknown")
        context = {**common, **requested(params.get("Tags") or []), **known(caller, backend, kind, str(identity))}
        yield Asked(f"ec2:{action}", arn(caller, kind, _in_arn(backend, kind, str(identity))), context, kind)


def _named(backend: Any, action: str, params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What the parameters name: (type, id as ARNs write it)."""
    for name, value in params.items():
        if name in _UNCHECKED:
            continue
        if name in _BY_NAME and not action.startswith("CreateSecurityGroup"):
            kind = _BY_NAME[name]
            yield kind, _id_of(backend, kind, str(value))
        for text in _texts(value):
            yield from _meant(backend, text)


def _meant(backend: Any, text: str) -> Iterator[tuple[str, str]]:
    match = _ID.fullmatch(text)
    if match is None:
        return
    if match[1] == "rtbassoc":
        for table in backend.route_tables.values():
            if text in table._associations:
                yield "route-table", table.id
                yield from _meant(backend, str(table._associations[text]))
    elif match[1] == "eipassoc":
        for address in backend.addresses:
            if address.association_id == text:
                yield "elastic-ip", address.allocation_id
                if address.eni is not None:
                    yield "network-interface", address.eni.id
    elif match[1] in TYPES:
        yield TYPES[match[1]], _in_arn(backend, TYPES[match[1]], text)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _id_of(backend: Any, kind: str, name: str) -> str:
    """Placement groups stand in ARNs by name, launch templates by id."""
    if kind == "launch-template":
        return str(backend.launch_template_name_to_ids.get(name, name))
    return name


def _in_arn(backend: Any, kind: str, identity: str) -> str:
    if kind == "placement-group":
        named = [g.group_name for g in placement_groups(backend).values() if g.group_id == identity]
        return str(named[0]) if named else identity
    return identity


def known(caller: Caller, backend: Any, kind: str, identity: str) -> Context:
    """Keys of a resource that exists; none of one that does not."""
    tagged = identity
    if kind == "placement-group":
        group = placement_groups(backend).get(identity)
        tagged = group.group_id if group else identity
    context = carried("ec2", backend.tags.get(tagged) or {})
    match kind:
        case "subnet" if identity in {s for zone in backend.subnets.values() for s in zone}:
            subnet = backend.get_subnet(identity)
            context["ec2:SubnetID"] = (identity,)
            context["ec2:Vpc"] = (arn(caller, "vpc", subnet.vpc_id),)
            context["ec2:AvailabilityZone"] = (subnet.availability_zone,)
        case "security-group" if (group := backend.get_security_group_from_id(identity)) is not None:
            context["ec2:SecurityGroupID"] = (identity,)
            context["ec2:Vpc"] = (arn(caller, "vpc", group.vpc_id),)
        case "vpc":
            context["ec2:VpcID"] = (identity,)
        case "placement-group" if group:
            context["ec2:PlacementGroupStrategy"] = (group.strategy,)
            context["ec2:PlacementGroupName"] = (identity,)
        case "instance":
            context |= _of_instance(caller, backend, identity)
        case _:
            pass
    return context


def _of_instance(caller: Caller, backend: Any, identity: str) -> Context:
    instance = next((i for i in backend.all_instances() if i.id == identity), None)
    if instance is None:
        return {}
    options = instance.metadata_options
    found = {
        "ec2:InstanceID": identity,
        "ec2:InstanceType": instance.instance_type,
        "ec2:AvailabilityZone": instance.placement.zone,
        "ec2:MetadataHttpTokens": options.http_tokens,
        "ec2:MetadataHttpPutResponseHopLimit": options.http_put_response_hop_limit,
    }
    for association in backend.iam_instance_profile_associations.values():
        if association.instance.id == identity:
            found["ec2:InstanceProfile"] = association.iam_instance_profile.arn
    return {key: (str(value),) for key, value in found.items() if value is not None}


def _of_new(caller: Caller, backend: Any, kind: str, params: Mapping[str, Any]) -> Context:
    """Keys of what is being made."""
    context: Context = {}
    if kind in ("subnet", "security-group", "route-table", "vpc-endpoint") and params.get("VpcId"):
        context["ec2:Vpc" if kind != "vpc-endpoint" else "ec2:VpceServiceName"] = (
            (arn(caller, "vpc", str(params["VpcId"])),) if kind != "vpc-endpoint" else (str(params.get("ServiceName")),)
        )
    if kind == "placement-group":
        context["ec2:PlacementGroupStrategy"] = (str(params.get("Strategy", "cluster")),)
    return context
