"""What nobody may do, and beside each its twin that differs in one attribute and is allowed: real calls, in an account where a job runs.

An attempt counts for an engine only if that engine refuses it and allows the twin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError

from planner.iam import aws as node_policies
from planner.iam.foundation import aws as foundation
from planner.iam.foundation import aws_names
from planner.model.control import ControlScope
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud

PROJECT, JOB = "acme", "train"
STATE, DATA = "acme-tfstate", "acme-data"
NODE = "skyplan-acme-acc-train"
MACHINE = "i-0123456789abcdef0"  # EC2 names a session after the instance that it hands it to
ZONE = "us-east-1a"  # not every zone has every type, and the emulator would take any
OWN = {"skyplan:project": PROJECT, "skyplan:job": JOB, "skyplan:managed": "true"}
REFUSED = {"AccessDenied", "UnauthorizedOperation", "AccessDeniedException", "403", "ExpiredToken", "InvalidToken"}
Client = Callable[..., Any]


def pairs(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def credentials(answer: Mapping[str, Any]) -> dict[str, str]:
    """As boto3 takes them, from STS's answer."""
    given = answer["Credentials"]
    return {
        "aws_access_key_id": given["AccessKeyId"],
        "aws_secret_access_key": given["SecretAccessKey"],
        "aws_session_token": given["SessionToken"],
    }


class Account:
    """An account in an emulator with the foundation, one job's node role, a store of data and one of states; made by its root.

    `client` makes a boto3 client: of the root, or of who holds the credentials that it is given.
    """

    def __init__(self, client: Client, account: str, region: str = "us-east-1") -> None:
        self.client, self.account, self.region = client, account, region
        self.scope = ControlScope(
            cloud=Cloud.AWS, project=PROJECT, target="prod", account=account, regions=(region,), state=STATE
        )
        self.iam, self.s3 = client("iam"), client("s3")
        self.iam.create_user(UserName="ci")
        self.user_arn = self.iam.get_user(UserName="ci")["User"]["Arn"]
        key = self.iam.create_access_key(UserName="ci")["AccessKey"]
        self.user = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
        self.bounds = {one.name: self._policy(one) for one in foundation.boundaries(self.scope)}
        self.roles = {one.identity: self._control(one) for one in foundation.identities(self.scope)}
        self.roles[Identity.NODE_DATA] = self.node_role = self._node(NODE)
        self.stranger_role = self._node("skyplan-acme-acc-other")
        passed = foundation.pass_policy(self.node_role).document
        name = aws_names.names(self.scope)[Identity.ORCHESTRATOR]
        self.iam.put_role_policy(RoleName=name, PolicyName=f"skyplan-pass-{NODE}", PolicyDocument=json.dumps(passed))
        become = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": sorted(self.roles.values())}
        self.iam.put_user_policy(UserName="ci", PolicyName="become", PolicyDocument=document(become))
        self._stores()

    def _policy(self, made: Any) -> str:
        path = aws_names.path(PROJECT)
        given = self.iam.create_policy(PolicyName=made.name, Path=path, PolicyDocument=json.dumps(made.document))
        return str(given["Policy"]["Arn"])

    def _control(self, one: Any) -> str:
        bound = {"PermissionsBoundary": self.bounds[one.boundary]} if one.boundary else {}
        trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": self.user_arn}}
        made = self.iam.create_role(
            RoleName=one.name,
            Path=aws_names.path(PROJECT),
            AssumeRolePolicyDocument=document(trust),
            Tags=pairs({"skyplan:project": PROJECT, "skyplan:managed": "true"}),
            **bound,
        )
        for policy in one.policies:
            self.iam.attach_role_policy(RoleName=one.name, PolicyArn=self._policy(policy))
        return str(made["Role"]["Arn"])

    def _node(self, name: str) -> str:
        """A job's node role, with what the access stack gives it.  The user is trusted besides EC2, as here no machine hands out its credentials."""
        trust = [
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}},
            {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": self.user_arn}},
        ]
        path = f"/skyplan/{PROJECT}/"
        bound = self.bounds[aws_names.node_boundary_name(self.scope)]
        made = self.iam.create_role(
            RoleName=name, Path=path, AssumeRolePolicyDocument=document(*trust), PermissionsBoundary=bound
        )
        grants = (
            Grant(
                identity=Identity.NODE_DATA,
                permission=Permission.READ_OBJECTS,
                resource=f"s3://{DATA}/train/",
                reason="",
            ),
            Grant(
                identity=Identity.NODE_CHECKPOINT,
                permission=Permission.WRITE_CHECKPOINTS,
                resource=f"s3://{DATA}/ckpt/run/",
                reason="",
            ),
        )
        for policy in node_policies.policies(grants, account=self.account, region=self.region, kms_key_arn=None):
            self.iam.put_role_policy(RoleName=name, PolicyName=policy.name, PolicyDocument=json.dumps(policy.document))
        self.iam.create_instance_profile(InstanceProfileName=name, Path=path)
        self.iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
        return str(made["Role"]["Arn"])

    def _stores(self) -> None:
        for bucket, keys in (
            (DATA, ("train/a", "secret/a", "ckpt/run/a", "ckpt/other/a")),
            (STATE, (f"skyplan/{PROJECT}/cmp-train-g1.tfstate", f"skyplan/{PROJECT}/net-a.tfstate")),
        ):
            self.s3.create_bucket(Bucket=bucket)
            for key in keys:
                self.s3.put_object(Bucket=bucket, Key=key, Body=b"1")

    def session(self, identity: Identity, **more: Any) -> dict[str, str]:
        """A node's is a machine's, as EC2 would hand it out."""
        sts = self.client("sts", **self.user, config=Config(parameter_validation=False))
        name = MACHINE if identity is Identity.NODE_DATA else "attempt"
        return credentials(sts.assume_role(RoleArn=self.roles[identity], RoleSessionName=name, **more))

    def of(self, identity: Identity) -> Client:
        """Makes clients of an identity."""
        held = self.session(identity)
        return partial(self.client, **held)


