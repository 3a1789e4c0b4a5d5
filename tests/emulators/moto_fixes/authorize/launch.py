"""A launch: one RunInstances is checked against everything that it makes and everything that it uses, each with keys of its own.

Of a launch template the merged data count, as EC2 launches it (`..launch.merge`).  `ec2:IsLaunchTemplateResource` is true of what the template gives and
the request does not; of the instance itself it is true unless the request overrides something that the template says (not compared with a live account).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from moto.iam.models import iam_backends

from ..launch import launch_zone, merge, template_data  # noqa: TID252 - the emulator is a program of its own, where `tests` is no package
from .asked import Asked, Caller, Context, requested, truth
from .ec2 import arn, known


class Launch:
    """What one RunInstances comes to: `merged`, and what of it the template gave."""

    def __init__(self, caller: Caller, backend: Any, request: Mapping[str, Any]) -> None:
        self.caller, self.backend, self.request = caller, backend, dict(request)
        named = self.request.get("LaunchTemplate")
        self.template = backend._get_template_from_args(named) if named else None
        self.given = template_data(backend, self.request)
        self.merged = merge(self.given, self.request)
        zone = launch_zone(backend, self.merged)
        self.zone: Context = {"ec2:AvailabilityZone": (zone,)} if zone else {}

    def tags(self, kind: str) -> Context:
        specified = self.merged.get("TagSpecifications") or []
        return requested(tag for one in specified if one["ResourceType"] == kind for tag in one["Tags"])

    def template_id(self) -> str:
        named = self.request["LaunchTemplate"]
        by_name = self.backend.launch_template_name_to_ids
        return str(named.get("LaunchTemplateId") or by_name.get(named.get("LaunchTemplateName")))

    def common(self, *fields: str) -> Context:
        """Keys of every resource of the launch.  `fields`: where the request or the template would say this one."""
        context = {**self.caller.around(), "ec2:Region": (self.caller.region,)}
        if self.template is not None:
            context["ec2:LaunchTemplate"] = (arn(self.caller, "launch-template", self.template_id()),)
            ours = any(self.given.get(f) for f in fields) and not any(self.request.get(f) for f in fields)
            context["ec2:IsLaunchTemplateResource"] = (truth(ours),)
        return context

    def profile(self) -> Any:
        """The instance profile that the nodes get, or None."""
        wanted = self.merged.get("IamInstanceProfile") or {}
        held = iam_backends[self.caller.account][self.caller.partition].instance_profiles.values()
        return next((p for p in held if wanted.get("Arn") == p.arn or wanted.get("Name") == p.name), None)


def _on(launch: Launch, kind: str, identity: str, context: Context, action: str = "ec2:RunInstances") -> Asked:
    return Asked(action, arn(launch.caller, kind, identity), context, kind)


def asked(caller: Caller, backend: Any, request: Mapping[str, Any]) -> Iterator[Asked]:
    launch = Launch(caller, backend, request)
    yield _instance(launch)
    yield from _volumes(launch)
    yield from _interfaces(launch)
    yield from _used(launch)
    if _market(launch) == "spot":
        context = {**launch.common(), **launch.tags("spot-instances-request")}
        yield _on(launch, "spot-instances-request", "*", context)
    for one in launch.merged.get("TagSpecifications") or []:
        context = {**caller.around(), **requested(one["Tags"]), "ec2:CreateAction": ("RunInstances",)}
        context["ec2:Region"] = (caller.region,)
        yield _on(launch, one["ResourceType"], "*", context, "ec2:CreateTags")
    yield from _passed(launch)


def _market(launch: Launch) -> str:
    options = launch.merged.get("InstanceMarketOptions") or {}
    return str(options.get("MarketType") or "on-demand")


def _instance(launch: Launch) -> Asked:
    merged, caller = launch.merged, launch.caller
    options = merged.get("MetadataOptions") or {}
    placement = merged.get("Placement") or {}
    profile = launch.profile()
    found = {
        "ec2:InstanceType": merged.get("InstanceType", "m1.small"),
        "ec2:InstanceProfile": profile.arn if profile else None,
        "ec2:MetadataHttpTokens": options.get("HttpTokens"),
        "ec2:MetadataHttpEndpoint": options.get("HttpEndpoint"),
        "ec2:MetadataHttpPutResponseHopLimit": options.get("HttpPutResponseHopLimit"),
        "ec2:InstanceMetadataTags": options.get("InstanceMetadataTags"),
        "ec2:InstanceMarketType": _market(launch),
        "ec2:PlacementGroup": arn(caller, "placement-group", placement["GroupName"])
        if placement.get("GroupName")
        else None,
        "ec2:Tenancy": placement.get("Tenancy", "default"),
        "ec2:EbsOptimized": truth(merged.get("EbsOptimized")),
        "ec2:RootDeviceType": "ebs",
    }
    context = {**launch.common(), **launch.zone, **launch.tags("instance")}
    if launch.template is not None:
        over = [k for k in launch.request if k in launch.given and k not in ("TagSpecifications", "LaunchTemplate")]
        context["ec2:IsLaunchTemplateResource"] = (truth(not over),)
    context |= {key: (str(value),) for key, value in found.items() if value is not None}
    return _on(launch, "instance", "*", context)


def _volumes(launch: Launch) -> Iterator[Asked]:
    """One for each disk; the image's root disk counts, with or without a mapping of it."""
    disks = [d.get("Ebs") or {} for d in launch.merged.get("BlockDeviceMappings") or [] if "Ebs" in d] or [{}]
    for disk in disks:
        found = {
            "ec2:Encrypted": truth(disk.get("Encrypted")),
            "ec2:VolumeSize": disk.get("VolumeSize"),
            "ec2:VolumeType": disk.get("VolumeType"),
            "ec2:KmsKeyId": disk.get("KmsKeyId"),
        }
        context = {**launch.common("BlockDeviceMappings"), **launch.zone, **launch.tags("volume")}
        context |= {key: (str(value),) for key, value in found.items() if value is not None}
        yield _on(launch, "volume", "*", context)
        if disk.get("KmsKeyId"):
            yield from _key(launch, str(disk["KmsKeyId"]))


