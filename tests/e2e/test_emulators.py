"""The test bed itself: the emulators must tell right from wrong, or every test on top of them proves nothing."""

import hashlib
import http.client
import json
import random
import threading
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.emulators.aws import Aws
from tests.emulators.stub_provider import alive, failure_of
from tests.emulators.terraform import Terraform

IMAGE = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"


class Site:
    """A private subnet in use1-az4 with a peer group, and launch templates in it."""

    def __init__(self, aws: Aws):
        self.ec2 = ec2 = aws.client("ec2")
        self.vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=self.vpc, CidrBlock="10.7.0.0/20", AvailabilityZoneId="use1-az4")[
            "Subnet"
        ]
        self.group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=self.vpc)["GroupId"]

    def template(self, name: str = "t", **data: Any) -> dict[str, str]:
        data = {"ImageId": f"resolve:ssm:{IMAGE}", **data}
        made = self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data)
        return {"LaunchTemplateId": made["LaunchTemplate"]["LaunchTemplateId"], "Version": "1"}

    def efa(self, cards: int) -> list[dict[str, Any]]:
        return [
            {
                "NetworkCardIndex": card,
                "DeviceIndex": min(card, 1),
                "InterfaceType": "efa",
                "SubnetId": self.subnet["SubnetId"],
                "Groups": [self.group],
            }
            for card in range(cards)
        ]

    def run(self, template: dict[str, str], kind: str = "g5.xlarge", **request: Any) -> dict[str, Any]:
        launched = self.ec2.run_instances(
            MinCount=1, MaxCount=1, InstanceType=kind, LaunchTemplate=template, **request
        )["Instances"][0]["InstanceId"]
        return self.ec2.describe_instances(InstanceIds=[launched])["Reservations"][0]["Instances"][0]

    def in_subnet(self, **more: Any) -> dict[str, Any]:
        return {"SubnetId": self.subnet["SubnetId"], "SecurityGroupIds": [self.group], **more}


@pytest.fixture
def site(aws: Aws) -> Site:
    return Site(aws)


def refused(code: str) -> Any:
    return pytest.raises(ClientError, match=rf"\({code}\)")


# ---- what EC2 does with a launch


