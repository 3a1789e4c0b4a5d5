"""What a call asks of IAM in the emulator: a launch as EC2 checks it, and twins that differ in one attribute."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from moto.core import DEFAULT_ACCOUNT_ID as ACCOUNT
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from planner.iam import actions
from planner.iam.documents import policy_from
from planner.iam.evaluate import aws as evaluate
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import PolicyKind
from tests.emulators.moto_fixes.access import documented
from tests.emulators.moto_fixes.authorize import ec2, launch, others
from tests.emulators.moto_fixes.authorize.asked import Asked, Caller
from tests.emulators.moto_fixes.placement import PlacementGroup, placement_groups

REGION = "us-east-1"
CALLER = Caller(f"arn:aws:iam::{ACCOUNT}:role/launcher", ACCOUNT, REGION)
OWN = {"skyplan:project": "acme", "skyplan:managed": "true"}
PLACE = f"arn:aws:ec2:{REGION}:{ACCOUNT}"


def pairs(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


class Region:
    """A region with what a launch needs, made in moto's own books."""

    def __init__(self) -> None:
        self.ec2: Any = ec2_backends[ACCOUNT][REGION]
        self.iam: Any = iam_backends[ACCOUNT]["aws"]
        self.vpc = self.ec2.create_vpc("10.7.0.0/16")
        self.subnet = self.ec2.create_subnet(self.vpc.id, "10.7.0.0/20", availability_zone="us-east-1a")
        self.group = self.ec2.create_security_group("nodes", "nodes", self.vpc.id)
        placement_groups(self.ec2)["ring"] = PlacementGroup(self.ec2, "ring", "cluster", None, None)
        self.role = self.iam.create_role("node", "{}", "/skyplan/acme/", None, "", [], 3600)
        self.profile = self.iam.create_instance_profile("node", "/skyplan/acme/", [])
        self.profile.roles.append(self.role)
        self.template = self.ec2.create_launch_template("node", "", self.data(), {})
        ours = [self.subnet.id, self.group.id, self.template.id, placement_groups(self.ec2)["ring"].id]
        for each in ours:
            self.ec2.tags[each] = dict(OWN)

    def data(self, **more: Any) -> dict[str, Any]:
        return {
            "ImageId": next(iter(self.ec2.amis)),
            "IamInstanceProfile": {"Arn": self.profile.arn},
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": "true", "VolumeSize": 200}}],
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": pairs(OWN)} for kind in ("instance", "volume", "network-interface")
            ],
            **more,
        }

    def request(self, **more: Any) -> dict[str, Any]:
        return {
            "InstanceType": "p4d.24xlarge",
            "LaunchTemplate": {"LaunchTemplateId": self.template.id, "Version": "$Latest"},
            "SubnetId": self.subnet.id,
            "SecurityGroupIds": [self.group.id],
            "Placement": {"GroupName": "ring"},
            "InstanceMarketOptions": {"MarketType": "spot"},
            "TagSpecifications": [{"ResourceType": "instance", "Tags": pairs({"skyplan:rank": "r00"})}],
            **more,
        }


@pytest.fixture
def region() -> Iterator[Region]:
    for backends in (ec2_backends, iam_backends):
        backends.reset()
    yield Region()
    for backends in (ec2_backends, iam_backends):
        backends.reset()


def allow(action: str, *resources: str, **condition: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"Effect": "Allow", "Action": action, "Resource": list(resources)}
    return {**made, "Condition": condition} if condition else made