@dataclass(frozen=True)
class Attempt:
    """`what` nobody may do as `who`, and `twin`, in words; `call` and `same` do it."""

    who: Identity
    what: str
    twin: str
    call: Callable[[], Any]
    same: Callable[[], Any]


def _outcome(call: Callable[[], Any]) -> tuple[str, str]:
    """`allowed`, `refused`, or what else came of it; and of what operation."""
    try:
        call()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        return "refused" if code in REFUSED else code, error.operation_name
    return "allowed", ""


#: action by the API's name, of the calls that an emulator without tags is tried with
ACTIONS = {
    "GetObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "DeleteObject": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "AssumeRole": "sts:AssumeRole",
}


@dataclass(frozen=True)
class Tried:
    """What came of an attempt and of its twin; `operation` is what was refused."""

    attempt: Attempt
    first: str
    twin: str
    operation: str

    @property
    def told(self) -> bool:
        return (self.first, self.twin) == ("refused", "allowed")

    def document(self) -> dict[str, Any]:
        one = self.attempt
        action = ACTIONS.get(self.operation, self.operation)
        return {"who": one.who.value, "what": one.what, "twin": one.twin, "action": action, "told": self.told}


def tried(one: Attempt) -> Tried:
    first, operation = _outcome(one.call)
    twin, _ = _outcome(one.same)
    return Tried(one, first, twin, operation)