def test_a_spot_instance_has_a_request_that_ends_with_it(site: Site) -> None:
    template = site.template(
        InstanceMarketOptions={"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "one-time"}}
    )
    node = site.run(template, **site.in_subnet())
    spot = site.ec2.describe_spot_instance_requests(SpotInstanceRequestIds=[node["SpotInstanceRequestId"]])
    assert node["InstanceLifecycle"] == "spot"
    assert [(r["State"], r["InstanceId"]) for r in spot["SpotInstanceRequests"]] == [("active", node["InstanceId"])]
    for _ in "twice":  # terminating what is terminated is no error
        site.ec2.terminate_instances(InstanceIds=[node["InstanceId"]])
    assert site.ec2.describe_spot_instance_requests()["SpotInstanceRequests"][0]["State"] == "closed"


def test_a_reclaimed_instance_says_so(aws: Aws, site: Site) -> None:
    node = site.run(site.template(), InstanceMarketOptions={"MarketType": "spot"}, **site.in_subnet())
    aws.reclaim(node["InstanceId"])
    after = site.ec2.describe_instances(InstanceIds=[node["InstanceId"]])["Reservations"][0]["Instances"][0]
    assert (after["State"]["Name"], after["StateReason"]["Code"]) == ("terminated", "Server.SpotInstanceTermination")
    assert aws.instances() == []


def test_a_launch_template_counts_whole(aws: Aws, site: Site) -> None:
    iam = aws.client("iam")
    iam.create_instance_profile(InstanceProfileName="node", Path="/skyplan/")
    site.ec2.create_placement_group(GroupName="ring", Strategy="cluster")
    template = site.template(
        NetworkInterfaces=site.efa(4),
        IamInstanceProfile={"Name": "node"},
        UserData=b64encode(b"#cloud-config").decode(),
        MetadataOptions={"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
        Placement={"GroupName": "ring"},
        BlockDeviceMappings=[
            {
                "DeviceName": "/dev/sda1",
                "Ebs": {"VolumeSize": 200, "VolumeType": "gp3", "Encrypted": True, "DeleteOnTermination": True},
            }
        ],
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": "skyplan:job", "Value": "llama3"}]},
            {"ResourceType": "volume", "Tags": [{"Key": "skyplan:job", "Value": "llama3"}]},
        ],
    )
    ranked = [{"ResourceType": "instance", "Tags": [{"Key": "skyplan:rank", "Value": "r00"}]}]
    node = site.run(template, "p4d.24xlarge", TagSpecifications=ranked)
    cards = [
        (i["InterfaceType"], i["Attachment"]["NetworkCardIndex"], i["Attachment"]["DeviceIndex"])
        for i in node["NetworkInterfaces"]
    ]
    assert cards == [("efa", 0, 0), ("efa", 1, 1), ("efa", 2, 1), ("efa", 3, 1)]
    assert node["IamInstanceProfile"]["Arn"].endswith("instance-profile/skyplan/node")
    assert node["MetadataOptions"]["HttpTokens"] == "required"
    assert node["Placement"]["GroupName"] == "ring"
    assert node["SecurityGroups"][0]["GroupId"] == site.group
    assert "PublicIpAddress" not in node
    assert {"skyplan:job": "llama3", "skyplan:rank": "r00"}.items() <= {
        t["Key"]: t["Value"] for t in node["Tags"]
    }.items()
    (volume,) = site.ec2.describe_volumes()["Volumes"]
    assert (volume["Size"], volume["Encrypted"], volume["Tags"][0]["Value"]) == (200, True, "llama3")
    with refused("InvalidPlacementGroup.InUse"):
        site.ec2.delete_placement_group(GroupName="ring")
    with refused("DependencyViolation"):
        site.ec2.delete_subnet(SubnetId=site.subnet["SubnetId"])
    site.ec2.terminate_instances(InstanceIds=[node["InstanceId"]])
    assert site.ec2.describe_network_interfaces()["NetworkInterfaces"] == []
    assert site.ec2.describe_volumes()["Volumes"] == []


def test_a_template_has_no_more_tags_than_it_gives(site: Site) -> None:
    site.ec2.create_launch_template(
        LaunchTemplateName="own",
        LaunchTemplateData={"ImageId": "ami-0123456789abcdef0"},
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": [{"Key": "a", "Value": "b"}]}],
    )
    version = site.ec2.describe_launch_template_versions(LaunchTemplateName="own")["LaunchTemplateVersions"][0]
    assert "TagSpecifications" not in version["LaunchTemplateData"]


@pytest.mark.parametrize(
    ("code", "template", "request_", "kind"),
    [
        ("InvalidParameterCombination", "efa", {"SubnetId": "subnet"}, "p4d.24xlarge"),
        ("InvalidParameterCombination", "efa", {"PrivateIpAddress": "10.7.0.9"}, "p4d.24xlarge"),
        (
            "InvalidParameterCombination",
            "groups",
            {"NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": "subnet"}]},
            "g5.xlarge",
        ),
        ("InvalidParameterCombination", "efa", {}, "g5.xlarge"),
        ("InvalidParameterValue", "plain", {"SubnetId": "subnet", "PrivateIpAddress": "10.8.0.9"}, "g5.xlarge"),
        ("InvalidParameterValue", "plain", {"SubnetId": "subnet"}, "g5.hugest"),
        ("Unsupported", "plain", {"Placement": {"AvailabilityZone": "us-east-1e"}}, "g5.xlarge"),
        (
            "InvalidPlacementGroup.Unknown",
            "plain",
            {"SubnetId": "subnet", "Placement": {"GroupName": "none"}},
            "g5.xlarge",
        ),
    ],
)
def test_what_ec2_refuses_is_refused(site: Site, code: str, template: str, request_: dict[str, Any], kind: str) -> None:
    data = {"efa": {"NetworkInterfaces": site.efa(4)}, "groups": {"SecurityGroupIds": [site.group]}, "plain": {}}[
        template
    ]
    request = json.loads(json.dumps(request_).replace('"subnet"', json.dumps(site.subnet["SubnetId"])))
    with refused(code):
        site.run(site.template(**data), kind, **request)
    assert site.ec2.describe_instances()["Reservations"] == []


def test_an_address_is_given_once(site: Site) -> None:
    template = site.template()
    site.run(template, **site.in_subnet(PrivateIpAddress="10.7.0.9"))
    with refused("InvalidIPAddress.InUse"):
        site.run(template, **site.in_subnet(PrivateIpAddress="10.7.0.9"))


def test_a_client_token_launches_once(aws: Aws, site: Site) -> None:
    template = site.template()
    for _ in range(2):
        site.run(template, ClientToken="once", **site.in_subnet())
    assert len(aws.instances()) == 1


