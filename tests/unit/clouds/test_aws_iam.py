"""What moto holds, read back: a foundation, a node's role, federation, a bucket's policy, templates and machines."""

from __future__ import annotations

import json
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber
from moto import mock_aws

from planner.clouds import aws_iam
from planner.clouds.aws_iam import AwsIam
from planner.clouds.choose import rights_reader
from planner.clouds.port import Where
from planner.iam.read.terraform import read_terraform
from planner.model.errors import InputError, PermissionDenied, Unavailable
from planner.model.grants import Identity
from planner.model.policy import PolicyKind

WHERE = Where(cloud="aws", target="prod", region="us-east-1")
ACCOUNT = "123456789012"
GROUND, NODES = "/skyplan-foundation/acme/", "/skyplan/acme/"
READ = {"Sid": "Read", "Effect": "Allow", "Action": ["s3:GetObject"], "Resource": ["arn:aws:s3:::acme/a/*"]}


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


def trust(service: str = "ec2.amazonaws.com") -> str:
    return policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}})


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "emulated")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with mock_aws():
        yield lambda name: boto3.client(name, region_name="us-east-1")


@pytest.fixture
def founded(aws):
    """Roles as a foundation and one access stack make them."""
    iam = aws("iam")
    bound = iam.create_policy(
        PolicyName="skyplan-acme-node-boundary", Path=GROUND, PolicyDocument=policy({**READ, "Sid": "Bound"})
    )["Policy"]["Arn"]
    unused = iam.create_policy(
        PolicyName="skyplan-acme-orchestrator-boundary", Path=GROUND, PolicyDocument=policy({**READ, "Action": "ec2:*"})
    )["Policy"]["Arn"]
    own = iam.create_policy(
        PolicyName="skyplan-acme-orchestrator-1",
        Path=GROUND,
        PolicyDocument=policy({"Effect": "Allow", "Action": "ec2:RunInstances", "Resource": "*"}),
    )["Policy"]["Arn"]
    iam.create_role(RoleName="skyplan-acme-orchestrator", Path=GROUND, AssumeRolePolicyDocument=trust())
    iam.attach_role_policy(RoleName="skyplan-acme-orchestrator", PolicyArn=own)
    iam.create_role(
        RoleName="skyplan-acme-acc-train",
        Path=NODES,
        AssumeRolePolicyDocument=trust(),
        PermissionsBoundary=bound,
        Tags=[{"Key": "skyplan:job", "Value": "train"}, {"Key": "skyplan:managed", "Value": "true"}],
    )
    iam.put_role_policy(RoleName="skyplan-acme-acc-train", PolicyName="node-data", PolicyDocument=policy(READ))
    iam.create_instance_profile(InstanceProfileName="skyplan-acme-acc-train", Path=NODES)
    iam.add_role_to_instance_profile(InstanceProfileName="skyplan-acme-acc-train", RoleName="skyplan-acme-acc-train")
    iam.create_role(RoleName="somebody", AssumeRolePolicyDocument=trust())
    iam.create_role(RoleName="other-project", Path="/skyplan/acme2/", AssumeRolePolicyDocument=trust())
    return {"bound": bound, "unused": unused, "own": own}


def test_roles_with_all_that_they_hold_and_no_stranger(founded):
    found = {subject.name: subject for subject in AwsIam(WHERE).subjects(project="acme")}
    assert set(found) == {
        "skyplan-acme-orchestrator",
        "skyplan-acme-acc-train",
        "skyplan-acme-orchestrator-boundary",
    }
    orchestrator = found["skyplan-acme-orchestrator"]
    assert (orchestrator.identity, orchestrator.origin) == (
        Identity.ORCHESTRATOR,
        f"arn:aws:iam::{ACCOUNT}:role{GROUND}skyplan-acme-orchestrator",
    )
    (attached,) = orchestrator.of_kind(PolicyKind.IDENTITY)
    assert (attached.name, attached.statements[0].actions) == (founded["own"], ("ec2:RunInstances",))
    node = found["skyplan-acme-acc-train"]
    assert (node.identity, node.job) == (Identity.NODE_DATA, "train")
    assert [(p.kind, p.name, [s.sid for s in p.statements]) for p in node.policies] == [
        (PolicyKind.TRUST, "trust", [""]),
        (PolicyKind.IDENTITY, "node-data", ["Read"]),
        (PolicyKind.BOUNDARY, founded["bound"], ["Bound"]),
    ]
    (bound,) = found["skyplan-acme-orchestrator-boundary"].policies
    assert (bound.kind, bound.name) == (PolicyKind.BOUNDARY, founded["unused"])