def tight(region: Region) -> list[Any]:
    """A launch of own nodes, and no other."""
    requested = {"aws:RequestTag/skyplan:project": "acme"}
    tagged = {"aws:ResourceTag/skyplan:project": "acme"}
    node = {
        **requested,
        "ec2:MetadataHttpTokens": "required",
        "ec2:InstanceType": "p4d.24xlarge",
        "ec2:InstanceProfile": region.profile.arn,
    }
    used = [f"{PLACE}:{kind}/*" for kind in ("subnet", "security-group", "placement-group", "launch-template")]
    made = [f"{PLACE}:{kind}/*" for kind in ("instance", "volume", "network-interface")]
    statements = [
        allow(
            "ec2:RunInstances",
            f"{PLACE}:instance/*",
            StringEquals=node,
            NumericLessThanEquals={"ec2:MetadataHttpPutResponseHopLimit": "1"},
        ),
        allow("ec2:RunInstances", f"{PLACE}:volume/*", StringEquals=requested, Bool={"ec2:Encrypted": "true"}),
        allow("ec2:RunInstances", f"{PLACE}:network-interface/*", StringEquals=requested),
        allow("ec2:RunInstances", f"{PLACE}:spot-instances-request/*"),
        allow("ec2:RunInstances", *used, StringEquals=tagged),
        allow("ec2:RunInstances", f"arn:aws:ec2:{REGION}::image/*", StringEquals={"ec2:Owner": ["amazon", ACCOUNT]}),
        allow("ec2:CreateTags", *made, StringEquals={**requested, "ec2:CreateAction": "RunInstances"}),
        allow("iam:PassRole", region.role.arn, StringEquals={"iam:PassedToService": "ec2.amazonaws.com"}),
    ]
    return [policy_from({"Version": "2012-10-17", "Statement": statements}, kind=PolicyKind.IDENTITY, name="tight")]


def denied(region: Region, request: dict[str, Any]) -> set[tuple[str, str]]:
    """(action, type) of each authorization request that a launch would be refused for."""
    out: set[tuple[str, str]] = set()
    for one in launch.asked(CALLER, region.ec2, request):
        asked = evaluate.Request(action=one.action, resource=one.resource, context=documented(one))
        if evaluate.judge(tight(region), asked).decision is not Decision.ALLOW:
            out.add((one.action, one.kind))
    return out


def test_a_launch_as_it_should_be_is_allowed(region: Region) -> None:
    region.ec2.amis[next(iter(region.ec2.amis))].owner_alias = "amazon"
    assert denied(region, region.request()) == set()
    kinds = sorted(
        one.kind for one in launch.asked(CALLER, region.ec2, region.request()) if one.action != "ec2:CreateTags"
    )
    assert kinds == sorted(
        (
            "image",
            "instance",
            "launch-template",
            "network-interface",
            "placement-group",
            "role",
            "security-group",
            "spot-instances-request",
            "subnet",
            "volume",
        )
    )


def _untagged(region: Region) -> dict[str, Any]:
    region.template.default_version().data["TagSpecifications"] = [
        {"ResourceType": kind, "Tags": pairs(OWN)} for kind in ("volume", "network-interface")
    ]
    return {}


def _foreign(which: str) -> Callable[[Region], dict[str, Any]]:
    def change(region: Region) -> dict[str, Any]:
        region.ec2.tags[getattr(region, which).id] = {"skyplan:project": "other"}
        return {}

    return change


def _other_profile(region: Region) -> dict[str, Any]:
    other = region.iam.create_instance_profile("admin", "/", [])
    other.roles.append(region.iam.create_role("admin", "{}", "/", None, "", [], 3600))
    return {"IamInstanceProfile": {"Arn": other.arn}}


def _disk(region: Region) -> dict[str, Any]:
    return {"BlockDeviceMappings": [{"DeviceName": "/dev/sdf", "Ebs": {"VolumeSize": 1}}]}


RUN = "ec2:RunInstances"


@pytest.mark.parametrize(
    ("twin", "refused"),
    [
        (_untagged, {(RUN, "instance"), ("ec2:CreateTags", "instance")}),
        (lambda _: {"MetadataOptions": {"HttpTokens": "optional"}}, {(RUN, "instance")}),
        (lambda _: {"MetadataOptions": {"HttpPutResponseHopLimit": 2}}, {(RUN, "instance")}),
        (lambda _: {"InstanceType": "p5.48xlarge"}, {(RUN, "instance")}),
        (_disk, {(RUN, "volume")}),
        (_foreign("subnet"), {(RUN, "subnet")}),
        (_foreign("group"), {(RUN, "security-group")}),
        (_foreign("template"), {(RUN, "launch-template")}),
        (_other_profile, {(RUN, "instance"), ("iam:PassRole", "role")}),
        (lambda r: {"ImageId": _strangers_image(r)}, {(RUN, "image")}),
        (lambda _: {"KeyName": "mine"}, {(RUN, "key-pair")}),
    ],
)
def test_a_twin_in_one_attribute_is_not(region: Region, twin: Any, refused: set[tuple[str, str]]) -> None:
    region.ec2.amis[next(iter(region.ec2.amis))].owner_alias = "amazon"
    assert denied(region, region.request(**twin(region))) == refused