def test_placement_groups(site: Site) -> None:
    tags = [{"ResourceType": "placement-group", "Tags": [{"Key": "skyplan:job", "Value": "llama3"}]}]
    site.ec2.create_placement_group(GroupName="ring", Strategy="cluster", TagSpecifications=tags)
    with refused("InvalidPlacementGroup.Duplicate"):
        site.ec2.create_placement_group(GroupName="ring", Strategy="cluster")
    by_tag = [{"Name": "tag:skyplan:job", "Values": ["llama3"]}]
    assert [g["GroupName"] for g in site.ec2.describe_placement_groups(Filters=by_tag)["PlacementGroups"]] == ["ring"]
    site.ec2.delete_placement_group(GroupName="ring")
    with refused("InvalidPlacementGroup.Unknown"):
        site.ec2.describe_placement_groups(GroupNames=["ring"])


def test_an_unknown_action_is_refused_at_once(aws: Aws) -> None:
    with refused("InvalidAction"):
        aws.client("ec2").describe_capacity_reservations()


def test_subnets_are_private_in_the_zone_of_their_id(site: Site) -> None:
    assert (site.subnet["AvailabilityZone"], site.subnet["MapPublicIpOnLaunch"]) == ("us-east-1d", False)


def test_a_test_finds_nothing_of_the_last_one(aws: Aws) -> None:
    assert aws.leftovers() == []


# ---- access