def test_the_version_in_force(aws, founded):
    changed = policy({"Effect": "Allow", "Action": "ec2:*", "Resource": "*"})
    aws("iam").create_policy_version(PolicyArn=founded["own"], PolicyDocument=changed, SetAsDefault=False)
    assert _actions() == ("ec2:RunInstances",)
    aws("iam").set_default_policy_version(PolicyArn=founded["own"], VersionId="v2")
    assert _actions() == ("ec2:*",)


def _actions():
    found = {subject.name: subject for subject in AwsIam(WHERE).subjects(project="acme")}
    (held,) = found["skyplan-acme-orchestrator"].of_kind(PolicyKind.IDENTITY)
    return held.statements[0].actions


def test_more_than_one_page(aws):
    iam = aws("iam")
    for number in range(101):
        iam.create_role(RoleName=f"skyplan-acme-acc-{number:03d}", Path=NODES, AssumeRolePolicyDocument=trust())
    assert len(AwsIam(WHERE).subjects(project="acme")) == 101


def test_live_and_written_are_equal(founded):
    """The same role read from the account and from Terraform, but for where it was found."""
    document = {
        "provider": {"aws": {"allowed_account_ids": [ACCOUNT], "region": "us-east-1"}},
        "resource": {
            "aws_iam_policy": {
                "b": {"name": "skyplan-acme-node-boundary", "path": GROUND, "policy": policy({**READ, "Sid": "Bound"})}
            },
            "aws_iam_role": {
                "node": {
                    "name": "skyplan-acme-acc-train",
                    "path": NODES,
                    "assume_role_policy": trust(),
                    "permissions_boundary": "${aws_iam_policy.b.arn}",
                }
            },
            "aws_iam_role_policy": {
                "d": {"name": "node-data", "role": "${aws_iam_role.node.name}", "policy": policy(READ)}
            },
        },
    }
    (written,) = read_terraform(document, file="").subjects
    live = {subject.name: subject for subject in AwsIam(WHERE).subjects(project="acme")}[written.name]
    assert live.policies == written.policies


def test_profiles(founded):
    (profile,) = AwsIam(WHERE).profiles(project="acme")
    assert profile.arn.endswith(f"instance-profile{NODES}skyplan-acme-acc-train")
    assert profile.roles == (f"arn:aws:iam::{ACCOUNT}:role{NODES}skyplan-acme-acc-train",)


def test_providers_and_buckets(aws):
    aws("iam").create_open_id_connect_provider(
        Url="https://token.actions.githubusercontent.com", ClientIDList=["skyplan"], ThumbprintList=["a" * 40]
    )
    s3 = aws("s3")
    s3.create_bucket(Bucket="acme")
    s3.create_bucket(Bucket="bare")
    s3.put_bucket_policy(Bucket="acme", Policy=policy({**READ, "Principal": "*"}))
    audited = AwsIam(WHERE).audited(project="acme", buckets=["bare", "acme", "acme", "missing"])
    assert [(p.issuer, p.audiences) for p in audited.providers] == [
        ("https://token.actions.githubusercontent.com", ("skyplan",))
    ]
    ((arn, found),) = audited.stores
    assert (arn, found.kind, found.statements[0].principals) == (
        "arn:aws:s3:::acme",
        PolicyKind.RESOURCE,
        (("AWS", "*"),),
    )