def on_stores(account: Account) -> Iterator[Attempt]:
    """Objects, states and roles: what an emulator without tags of EC2 requests can judge too."""
    node, orchestrator = account.of(Identity.NODE_DATA)("s3"), account.of(Identity.ORCHESTRATOR)("s3")
    deployer = account.of(Identity.DEPLOYER)("s3")
    data, orch, deploy = Identity.NODE_DATA, Identity.ORCHESTRATOR, Identity.DEPLOYER

    def get(client: Any, bucket: str, key: str) -> Callable[[], Any]:
        return partial(client.get_object, Bucket=bucket, Key=key)

    def put(client: Any, bucket: str, key: str) -> Callable[[], Any]:
        return partial(client.put_object, Bucket=bucket, Key=key, Body=b"2")

    def delete(client: Any, bucket: str, key: str) -> Callable[[], Any]:
        return partial(client.delete_object, Bucket=bucket, Key=key)

    def listed(client: Any, bucket: str, prefix: str) -> Callable[[], Any]:
        return partial(client.list_objects_v2, Bucket=bucket, Prefix=prefix)

    states = f"skyplan/{PROJECT}"
    yield Attempt(
        data, "read another prefix", "its own prefix", get(node, DATA, "secret/a"), get(node, DATA, "train/a")
    )
    yield Attempt(
        data,
        "read another run's checkpoint",
        "its own run's",
        get(node, DATA, "ckpt/other/a"),
        get(node, DATA, "ckpt/run/a"),
    )
    yield Attempt(data, "write the data", "a checkpoint", put(node, DATA, "train/b"), put(node, DATA, "ckpt/run/b"))
    yield Attempt(
        data, "delete a checkpoint", "write it", delete(node, DATA, "ckpt/run/a"), put(node, DATA, "ckpt/run/a")
    )
    yield Attempt(
        data, "list another prefix", "its own prefix", listed(node, DATA, "secret/"), listed(node, DATA, "train/")
    )
    yield Attempt(
        data,
        "read Terraform's state",
        "its own data",
        get(node, STATE, f"{states}/net-a.tfstate"),
        get(node, DATA, "train/a"),
    )
    yield Attempt(
        orch,
        "read data",
        "its own state",
        get(orchestrator, DATA, "train/a"),
        get(orchestrator, STATE, f"{states}/cmp-train-g1.tfstate"),
    )
    yield Attempt(
        orch,
        "write the network's state",
        "a launch's state",
        put(orchestrator, STATE, f"{states}/net-a.tfstate"),
        put(orchestrator, STATE, f"{states}/cmp-train-g1.tfstate"),
    )
    yield Attempt(
        orch,
        "delete a state",
        "its lock",
        delete(orchestrator, STATE, f"{states}/cmp-train-g1.tfstate"),
        delete(orchestrator, STATE, f"{states}/cmp-train-g1.tfstate.tflock"),
    )
    yield Attempt(
        deploy,
        "write a launch's state",
        "the network's state",
        put(deployer, STATE, f"{states}/cmp-train-g1.tfstate"),
        put(deployer, STATE, f"{states}/net-a.tfstate"),
    )
    yield Attempt(
        data,
        "assume the deployer's role",
        "as the user who may",
        lambda: account.client("sts", **account.session(data)).assume_role(
            RoleArn=account.roles[deploy], RoleSessionName="attempt"
        ),
        lambda: account.session(deploy),
    )
    yield from _bounded(account)