def allow(action: str | list[str], resource: str = "*") -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def test_passing_a_role_needs_that_very_role(aws: Aws, site: Site) -> None:
    iam = aws.client("iam")
    for name in ("node", "admin"):
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=policy(), Path="/skyplan/")
        iam.create_instance_profile(InstanceProfileName=name)
        iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    roles = {name: iam.get_role(RoleName=name)["Role"]["Arn"] for name in ("node", "admin")}
    templates = {name: site.template(name, IamInstanceProfile={"Name": name}) for name in roles}
    iam.create_user(UserName="launcher")
    grants = policy(
        allow(["ec2:RunInstances", "ec2:CreateTags", "ssm:GetParameters"]), allow("iam:PassRole", roles["node"])
    )
    iam.put_user_policy(UserName="launcher", PolicyName="launch", PolicyDocument=grants)
    key = iam.create_access_key(UserName="launcher")["AccessKey"]
    aws.enforce_access()
    ec2 = aws.client("ec2", aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
    asked = {"MinCount": 1, "MaxCount": 1, "InstanceType": "g5.xlarge", **site.in_subnet()}
    assert ec2.run_instances(LaunchTemplate=templates["node"], **asked)["Instances"]
    with refused("UnauthorizedOperation"):
        ec2.run_instances(LaunchTemplate=templates["admin"], **asked)


def test_a_session_policy_narrows(aws: Aws) -> None:
    iam, s3 = aws.client("iam"), aws.client("s3")
    s3.create_bucket(Bucket="data")
    for key in ("train/a", "secret/a"):
        s3.put_object(Bucket="data", Key=key, Body=b"1")
    iam.create_user(UserName="broker")
    trust = {
        "Effect": "Allow",
        "Action": "sts:AssumeRole",
        "Principal": {"AWS": iam.get_user(UserName="broker")["User"]["Arn"]},
    }
    role = iam.create_role(RoleName="data", AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName="data", PolicyName="read", PolicyDocument=policy(allow("s3:GetObject")))
    iam.put_user_policy(UserName="broker", PolicyName="mint", PolicyDocument=policy(allow("sts:AssumeRole")))
    key = iam.create_access_key(UserName="broker")["AccessKey"]
    aws.enforce_access()
    sts = aws.client("sts", aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
    narrow = policy(allow("s3:GetObject", "arn:aws:s3:::data/train/*"))
    minted = sts.assume_role(RoleArn=role, RoleSessionName="job", Policy=narrow)["Credentials"]
    node = aws.client(
        "s3",
        aws_access_key_id=minted["AccessKeyId"],
        aws_secret_access_key=minted["SecretAccessKey"],
        aws_session_token=minted["SessionToken"],
    )
    assert node.get_object(Bucket="data", Key="train/a")["Body"].read() == b"1"
    with refused("AccessDenied"):
        node.get_object(Bucket="data", Key="secret/a")


# ---- the proxy


def test_a_fault_strikes_where_and_as_often_as_told(aws: Aws, site: Site) -> None:
    rule = aws.proxy.fail(
        code="InsufficientInstanceCapacity", times=1, instance_type="g5.*", zone_id="use1-az4", market="spot"
    )
    template = site.template(InstanceMarketOptions={"MarketType": "spot"})
    site.ec2 = aws.client("ec2", through_proxy=True, config=Config(retries={"total_max_attempts": 1}))
    with pytest.raises(ClientError) as failure:
        site.run(template, **site.in_subnet())
    assert failure.value.response["Error"]["Code"] == "InsufficientInstanceCapacity"
    assert failure.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500
    assert "g5.xlarge capacity in the Availability Zone you requested (us-east-1d)" in str(failure.value)
    site.run(template, **site.in_subnet())
    calls = aws.proxy.calls("RunInstances")
    assert [(c.status, c.faulted) for c in calls] == [(500, True), (200, False)]
    assert calls[0].launch is not None
    assert (calls[0].launch.instance_type, calls[0].launch.market) == ("g5.xlarge", "spot")
    assert rule.fired == 1
    with pytest.raises(TypeError, match="instance_tpye"):
        aws.proxy.fail(instance_tpye="g5.*")


@pytest.mark.parametrize(
    ("code", "status"), [("MaxSpotInstanceCountExceeded", 400), ("VcpuLimitExceeded", 400), ("NeverHeardOf", 400)]
)
def test_refusals_come_in_the_words_of_ec2(aws: Aws, code: str, status: int) -> None:
    aws.proxy.fail("DescribeVpcs", code=code)
    with pytest.raises(ClientError) as failure:
        aws.client("ec2", through_proxy=True).describe_vpcs()
    answer = failure.value.response
    assert (answer["Error"]["Code"], answer["ResponseMetadata"]["HTTPStatusCode"]) == (code, status)


def test_a_held_call_is_done_and_unanswered(aws: Aws, site: Site) -> None:
    template = site.template()
    hold = aws.proxy.hold("RunInstances")
    client = aws.client("ec2", through_proxy=True)
    answers: list[Any] = []
    asked = {"MinCount": 1, "MaxCount": 1, "InstanceType": "g5.xlarge", "LaunchTemplate": template, **site.in_subnet()}
    caller = threading.Thread(target=lambda: answers.append(client.run_instances(**asked)))
    caller.start()
    hold.wait(10)
    assert len(aws.instances()) == 1
    assert answers == []
    assert aws.proxy.calls("RunInstances")[0].status == 0
    hold.release()
    caller.join(10)
    assert len(answers) == 1
    assert len(aws.instances()) == 1


def test_s3_passes_byte_for_byte(aws: Aws) -> None:
    body = random.Random(7).randbytes(1_000_003)
    s3 = aws.client("s3", through_proxy=True)
    s3.create_bucket(Bucket="state")
    s3.put_object(Bucket="state", Key="a", Body=body, ChecksumAlgorithm="SHA256")
    assert (
        hashlib.sha256(s3.get_object(Bucket="state", Key="a")["Body"].read()).digest() == hashlib.sha256(body).digest()
    )
    assert s3.head_object(Bucket="state", Key="a")["ContentLength"] == len(body)
    s3.put_object(Bucket="state", Key="lock", Body=b"one", IfNoneMatch="*")
    with refused("PreconditionFailed"):
        s3.put_object(Bucket="state", Key="lock", Body=b"two", IfNoneMatch="*")
    assert s3.get_object(Bucket="state", Key="lock")["Body"].read() == b"one"


def test_chunked_bodies_pass(aws: Aws) -> None:
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="state")
    signed = {
        "Authorization": "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
    }
    connection = http.client.HTTPConnection(aws.url.removeprefix("http://"), timeout=10)
    connection.request("PUT", "/state/b", body=iter([b"one ", b"", b"two"]), headers=signed, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert s3.get_object(Bucket="state", Key="b")["Body"].read() == b"one two"


# ---- the stub provider's rules


def test_failure_rules_match_type_attributes_and_count() -> None:
    spot = {"instance_type": "g5.xlarge", "instance_market_options": [{"market_type": "spot"}]}
    rule = "aws_inst*[instance_type=g5.*,instance_market_options.market_type=spot]#1:InsufficientInstanceCapacity: none"
    assert failure_of(rule, "aws_instance", spot, []) == (rule, "InsufficientInstanceCapacity: none")
    assert failure_of(rule, "aws_instance", spot, [{"verb": "fail", "rule": rule}]) is None
    assert failure_of(rule, "aws_instance", {**spot, "instance_type": "p5.48xlarge"}, []) is None
    assert failure_of(rule, "aws_subnet", spot, []) is None
    assert failure_of("a:x|aws_*:y", "aws_instance", {}, []) == ("aws_*:y", "y")


def test_the_stub_cloud_is_its_log() -> None:
    log = [
        {"verb": v, "type": "aws_instance", "id": i, "state": {"id": i}}
        for v, i in (("create", "1"), ("create", "2"), ("delete", "1"))
    ]
    assert alive(log) == {("aws_instance", "2"): {"id": "2"}}


# ---- through Terraform


def stack(**resource: Any) -> str:
    required = {"aws": {"source": "hashicorp/aws", "version": ">= 5.100, < 7"}}
    document = {
        "terraform": {"required_providers": required},
        "provider": {"aws": [{"region": "us-east-1", "max_retries": 2}]},
        "resource": {"aws_instance": {"node": {"for_each": {"r00": "r00"}, **resource}}},
    }
    return json.dumps(document)


@pytest.mark.terraform
def test_terraform_sees_a_capacity_error_and_then_a_clean_plan(
    aws: Aws, site: Site, terraform: Terraform, tmp_path: Path
) -> None:
    nodes = stack(
        launch_template={"id": site.template()["LaunchTemplateId"], "version": "1"},
        instance_type="g5.xlarge",
        subnet_id=site.subnet["SubnetId"],
        private_ip="10.7.0.9",
        vpc_security_group_ids=[site.group],
        instance_market_options={"market_type": "spot"},
        lifecycle={"ignore_changes": ["ami", "user_data", "launch_template"]},
    )
    (tmp_path / "cdk.tf.json").write_text(nodes)
    terraform.ok(tmp_path, "init")
    rule = aws.proxy.fail(code="InsufficientInstanceCapacity", zone_id="use1-az4", times=2)
    failed = terraform.run(tmp_path, "apply", "-auto-approve", "-no-color")
    assert failed.returncode == 1
    assert (
        "api error InsufficientInstanceCapacity: We currently do not have sufficient g5.xlarge capacity"
        in failed.stdout
    )
    assert (rule.fired, aws.instances()) == (2, [])
    terraform.ok(tmp_path, "apply", "-auto-approve")
    assert len(aws.instances()) == 1
    terraform.ok(tmp_path, "plan", "-detailed-exitcode")


@pytest.mark.terraform
def test_the_stub_provider_applies_fails_imports_and_loses(
    stub_terraform: Callable[..., Terraform], tmp_path: Path
) -> None:
    terraform, cloud = stub_terraform("aws"), tmp_path / "cloud.jsonl"
    nodes = stack(instance_type="g5.xlarge", subnet_id="subnet-1", tags={"skyplan:rank": "${each.key}"})
    (tmp_path / "cdk.tf.json").write_text(nodes)
    terraform.ok(tmp_path, "init")
    rule = "aws_instance[instance_type=g5.*]#1:InsufficientInstanceCapacity"
    failed = terraform.run(tmp_path, "apply", "-auto-approve", STUB_FAIL=rule)
    assert failed.returncode == 1
    assert "InsufficientInstanceCapacity" in failed.stdout
    terraform.ok(tmp_path, "apply", "-auto-approve", STUB_FAIL=rule)
    terraform.ok(tmp_path, "plan", "-detailed-exitcode")
    ((kind, identity),) = alive([json.loads(line) for line in cloud.read_text().splitlines()])
    (tmp_path / "terraform.tfstate").unlink()
    terraform.ok(tmp_path, "import", 'aws_instance.node["r00"]', identity)
    terraform.ok(tmp_path, "plan", "-detailed-exitcode")
    with cloud.open("a") as file:
        file.write(json.dumps({"verb": "delete", "type": kind, "id": identity}) + "\n")
    assert terraform.run(tmp_path, "plan", "-detailed-exitcode").returncode == 2


def test_a_request_sent_again_under_one_id_is_answered_and_not_done_twice(aws: Aws) -> None:
    client = aws.client("ec2")
    client.meta.events.register(
        "before-send.ec2.*", lambda request, **_: request.headers.__setitem__("amz-sdk-invocation-id", "the-same")
    )
    first = client.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    assert client.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"] == first
    plain = aws.client("ec2")
    assert plain.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"] != first