def test_machines(aws, founded):
    ec2 = aws("ec2")
    image = ec2.describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    tags = [{"Key": "skyplan:project", "Value": "acme"}, {"Key": "skyplan:job", "Value": "train"}]
    made = ec2.create_launch_template(
        LaunchTemplateName="t",
        LaunchTemplateData={
            "ImageId": image,
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
            "IamInstanceProfile": {"Name": "skyplan-acme-acc-train"},
            "UserData": "ZG9ja2VyIHJ1biBhbHBpbmUgICAgICAgICAgICAgIA==",
        },
        TagSpecifications=[{"ResourceType": "launch-template", "Tags": tags}],
    )["LaunchTemplate"]
    for own in (tags, [{"Key": "skyplan:project", "Value": "other"}]):
        ec2.run_instances(
            ImageId=image,
            MinCount=1,
            MaxCount=1,
            InstanceType="t3.micro",
            TagSpecifications=[{"ResourceType": "instance", "Tags": own}],
        )
    instance, template = AwsIam(WHERE).machines(project="acme")
    assert template.origin == f"{made['LaunchTemplateId']} t"
    assert (template.job, template.hop_limit, template.tokens_required) == ("train", 2, True)
    assert (template.containers, template.has_identity, template.spot) == (True, True, None)
    assert (instance.job, instance.has_identity, instance.spot) == ("train", False, False)


def test_what_cannot_be_understood_is_named(monkeypatch, founded):
    reader = AwsIam(WHERE)
    assert reader._policy({"Statement": {"Effect": "Perhaps"}}, PolicyKind.IDENTITY, "odd") is None
    assert reader.unread
    assert reader.audited(project="acme").unread == tuple(reader.unread)


def test_a_role_that_is_gone_meanwhile_is_left_out(aws, founded, monkeypatch):
    reader = AwsIam(WHERE)
    pages = reader._pages
    with_ghost = lambda op, key, **more: [*pages(op, key, **more), *([{"RoleName": "ghost"}] if key == "Roles" else [])]  # noqa: E731
    monkeypatch.setattr(reader, "_pages", with_ghost)
    assert "ghost" not in {subject.name for subject in reader.subjects(project="acme")}


def _stubbed(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    iam = boto3.client("iam", region_name="us-east-1")
    monkeypatch.setattr(aws_iam, "_maker", lambda _: lambda _: iam)
    return AwsIam(WHERE), iam


@pytest.mark.parametrize(
    ("code", "kind"),
    [("AccessDenied", PermissionDenied), ("Throttling", Unavailable), ("ServiceUnavailable", Unavailable)],
)
def test_errors_are_ours(monkeypatch, code, kind):
    reader, iam = _stubbed(monkeypatch)
    with Stubber(iam) as stub:
        stub.add_client_error("list_roles", service_error_code=code)
        with pytest.raises(kind, match="ListRoles"):
            reader.subjects(project="acme")
    iam.close()


@pytest.mark.parametrize(
    ("error", "kind"),
    [(NoCredentialsError(), PermissionDenied), (EndpointConnectionError(endpoint_url="https://x"), Unavailable)],
)
def test_no_answer_at_all(monkeypatch, error, kind):
    def fails(_):
        raise error

    monkeypatch.setattr(aws_iam, "_maker", fails)
    with pytest.raises(kind):
        AwsIam(WHERE)


@pytest.mark.parametrize("cloud", ["gcp", "azure", "nebius"])
def test_other_clouds_are_not_offered_and_say_so(cloud):
    with pytest.raises(InputError, match=f"{cloud}.*not read in this version"):
        rights_reader(Where(cloud=cloud, target="prod", region="x"))


def test_the_reader_of_aws(aws):
    assert isinstance(rights_reader(WHERE), AwsIam)
