"""RunInstances as EC2 does it: a launch template's whole data counts, and what EC2 refuses is refused.

moto takes a handful of a template's fields and accepts nearly anything.  Here the template and the request are merged by EC2's
rule (the request wins; tags add up; block devices match by name) before moto sees them.  Interfaces of the request replace the
template's: EC2 does not document it, and of the two readings this is the one in which a stack loses its EFAs, so it shows.
Decides nothing about capacity: for that there is `fault_proxy`.
"""

import ipaddress
import re
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.elastic_network_interfaces import Attachment
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.ec2.models.instances import Instance
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.models.spot_requests import SpotInstanceRequest
from moto.ec2.responses.instances import InstanceResponse
from moto.ec2.responses.launch_templates import LaunchTemplates
from moto.ec2.utils import parse_user_data, random_spot_request_id
from moto.ssm.models import ssm_backends

from .placement import placement_groups

MERGED_BY_KEY = ("MetadataOptions", "Monitoring", "Placement", "InstanceMarketOptions")


def template_data(backend: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The data of the launch template that a RunInstances request names; empty if it names none."""
    named = request.get("LaunchTemplate")
    return dict(backend._get_template_from_args(named).data) if named else {}


def merge(template: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """What EC2 launches: the request over the template."""
    merged = {k: v for k, v in template.items() if v is not None} | request
    for key in MERGED_BY_KEY:
        if key in template or key in request:
            merged[key] = {**(template.get(key) or {}), **(request.get(key) or {})}
    devices = {item["DeviceName"]: item for item in template.get("BlockDeviceMappings") or []}
    for item in request.get("BlockDeviceMappings") or []:
        devices[item["DeviceName"]] = {**devices.get(item["DeviceName"], {}), **item}
    if devices:
        merged["BlockDeviceMappings"] = list(devices.values())
    tags = _add_up_tags([*(template.get("TagSpecifications") or []), *(request.get("TagSpecifications") or [])])
    if tags:
        merged["TagSpecifications"] = tags
    return merged


def _card_and_device(interface: dict[str, Any]) -> tuple[int, int]:
    return int(interface.get("NetworkCardIndex") or 0), int(interface.get("DeviceIndex") or 0)


def _add_up_tags(specifications: list[dict[str, Any]]) -> list[dict[str, Any]]:
    by_type: dict[str, dict[str, str]] = {}
    for one in specifications:
        by_type.setdefault(one["ResourceType"], {}).update({t["Key"]: t["Value"] for t in one.get("Tags") or []})
    return [
        {"ResourceType": kind, "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        for kind, tags in by_type.items()
        if tags
    ]


def refuse(backend: Any, launch: dict[str, Any]) -> None:
    """Raises what EC2 would answer to a launch that cannot be."""
    interfaces = launch.get("NetworkInterfaces") or []
    if interfaces:
        for key, words in (
            ("SubnetId", "subnet ID"),
            ("SecurityGroupIds", "security groups"),
            ("SecurityGroups", "security groups"),
            ("PrivateIpAddress", "private address"),
        ):
            if launch.get(key):
                raise EC2ClientError(
                    "InvalidParameterCombination",
                    f"Network interfaces and an instance-level {words} may not be specified on the same request",
                )
        if len(interfaces) > 1 and any(i.get("AssociatePublicIpAddress") is True for i in interfaces):
            raise EC2ClientError(
                "InvalidParameterCombination",
                "The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.",
            )
    _refuse_image(launch.get("ImageId"))
    _refuse_type(backend, launch, interfaces)
    _refuse_groups(backend, interfaces)
    _refuse_addresses(backend, launch, interfaces)
    group = (launch.get("Placement") or {}).get("GroupName")
    if group and group not in placement_groups(backend):
        raise EC2ClientError("InvalidPlacementGroup.Unknown", f"The Placement Group '{group}' is unknown.")


def _refuse_image(image: str | None) -> None:
    if not image:
        raise EC2ClientError("MissingParameter", "The request must contain the parameter ImageId")
    if not re.fullmatch(r"ami-[0-9a-z]{8,17}", image):
        raise EC2ClientError("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')


def _refuse_type(backend: Any, launch: dict[str, Any], interfaces: list[dict[str, Any]]) -> None:
    name = launch.get("InstanceType", "m1.small")
    known = INSTANCE_TYPES.get(name)
    if known is None:
        raise EC2ClientError("InvalidParameterValue", f"Invalid value '{name}' for InstanceType.")
    zone = launch_zone(backend, launch)
    offered = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(backend.region_name) or []
    zones = sorted(o["Location"] for o in offered if o["InstanceType"] == name)
    if zone and zone not in zones:
        raise EC2ClientError(
            "Unsupported",
            f"Your requested instance type ({name}) is not supported in your requested Availability Zone ({zone}). "
            f"Please retry your request by not specifying an Availability Zone or choosing {', '.join(zones)}.",
        )
    network = known.get("NetworkInfo") or {}
    efa = [i for i in interfaces if i.get("InterfaceType") in ("efa", "efa-only")]
    most = (network.get("EfaInfo") or {}).get("MaximumEfaInterfaces", 0)
    if len(efa) > most:
        raise EC2ClientError(
            "InvalidParameterCombination", f"{name} supports {most} EFA interfaces; {len(efa)} requested."
        )
    cards = network.get("MaximumNetworkCards", 1)
    if any(int(i.get("NetworkCardIndex") or 0) >= cards for i in interfaces):
        raise EC2ClientError("InvalidParameterValue", f"networkCardIndex must be below {cards} for {name}.")


def launch_zone(backend: Any, launch: dict[str, Any]) -> str | None:
    """The zone name a launch goes to, as its subnet or its placement says; None if it leaves that to EC2."""
    interfaces = launch.get("NetworkInterfaces") or []
    subnet = launch.get("SubnetId") or next((i["SubnetId"] for i in interfaces if i.get("SubnetId")), None)
    if subnet:
        return backend.get_subnet(subnet).availability_zone
    return (launch.get("Placement") or {}).get("AvailabilityZone")


def _refuse_groups(backend: Any, interfaces: list[dict[str, Any]]) -> None:
    for group in {g for i in interfaces for g in i.get("Groups") or []}:
        if not backend.get_security_group_from_id(group):
            raise EC2ClientError("InvalidGroup.NotFound", f"The security group '{group}' does not exist")


def _refuse_addresses(backend: Any, launch: dict[str, Any], interfaces: list[dict[str, Any]]) -> None:
    asked = [(launch.get("SubnetId"), launch.get("PrivateIpAddress"))]
    asked += [(i.get("SubnetId"), i.get("PrivateIpAddress")) for i in interfaces]
    for subnet_id, address in asked:
        if not (subnet_id and address):
            continue
        subnet = backend.get_subnet(subnet_id)
        if ipaddress.ip_address(address) not in subnet.cidr:
            raise EC2ClientError(
                "InvalidParameterValue", f"Address {address} does not fall within the subnet's address range"
            )
        if address in subnet._subnet_ips:
            raise EC2ClientError("InvalidIPAddress.InUse", f"Address {address} is in use.")


class LaunchedSpotRequest(SpotInstanceRequest):
    """The spot request that EC2 makes by itself for a RunInstances with market type spot."""

    def __init__(self, instance: Instance, backend: Any, options: dict[str, Any], tags: dict[str, dict[str, str]]):
        self._launched = instance
        super().__init__(
            backend,
            random_spot_request_id(),
            options.get("MaxPrice") or "",
            instance.image_id,
            options.get("SpotInstanceType") or "one-time",
            None,
            options.get("ValidUntil"),
            None,
            None,
            instance.key_name or "",
            [],
            None,
            instance.instance_type,
            instance.placement.zone,
            None,
            None,
            False,
            instance.subnet_id or "",
            tags,
            None,
            options.get("InstanceInterruptionBehavior"),
        )

    def launch_instance(self) -> Instance:
        return self._launched

    def close(self, status: str) -> None:
        self.state, self._status_code = "closed", status


def _run_instances(self: Any) -> ActionResult:
    backend, request = self.ec2_backend, dict(self.params)
    launched: dict[str, Any] = vars(backend).setdefault("launches_by_token", {})
    token = request.get("ClientToken")
    if token in launched:
        return ActionResult(launched[token])
    launch = merge(template_data(backend, request), request)
    launch["ImageId"] = _resolve_image(self.current_account, backend.region_name, launch.get("ImageId"))
    refuse(backend, launch)
    cards = _number_interfaces(launch)
    self.params = launch
    if "UserData" not in request:
        launch.pop("UserData", None)  # moto takes it from the template, decoded
    profile = launch.pop("IamInstanceProfile", None) or {}
    result = original_run_instances(self)
    reservation = result.result
    for instance in reservation.instances:
        _finish(backend, instance, launch, cards=cards, profile=profile, tags=self._parse_tag_specification())
    if token:
        launched[token] = reservation
    return result


def _resolve_image(account: str, region: str, image: str | None) -> str | None:
    if not (image or "").startswith("resolve:ssm:"):
        return image
    name = str(image).removeprefix("resolve:ssm:")
    parameter = ssm_backends[account][region].get_parameter(name)
    if parameter is None:
        raise EC2ClientError("InvalidParameterValue", f"Parameter {name} not found.")
    return str(parameter.value)


def _number_interfaces(launch: dict[str, Any]) -> dict[int, tuple[int, int, str]]:
    """moto keeps interfaces by device index alone, but every network card has a device 1: give each a number of its own."""
    cards: dict[int, tuple[int, int, str]] = {}
    numbered = []
    for number, interface in enumerate(sorted(launch.get("NetworkInterfaces") or [], key=_card_and_device)):
        card, device = _card_and_device(interface)
        cards[number] = (card, device, interface.get("InterfaceType") or "interface")
        numbered.append({"DeleteOnTermination": True, **interface, "DeviceIndex": number})
    if numbered:
        launch["NetworkInterfaces"] = numbered
    return cards


def _finish(
    backend: Any,
    instance: Any,
    launch: dict[str, Any],
    *,
    cards: dict[int, tuple[int, int, str]],
    profile: dict[str, str],
    tags: dict[str, dict[str, str]],
) -> None:
    for number, interface in instance.nics.items():
        card, device, kind = cards.get(number, (0, number, "interface"))
        interface.network_card_index, interface.device_index = card, device
        interface.interface_type = "efa" if kind.startswith("efa") else "interface"
        interface.add_tags(tags.get("network-interface", {}))
        if not cards:
            interface.delete_on_termination = True  # EC2's default for an interface it made
    if cards:
        instance.security_groups = list(instance.nics[0]._group_set)
    placement = launch.get("Placement") or {}
    instance.placement.group_name = placement.get("GroupName", "")
    if group := placement_groups(backend).get(instance.placement.group_name):
        instance.placement.group_id = group.group_id
    if profile:
        backend.associate_iam_instance_profile(
            instance_id=instance.id,
            iam_instance_profile_name=profile.get("Name"),
            iam_instance_profile_arn=profile.get("Arn"),
        )
    instance.disable_api_termination = bool(launch.get("DisableApiTermination"))
    market = launch.get("InstanceMarketOptions") or {}
    if market.get("MarketType") == "spot":
        spot = LaunchedSpotRequest(instance, backend, market.get("SpotOptions") or {}, tags)
        backend.spot_instance_requests[spot.id] = spot
        instance.spot_instance_request_id = spot.id
        instance.lifecycle = "spot"


def summary(backend: Any, params: dict[str, str]) -> dict[str, str]:
    """Type, zone and market of a RunInstances form, its launch template taken in."""
    prefix = "LaunchTemplate."
    named = {k.removeprefix(prefix): v for k, v in params.items() if k.startswith(prefix)}
    template = template_data(backend, {"LaunchTemplate": named})
    asked: dict[str, Any] = {
        "InstanceType": params.get("InstanceType"),
        "SubnetId": params.get("SubnetId") or params.get("NetworkInterface.1.SubnetId"),
        "Placement": {"AvailabilityZone": params.get("Placement.AvailabilityZone")},
    }
    launch = {**template, **{k: v for k, v in asked.items() if v}}
    zone = launch_zone(backend, launch) or ""
    known = {z.name: z.zone_id for z in backend.describe_availability_zones()}
    market = params.get("InstanceMarketOptions.MarketType")
    return {
        "instance_type": launch.get("InstanceType") or "",
        "zone": zone,
        "zone_id": known.get(zone, ""),
        "market": market or (template.get("InstanceMarketOptions") or {}).get("MarketType") or "on-demand",
    }


def reclaim(backend: Any, instance_id: str) -> None:
    """What EC2 does when it takes a spot instance back."""
    instance = backend.get_instance(instance_id)
    instance.terminate()
    instance._reason = "Server.SpotInstanceTermination"
    instance.state_reason.code = "Server.SpotInstanceTermination"
    instance.state_reason.message = "Server.SpotInstanceTermination: Spot instance termination"
    spot = backend.spot_instance_requests.get(getattr(instance, "spot_instance_request_id", None))
    if spot is not None:
        spot.close("instance-terminated-no-capacity")


def _terminate(self: Any) -> Any:
    if self.state == "terminated":
        return self._state  # terminating twice is no error in EC2
    previous = original_terminate(self)
    spot = self.ec2_backend.spot_instance_requests.get(getattr(self, "spot_instance_request_id", None))
    if isinstance(spot, LaunchedSpotRequest):
        spot.close("instance-terminated-by-user")
    return previous


def _create_launch_template(self: Any) -> ActionResult:
    """moto copies the template's own tags into its data, so that instances would inherit them; EC2 does not."""
    wanted = list((self._get_param("LaunchTemplateData") or {}).get("TagSpecifications") or [])
    result = original_create_template(self)
    name = self._get_param("LaunchTemplateName")
    version = self.ec2_backend.get_launch_template_by_name(name).versions[0]
    version.data.pop("TagSpecifications", None)
    if wanted:
        version.data["TagSpecifications"] = wanted
    return result


def _create_version(self: Any, data: dict[str, Any], description: str) -> Any:
    if isinstance(data.get("UserData"), str):  # moto decodes it for the first version only
        data["UserData"] = parse_user_data(data["UserData"])
    return original_create_version(self, data, description)


def _attachment(self: Any, interface: Any) -> None:
    original_attachment(self, interface)
    self.network_card_index = getattr(interface, "network_card_index", 0)


original_run_instances = InstanceResponse.run_instances
original_terminate = Instance.terminate
original_create_template = LaunchTemplates.create_launch_template
original_create_version = LaunchTemplate.create_version
original_attachment = Attachment.__init__


def install() -> None:
    InstanceResponse.run_instances = _run_instances
    Instance.terminate = _terminate
    LaunchTemplates.create_launch_template = _create_launch_template
    LaunchTemplate.create_version = _create_version
    Attachment.__init__ = _attachment