def _key(launch: Launch, key: str) -> Iterator[Asked]:
    """A disk under the user's own key: EC2 asks for the grant in the caller's name."""
    via = {**launch.caller.around(), "kms:ViaService": (f"ec2.{launch.caller.region}.amazonaws.com",)}
    resource = key if key.startswith("arn:") else launch.caller.arn_of("kms", f"key/{key}")
    for action in ("DescribeKey", "GenerateDataKeyWithoutPlaintext", "Decrypt"):
        yield Asked(f"kms:{action}", resource, via, "key")
    yield Asked("kms:CreateGrant", resource, {**via, "kms:GrantIsForAWSResource": ("true",)}, "key")


def _interfaces(launch: Launch) -> Iterator[Asked]:
    """One for each interface of its own, or for the one that EC2 makes."""
    merged = launch.merged
    for interface in merged.get("NetworkInterfaces") or [{"SubnetId": merged.get("SubnetId")}]:
        context = {**launch.common("NetworkInterfaces"), **launch.zone, **launch.tags("network-interface")}
        if subnet := interface.get("SubnetId"):
            context["ec2:Subnet"] = (arn(launch.caller, "subnet", str(subnet)),)
            context["ec2:Vpc"] = known(launch.caller, launch.backend, "subnet", str(subnet)).get("ec2:Vpc", ())
        if (public := interface.get("AssociatePublicIpAddress")) is not None:
            context["ec2:AssociatePublicIpAddress"] = (truth(public),)
        yield _on(launch, "network-interface", "*", context)


def _used(launch: Launch) -> Iterator[Asked]:
    """What is there already and is used by the launch."""
    caller, backend, merged = launch.caller, launch.backend, launch.merged
    cards = merged.get("NetworkInterfaces") or []
    used: list[tuple[str, str, tuple[str, ...]]] = []
    subnets = {merged["SubnetId"]} if merged.get("SubnetId") else {c["SubnetId"] for c in cards if c.get("SubnetId")}
    used += [("subnet", subnet, ("SubnetId", "NetworkInterfaces")) for subnet in sorted(subnets)]
    groups = set(merged.get("SecurityGroupIds") or ()) | {g for card in cards for g in card.get("Groups") or ()}
    used += [("security-group", group, ("SecurityGroupIds", "NetworkInterfaces")) for group in sorted(groups)]
    if name := (merged.get("Placement") or {}).get("GroupName"):
        used.append(("placement-group", str(name), ("Placement",)))
    reserved = (merged.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget") or {}
    if reserved.get("CapacityReservationId"):
        used.append(("capacity-reservation", reserved["CapacityReservationId"], ("CapacityReservationSpecification",)))
    if merged.get("KeyName"):
        used.append(("key-pair", str(merged["KeyName"]), ("KeyName",)))
    for kind, identity, fields in used:
        context = {**launch.common(*fields), **known(caller, backend, kind, identity)}
        yield _on(launch, kind, identity, context)
    if launch.template is not None:
        identity = launch.template_id()
        context = {**launch.common(), **known(caller, backend, "launch-template", identity)}
        yield _on(launch, "launch-template", identity, context)
    yield from _image(launch)


def _image(launch: Launch) -> Iterator[Asked]:
    image = str(launch.merged.get("ImageId") or "")
    parameter = image.removeprefix("resolve:ssm:") if image.startswith("resolve:ssm:") else ""
    if parameter:
        own = not parameter.startswith("/aws/service/")
        resource = launch.caller.arn_of("ssm", f"parameter/{parameter.lstrip('/')}", account=own)
        yield Asked("ssm:GetParameters", resource, launch.caller.around(), "parameter")
    found = launch.backend.amis.get(image)
    owner = str(found.owner_id) if found else None
    context = {
        **launch.common("ImageId"),
        **launch.caller.around(owner),
        **known(launch.caller, launch.backend, "image", image),
    }
    if found:
        context["ec2:Owner"] = (found.owner_alias or owner or "",)
        context["ec2:Public"] = (truth(found.is_public),)
        context["ec2:ImageID"] = (image,)
    yield _on(launch, "image", "*" if parameter else image, context)


def _passed(launch: Launch) -> Iterator[Asked]:
    profile = launch.profile()
    for role in profile.roles if profile else ():
        context = {**launch.caller.around(), "iam:PassedToService": ("ec2.amazonaws.com",)}
        yield Asked("iam:PassRole", role.arn, context, "role")
