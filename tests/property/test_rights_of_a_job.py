"""For any job: its own rights, and the orchestrator's, allow what is planned, deny what lies beside it, and are clean in the audit (R01, R04)."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from planner.iam.audit.registry import RULES, run
from planner.iam.aws import policies as node_policies
from planner.iam.documents import policy_from
from planner.iam.evaluate.aws import Request, judge
from planner.iam.foundation import aws
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Subject
from tests.unit.iam.aws_scope import ACCOUNT, policies, scope

REGIONS = ("us-east-1", "us-west-2", "eu-central-1", "ap-northeast-1")
WORD = st.text("abcxyz019-", min_size=3, max_size=12).filter(lambda w: w.strip("-") == w and "--" not in w)
PREFIX = st.lists(st.text("abz09-_.*?$[]{}= ", min_size=1, max_size=8).filter(str.strip), min_size=1, max_size=3).map(
    "/".join
)
#: 606 needs the plan's operations; here there are none
JUDGED = [rule for rule in RULES if rule != "SKY-IAM-606"]
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}


@dataclass(frozen=True)
class Job:
    project: str
    name: str
    region: str
    bucket: str
    data: str
    checkpoint: str

    @property
    def role(self) -> str:
        return f"arn:aws:iam::{ACCOUNT}:role/skyplan/{self.project}/skyplan-{self.project}-acc-{self.name}--aws-prod-{self.region}"

    def node(self) -> list[AwsPolicy]:
        def grant(identity: Identity, permission: Permission, prefix: str) -> Grant:
            return Grant(identity=identity, permission=permission, resource=f"s3://{self.bucket}/{prefix}/", reason="r")

        grants = (
            grant(Identity.NODE_DATA, Permission.READ_OBJECTS, self.data),
            grant(Identity.NODE_CHECKPOINT, Permission.WRITE_CHECKPOINTS, self.checkpoint),
        )
        made = node_policies(grants, account=ACCOUNT, region=self.region, kms_key_arn=None)
        return [policy_from(one.document, kind=PolicyKind.IDENTITY, name=one.name) for one in made]

    def orchestrator(self) -> list[AwsPolicy]:
        given = scope(project=self.project, regions=(self.region,), own=())
        passes = aws.pass_policy(self.role)
        return [
            *policies(Identity.ORCHESTRATOR, given),
            policy_from(passes.document, kind=PolicyKind.IDENTITY, name=passes.name),
        ]


JOBS = st.builds(
    Job, project=WORD, name=WORD, region=st.sampled_from(REGIONS), bucket=WORD, data=PREFIX, checkpoint=PREFIX
)


def allowed(held: list[AwsPolicy], action: str, resource: str, **context: str) -> bool:
    values = {key.replace("__", ":").replace("_", "-"): (value,) for key, value in context.items()}
    return bool(judge(held, Request(action=action, resource=resource, context=values)))


@settings(max_examples=25)
@given(JOBS)
def test_nodes_reach_their_prefixes_and_nothing_beside_them(job: Job) -> None:
    assume(not job.checkpoint.startswith(job.data) and not job.data.startswith(job.checkpoint))
    held, here = job.node(), f"arn:aws:s3:::{job.bucket}"
    mine = {"aws__ResourceAccount": ACCOUNT}

    def objects(action: str, place: str, **context: str) -> bool:
        return allowed(held, action, place, **{**mine, **context})

    assert objects("s3:GetObject", f"{here}/{job.data}/shard-1")
    assert objects("s3:ListBucket", here, s3__prefix=f"{job.data}/")
    assert objects("s3:PutObject", f"{here}/{job.checkpoint}/g1/step-1")
    for beside in (
        f"{here}x/{job.data}/shard-1",  # another bucket
        f"{here}/{job.data}2/shard-1",  # a sibling that begins alike
        f"{here}/x{job.data}/shard-1",
        f"{here}/{job.data}",
    ):
        assert not objects("s3:GetObject", beside), beside
        assert not objects("s3:PutObject", beside), beside
    assert not objects("s3:PutObject", f"{here}/{job.data}/shard-1")
    assert not objects("s3:DeleteObject", f"{here}/{job.checkpoint}/g1/step-1")
    assert not objects("s3:ListBucket", here)
    assert not objects("s3:ListBucket", here, s3__prefix=f"{job.data}2/")
    assert not objects("s3:GetObject", f"{here}/{job.data}/shard-1", aws__ResourceAccount="999988887777")
    for action, place in (("ec2:RunInstances", "*"), ("sts:AssumeRole", job.role), ("iam:PassRole", job.role)):
        assert not objects(action, place)


@settings(max_examples=25)
@given(JOBS, WORD, st.sampled_from(REGIONS))
def test_the_orchestrator_launches_passes_and_ends_this_projects_nodes_alone(job: Job, other: str, away: str) -> None:
    assume(other != job.project and away != job.region)
    held = job.orchestrator()

    def tags(kind: str, project: str) -> dict[str, tuple[str, ...]]:
        return {f"aws:{kind}/skyplan:project": (project,), f"aws:{kind}/skyplan:managed": ("true",)}

    def ends(project: str, region: str) -> bool:
        context = {"aws:RequestedRegion": (region,), **tags("ResourceTag", project)}
        place = f"arn:aws:ec2:{region}:{ACCOUNT}:instance/i-1"
        return bool(judge(held, Request(action="ec2:TerminateInstances", resource=place, context=context)))

    def launches(project: str, region: str, **changed: str) -> bool:
        context = {
            "aws:RequestedRegion": (region,),
            "aws:TagKeys": ("skyplan:project", "skyplan:managed", "skyplan:job"),
            "ec2:LaunchTemplate": (f"arn:aws:ec2:{region}:{ACCOUNT}:launch-template/lt-1",),
            "ec2:MetadataHttpTokens": (changed.get("tokens", "required"),),
            "ec2:MetadataHttpPutResponseHopLimit": ("1",),
            "ec2:InstanceType": (changed.get("type", "p5.48xlarge"),),
            "ec2:InstanceProfile": (job.role.replace(":role/", ":instance-profile/"),),
            **tags("RequestTag", project),
        }
        place = f"arn:aws:ec2:{region}:{ACCOUNT}:instance/*"
        return bool(judge(held, Request(action="ec2:RunInstances", resource=place, context=context)))

    def passes(role: str, service: str = "ec2.amazonaws.com") -> bool:
        return bool(
            judge(held, Request(action="iam:PassRole", resource=role, context={"iam:PassedToService": (service,)}))
        )

    assert launches(job.project, job.region)
    assert not launches(other, job.region)
    assert not launches(job.project, away)
    assert not launches(job.project, job.region, tokens="optional")
    assert not launches(job.project, job.region, type="m7i.large")
    assert ends(job.project, job.region)
    assert not ends(other, job.region)
    assert not ends(job.project, away)
    assert passes(job.role)
    assert not passes(job.role + "x")
    assert not passes(job.role.replace(f"/{job.project}/", f"/{other}/"))
    assert not passes(job.role, "lambda.amazonaws.com")
    assert not allowed(held, "s3:GetObject", f"arn:aws:s3:::{job.bucket}/{job.data}/x", aws__ResourceAccount=ACCOUNT)


@settings(max_examples=25)
@given(JOBS)
def test_the_rights_of_a_job_are_clean_in_the_audit(job: Job) -> None:
    trust = policy_from(TRUST, kind=PolicyKind.TRUST, name="trust")
    node = Subject(
        cloud=Cloud.AWS,
        name=job.role.rpartition("/")[2],
        origin=f"acc-{job.name} aws_iam_role.node",
        identity=Identity.NODE_DATA,
        job=job.name,
        policies=(*job.node(), trust),
    )
    orchestrator = Subject(
        cloud=Cloud.AWS,
        name=f"skyplan-{job.project}-orchestrator",
        origin="fnd-aws-prod aws_iam_role.orchestrator",
        identity=Identity.ORCHESTRATOR,
        policies=tuple(job.orchestrator()),
    )
    wanted = (
        (job.name, f"s3://{job.bucket}/{job.data}/", False),
        (job.name, f"s3://{job.bucket}/{job.checkpoint}/", True),
    )
    found = run(Audited(subjects=(node, orchestrator), allowed=wanted), JUDGED)
    assert not found, [(one.rule, one.grant, one.message) for one in found]