def _bounded(account: Account) -> Iterator[Attempt]:
    """What a boundary and a session policy leave of a right."""
    orch, data = Identity.ORCHESTRATOR, Identity.NODE_DATA
    everything = document({"Sid": "All", "Effect": "Allow", "Action": "s3:*", "Resource": "*"})
    name = aws_names.names(account.scope)[orch]
    state = f"skyplan/{PROJECT}/cmp-train-g1.tfstate"

    def widened(bucket: str, key: str) -> Callable[[], Any]:
        def call() -> Any:
            account.iam.put_role_policy(RoleName=name, PolicyName="wide", PolicyDocument=everything)
            try:
                return account.of(orch)("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
            finally:
                account.iam.delete_role_policy(RoleName=name, PolicyName="wide")

        return call

    yield Attempt(
        orch,
        "read data by an inline policy of s3:*, beyond its boundary",
        "within its boundary",
        widened(DATA, "train/a"),
        widened(STATE, state),
    )
    narrow = document({"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{DATA}/train/*"})

    def narrowed(key: str) -> Callable[[], Any]:
        def call() -> Any:
            return account.client("s3", **account.session(data, Policy=narrow)).get_object(Bucket=DATA, Key=key)

        return call

    yield Attempt(data, "read beyond a session policy", "within it", narrowed("ckpt/run/a"), narrowed("train/a"))
    reading = document({"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{STATE}/{state}"})

    def launch(action: str, **more: Any) -> Callable[[], Any]:
        def call() -> Any:
            client = account.client("s3", **account.session(orch, Policy=reading))
            return getattr(client, action)(Bucket=STATE, Key=state, **more)

        return call

    yield Attempt(
        orch,
        "write a launch's state beyond a session policy",
        "read it within that policy",
        launch("put_object", Body=b"2"),
        launch("get_object"),
    )

    def lasting(seconds: int) -> Callable[[], Any]:
        """AWS gives no session of no time; emulators do, and so show one that has ended without waiting for it."""

        def call() -> Any:
            return account.client("s3", **account.session(orch, DurationSeconds=seconds)).get_object(
                Bucket=STATE, Key=state
            )

        return call

    yield Attempt(orch, "read with a session that has ended", "with one that lasts", lasting(0), lasting(900))


class Machines:
    """What a launch stands on, in an account of the EC2 emulator, made by its root; and launches of it."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.ec2 = ec2 = account.client("ec2")
        self.vpc = ec2.create_vpc(CidrBlock="10.7.0.0/16")["Vpc"]["VpcId"]
        self.subnet = ec2.create_subnet(VpcId=self.vpc, CidrBlock="10.7.0.0/20", AvailabilityZone=ZONE)["Subnet"][
            "SubnetId"
        ]
        self.group = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=self.vpc)["GroupId"]
        self.foreign_vpc = ec2.create_vpc(CidrBlock="10.8.0.0/16")["Vpc"]["VpcId"]
        self.foreign_subnet = ec2.create_subnet(VpcId=self.foreign_vpc, CidrBlock="10.8.0.0/20", AvailabilityZone=ZONE)[
            "Subnet"
        ]["SubnetId"]
        ec2.create_tags(Resources=[self.vpc, self.subnet, self.group], Tags=pairs(OWN))
        ssm = account.client("ssm")
        name = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-22.04/latest/ami-id"
        self.image = ssm.get_parameter(Name=name)["Parameter"]["Value"]
        self.template = self.made_template("own")
        self._own = self.started(OWN)
        self.foreign = self.started({"owner": "somebody"})

    def made_template(self, name: str, tags: Mapping[str, str] = OWN, **more: Any) -> str:
        data = {
            "ImageId": self.image,
            "IamInstanceProfile": {"Name": NODE},
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1},
            "BlockDeviceMappings": [{"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": True, "VolumeSize": 200}}],
            "TagSpecifications": [
                {"ResourceType": kind, "Tags": pairs(OWN)} for kind in ("instance", "volume", "network-interface")
            ],
            **more,
        }
        own = [{"ResourceType": "launch-template", "Tags": pairs(tags)}]
        made = self.ec2.create_launch_template(LaunchTemplateName=name, LaunchTemplateData=data, TagSpecifications=own)
        return str(made["LaunchTemplate"]["LaunchTemplateId"])

    def started(self, tags: Mapping[str, str]) -> str:
        specified = [{"ResourceType": "instance", "Tags": pairs(tags)}]
        done = self.ec2.run_instances(
            ImageId=self.image,
            InstanceType="g4dn.xlarge",
            MinCount=1,
            MaxCount=1,
            Placement={"AvailabilityZone": ZONE},
            TagSpecifications=specified,
        )
        return str(done["Instances"][0]["InstanceId"])

    def launch(self, client: Any, template: str | None = None, **more: Any) -> Callable[[], Any]:
        asked = {
            "MinCount": 1,
            "MaxCount": 1,
            "InstanceType": "g4dn.xlarge",
            "SubnetId": self.subnet,
            "SecurityGroupIds": [self.group],
            "LaunchTemplate": {"LaunchTemplateId": template or self.template},
            **more,
        }
        return partial(client.run_instances, **{k: v for k, v in asked.items() if v is not None})

    def own(self) -> str:
        """A node of the project that nobody has ended yet."""
        return self.started(OWN)


def on_machines(machines: Machines) -> Iterator[Attempt]:
    """Launching, ending and tagging."""
    account = machines.account
    data, orch = Identity.NODE_DATA, Identity.ORCHESTRATOR
    node, ec2 = account.of(data)("ec2"), account.of(orch)("ec2")
    good = machines.launch(ec2)
    yield Attempt(data, "launch", "as the orchestrator", machines.launch(node), good)
    one = machines.own()
    yield Attempt(
        data,
        "terminate its own machine",
        "as the orchestrator",
        lambda: node.terminate_instances(InstanceIds=[one]),
        lambda: ec2.terminate_instances(InstanceIds=[one]),
    )
    yield Attempt(data, "describe", "as the orchestrator", node.describe_instances, ec2.describe_instances)

    def launched(what: str, twin: str, template: str | None = None, **more: Any) -> Attempt:
        return Attempt(orch, f"launch {what}", twin, machines.launch(ec2, template, **more), good)

    bare = {"MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 1}}
    other = machines.made_template("other-role", IamInstanceProfile={"Name": "skyplan-acme-acc-other"})
    tags = [{"ResourceType": kind, "Tags": pairs(OWN)} for kind in ("volume", "network-interface")]
    untagged = machines.made_template("untagged", TagSpecifications=tags)
    open_disk = [{"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": False, "VolumeSize": 200}}]
    yield launched("with another job's role", "with the role that it may pass", other)
    yield launched("untagged", "with the project's tags", untagged)
    yield launched(
        "for another project",
        "with the project's tags",
        TagSpecifications=[{"ResourceType": "instance", "Tags": pairs({"skyplan:project": "other"})}],
    )
    yield launched("without IMDSv2", "with it", MetadataOptions={"HttpTokens": "optional"})
    yield launched("with a hop limit of 2", "of 1", MetadataOptions={"HttpPutResponseHopLimit": 2})
    yield launched("with an open disk", "with an encrypted one", BlockDeviceMappings=open_disk)
    yield launched(
        "into another's subnet", "into the project's", SubnetId=machines.foreign_subnet, SecurityGroupIds=None
    )
    yield launched("from another's template", "from the deployer's", machines.made_template("foreign", {"a": "b"}))
    yield Attempt(
        orch,
        "launch without a template",
        "with the deployer's",
        machines.launch(
            ec2,
            LaunchTemplate=None,
            ImageId=machines.image,
            IamInstanceProfile={"Name": NODE},
            BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"Encrypted": True, "VolumeSize": 200}}],
            TagSpecifications=[
                {"ResourceType": kind, "Tags": pairs(OWN)} for kind in ("instance", "volume", "network-interface")
            ],
            **bare,
        ),
        good,
    )
    two = machines.own()
    yield Attempt(
        orch,
        "terminate somebody else's instance",
        "the project's",
        lambda: ec2.terminate_instances(InstanceIds=[machines.foreign]),
        lambda: ec2.terminate_instances(InstanceIds=[two]),
    )
    yield Attempt(
        orch,
        "tag somebody else's instance as its own",
        "tag at a launch",
        lambda: ec2.create_tags(Resources=[machines.foreign], Tags=pairs(OWN)),
        good,
    )
    yield Attempt(
        orch,
        "change what a machine runs",
        "look at it",
        lambda: ec2.modify_instance_attribute(InstanceId=machines._own, UserData={"Value": b"#!/bin/sh"}),
        lambda: ec2.describe_instance_attribute(InstanceId=machines._own, Attribute="userData"),
    )
    yield Attempt(
        orch,
        "write a template's next version",
        "look at it",
        lambda: ec2.create_launch_template_version(
            LaunchTemplateId=machines.template, LaunchTemplateData={"UserData": ""}
        ),
        lambda: ec2.describe_launch_template_versions(LaunchTemplateId=machines.template),
    )
    yield Attempt(
        orch,
        "look around in another region",
        "in its own",
        lambda: account.of(orch)("ec2", region="eu-west-1").describe_instances(),
        ec2.describe_instances,
    )


def of_deployer(machines: Machines) -> Iterator[Attempt]:
    """The guard rails of whoever writes roles."""
    account = machines.account
    deploy = Identity.DEPLOYER
    iam, ec2 = account.of(deploy)("iam"), account.of(deploy)("ec2")
    trust = document({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}})
    bound = account.bounds[aws_names.node_boundary_name(account.scope)]
    path = f"/skyplan/{PROJECT}/"

    def role(name: str, **more: Any) -> Callable[[], Any]:
        asked = {
            "RoleName": name,
            "Path": path,
            "AssumeRolePolicyDocument": trust,
            "PermissionsBoundary": bound,
            "Tags": pairs(OWN),
            **more,
        }
        return partial(iam.create_role, **{k: v for k, v in asked.items() if v})

    yield Attempt(deploy, "make a role without the boundary", "with it", role("a", PermissionsBoundary=None), role("b"))
    yield Attempt(deploy, "make a role outside the path", "within it", role("c", Path="/"), role("d"))
    yield Attempt(
        deploy,
        "make a role beside the foundation's",
        "within its path",
        role("e", Path=aws_names.path(PROJECT)),
        role("f"),
    )
    strange = pairs({**OWN, "finance": "yes"})
    yield Attempt(
        deploy, "make a role with a tag that nobody knows", "with known ones", role("g", Tags=strange), role("h")
    )
    yield Attempt(
        deploy,
        "tag a node's role as finance's",
        "with a known tag",
        lambda: iam.tag_role(RoleName=NODE, Tags=pairs({"finance": "yes"})),
        lambda: iam.tag_role(RoleName=NODE, Tags=pairs({"skyplan:job": "x"})),
    )
    anything = document({"Effect": "Allow", "Action": "*", "Resource": "*"})
    control = aws_names.names(account.scope)
    yield Attempt(
        deploy,
        "write a policy for itself",
        "for a node",
        lambda: iam.put_role_policy(RoleName=control[deploy], PolicyName="x", PolicyDocument=anything),
        lambda: iam.put_role_policy(RoleName=NODE, PolicyName="x", PolicyDocument=anything),
    )
    yield Attempt(
        deploy,
        "take the boundary off a node's role",
        "put it on",
        lambda: iam.delete_role_permissions_boundary(RoleName=NODE),
        lambda: iam.put_role_permissions_boundary(RoleName=NODE, PermissionsBoundary=bound),
    )
    yield Attempt(
        deploy,
        "change whom the orchestrator trusts",
        "what it may pass",
        lambda: iam.update_assume_role_policy(RoleName=control[Identity.ORCHESTRATOR], PolicyDocument=trust),
        lambda: iam.put_role_policy(
            RoleName=control[Identity.ORCHESTRATOR], PolicyName="skyplan-pass-x", PolicyDocument=anything
        ),
    )

    def opened(session: str) -> Callable[[], Any]:
        """Made by the deployer to be its own: a node's role that trusts it and may do all that its boundary holds."""
        name = f"open-{session}"
        ours = {"AWS": account.roles[deploy], "Service": "ec2.amazonaws.com"}
        open_trust = document({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": ours})

        def call() -> Any:
            made = role(name, AssumeRolePolicyDocument=open_trust)()["Role"]["Arn"]
            iam.put_role_policy(RoleName=name, PolicyName="x", PolicyDocument=anything)
            held = account.of(deploy)("sts").assume_role(RoleArn=made, RoleSessionName=session)
            return account.client("s3", **credentials(held)).get_object(Bucket=DATA, Key="secret/a")

        return call

    yield Attempt(
        deploy,
        "read data as a node's role that trusts it",
        "the same session on a machine",
        opened("attempt"),
        opened(MACHINE),
    )
    yield Attempt(
        deploy,
        "launch",
        "as the orchestrator",
        machines.launch(ec2),
        machines.launch(account.of(Identity.ORCHESTRATOR)("ec2")),
    )
    yield Attempt(
        deploy,
        "delete another's network",
        "make a subnet in its own",
        lambda: ec2.delete_vpc(VpcId=machines.foreign_vpc),
        lambda: ec2.create_subnet(
            VpcId=machines.vpc,
            CidrBlock="10.7.64.0/20",
            TagSpecifications=[{"ResourceType": "subnet", "Tags": pairs(OWN)}],
        ),
    )
    yield Attempt(
        deploy,
        "tag another's network as its own",
        "change a tag of its own",
        lambda: ec2.create_tags(Resources=[machines.foreign_vpc], Tags=pairs(OWN)),
        lambda: ec2.create_tags(Resources=[machines.vpc], Tags=pairs({"Name": "x"})),
    )
    yield Attempt(
        deploy,
        "give its network to another project",
        "change another tag of it",
        lambda: ec2.create_tags(Resources=[machines.vpc], Tags=pairs({"skyplan:project": "other"})),
        lambda: ec2.create_tags(Resources=[machines.vpc], Tags=pairs({"Name": "y"})),
    )