def _strangers_image(region: Region) -> str:
    image = list(region.ec2.amis.values())[-1]
    image.owner_alias, image.owner_id = None, "999999999999"
    return str(image.id)


def only(found: Iterator[Asked]) -> Asked:
    (one,) = found
    return one


def types(action: str) -> frozenset[str]:
    return frozenset(actions.resource_types(f"ec2:{action}"))


def test_what_is_made_has_the_requests_tags_and_what_is_named_its_own(region: Region) -> None:
    params = {"VpcId": region.vpc.id, "TagSpecifications": [{"ResourceType": "subnet", "Tags": pairs({"a": "b"})}]}
    region.ec2.tags[region.vpc.id] = {"c": "d"}
    made, used, tagged = ec2.asked(CALLER, region.ec2, "CreateSubnet", params, types("CreateSubnet"))
    assert (made.resource, made.context["aws:RequestTag/a"]) == (f"{PLACE}:subnet/*", ("b",))
    assert "aws:ResourceTag/c" not in made.context
    assert (used.resource, used.context["aws:ResourceTag/c"]) == (f"{PLACE}:vpc/{region.vpc.id}", ("d",))
    assert "aws:RequestTag/a" not in used.context
    assert (tagged.action, tagged.context["ec2:CreateAction"]) == ("ec2:CreateTags", ("CreateSubnet",))


def test_tags_given_later_have_no_create_action(region: Region) -> None:
    params = {"Resources": [region.vpc.id], "Tags": pairs({"a": "b"})}
    one = only(ec2.asked(CALLER, region.ec2, "CreateTags", params, types("CreateTags")))
    assert one.resource == f"{PLACE}:vpc/{region.vpc.id}"
    assert "ec2:CreateAction" not in one.context


def test_a_description_is_of_everything(region: Region) -> None:
    params = {"SubnetIds": [region.subnet.id]}
    assert only(ec2.asked(CALLER, region.ec2, "DescribeSubnets", params, types("DescribeSubnets"))).resource == "*"


def test_a_role_is_asked_for_by_its_path_and_boundary(region: Region) -> None:
    boundary = f"arn:aws:iam::{ACCOUNT}:policy/b"
    params = {"RoleName": "n", "Path": "/skyplan/acme/", "PermissionsBoundary": boundary, "Tags": pairs(OWN)}
    made, tagged = others.iam(CALLER, region.iam, "CreateRole", params)
    assert made.resource == f"arn:aws:iam::{ACCOUNT}:role/skyplan/acme/n"
    assert documented(made)["iam:PermissionsBoundary"] == (boundary,)
    assert tagged.action == "iam:TagRole"
    missing = only(others.iam(CALLER, region.iam, "GetRole", {"RoleName": "gone"}))
    assert missing.resource == f"arn:aws:iam::{ACCOUNT}:role/gone"


def test_a_missing_object_is_told_to_those_who_may_list() -> None:
    asked = list(others.s3(CALLER, "GetObject", "state", "a/b", {}, there=False))
    assert [(one.action, one.resource) for one in asked] == [
        ("s3:GetObject", "arn:aws:s3:::state/a/b"),
        ("s3:ListBucket", "arn:aws:s3:::state"),
    ]
    assert asked[1].context["s3:prefix"] == ("a/b",)


def test_every_request_is_one_that_aws_documents(region: Region) -> None:
    """Of a launch, each action is known and is checked against that type of resource."""
    for one in launch.asked(CALLER, region.ec2, region.request()):
        assert one.kind in actions.resource_types(one.action), json.dumps([one.action, one.kind])
