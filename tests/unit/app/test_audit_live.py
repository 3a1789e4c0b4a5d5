"""An account against its plans, in both directions, on moto: what is planned is laid down there, then one thing is changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from planner.app import audit_live, inputs
from planner.app.audit import Read, Request
from planner.app.audit_live import compare, drift
from planner.app.audit_sources import Around, PlanSource, gather, stacks_of
from planner.app.audit_tree import WorkingTree
from planner.app.plan import Request as PlanRequest
from planner.app.plan import run_on
from planner.iam.documents import document_of
from planner.model.digest import pretty
from planner.model.errors import CloudError, PermissionDenied
from planner.model.finding import Finding
from planner.model.grants import CONTROL_IDENTITIES
from planner.model.offer import Cloud
from planner.model.plan import PlacementPlan, to_document
from planner.model.policy import Audited, AwsPolicy, Machine, PolicyKind, Provider, Statement, Subject, Test
from planner.model.project import CiSettings, Project, Target
from planner.model.workload import CheckpointPolicy, Dataset, ObjectPrefix, Store
from tests import builders as b
from tests.unit.app.world import NOW, small_market

ACCOUNT = "123456789012"
GROUND, NODES = "/skyplan-foundation/acme/", "/skyplan/acme/"
ORCHESTRATOR = "skyplan-acme-orchestrator"
ENTRY = "skyplan-acme-ci"
ARN = f"arn:aws:iam::{ACCOUNT}"
CI = CiSettings(
    provider="github",
    issuer="https://token.actions.githubusercontent.com",
    audience="",
    repository="acme/infra",
    branch="main",
)
TARGET = Target(
    name="prod",
    cloud=Cloud.AWS,
    account=ACCOUNT,
    regions=("us-east-1", "us-west-2"),
    orchestrator_role=f"{ARN}:role{GROUND}{ORCHESTRATOR}",
    permissions_boundary=f"{ARN}:policy{GROUND}skyplan-acme-node-boundary",
)
PROJECT = Project(name="acme", targets=(TARGET,), default_targets=False, ci=CI)


@cache
def planned() -> PlacementPlan:
    """A job that reads and writes."""
    read = ObjectPrefix(store=Store.S3, bucket="acme-corpus", prefix="llama/", region="us-east-1")
    write = replace(read, bucket="acme-ckpt", prefix="run/")
    work = b.workload(
        "train",
        data=(Dataset(at=read, size_bytes=10**9),),
        checkpoint=CheckpointPolicy(at=write, size_bytes=10**9, every_hours=0.5),
    )
    job = inputs.Job(workload=work, file="jobs/train.yaml")
    given = inputs.Inputs(jobs=(job,), project=PROJECT, project_file=None, market=small_market(), warnings=())
    return run_on(given, PlanRequest(job_files=(), offline=True), NOW).planned[0].plan


@cache
def known(project: Project = PROJECT) -> Read:
    import tempfile

    around = Around(project=project, market=small_market)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "train.plan.json"
        path.write_bytes(pretty(to_document(planned())))
        gathered = gather((path,), (), WorkingTree(), around)
    return Read(request=Request(), gathered=gathered, around=around, project_file=None)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "emulated")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    with mock_aws():
        yield boto3.client("iam", region_name="us-east-1")


@pytest.fixture
def applied(aws):
    """The account as applying the foundation and the plan leaves it."""
    audited = known().gathered.audited
    provider = aws.create_open_id_connect_provider(
        Url=CI.issuer, ClientIDList=["sts.amazonaws.com"], ThumbprintList=["0" * 40]
    )["OpenIDConnectProviderArn"]

    def text(policy: AwsPolicy) -> str:
        return json.dumps(document_of(policy)).replace("${aws_iam_openid_connect_provider.ci.arn}", provider)

    managed = {p.name: p for s in audited.subjects for p in s.policies if p.name.startswith("arn:")}
    for arn, policy in managed.items():
        aws.create_policy(PolicyName=arn.rsplit("/", 1)[-1], Path=GROUND, PolicyDocument=text(policy))
    for subject in audited.subjects:
        trust = subject.of_kind(PolicyKind.TRUST)
        if not trust:
            continue
        control = subject.identity in CONTROL_IDENTITIES or subject.name == ENTRY
        tags = (
            [] if control else [{"Key": "skyplan:managed", "Value": "true"}, {"Key": "skyplan:job", "Value": "train"}]
        )
        bounds = [{"PermissionsBoundary": p.name} for p in subject.of_kind(PolicyKind.BOUNDARY)]
        aws.create_role(
            RoleName=subject.name,
            Path=GROUND if control else NODES,
            AssumeRolePolicyDocument=text(trust[0]),
            Tags=tags,
            **(bounds[0] if bounds else {}),
        )
        for policy in subject.of_kind(PolicyKind.IDENTITY):
            if policy.name.startswith("arn:"):
                aws.attach_role_policy(RoleName=subject.name, PolicyArn=policy.name)
            else:
                aws.put_role_policy(RoleName=subject.name, PolicyName=policy.name, PolicyDocument=text(policy))
    return aws


def found() -> list[Finding]:
    return list(drift(known())[0])


def node() -> str:
    return next(s.name for s in known().gathered.audited.subjects if s.job == "train")


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


ALL = {"Sid": "All", "Effect": "Allow", "Action": "s3:*", "Resource": "*"}


def test_an_account_as_planned_has_no_drift(applied) -> None:
    assert drift(known()) == ((), ())


def test_an_account_that_has_nothing_lacks_everything(aws) -> None:
    names = {f.message.split(" ")[1] for f in found() if "planned and not in the account" in f.message}
    assert names >= {
        node(),
        ORCHESTRATOR,
        "skyplan-acme-deployer",
        "skyplan-acme-planner",
        "skyplan-acme-node-boundary",
    }


CHANGES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a statement more": (
        lambda iam: iam.put_role_policy(RoleName=node(), PolicyName="extra", PolicyDocument=policy(ALL)),
        "extra/All is in the account and not planned",
    ),
    "a policy less": (
        lambda iam: iam.delete_role_policy(RoleName=node(), PolicyName="node-data"),
        "node-data/Read1 is planned and not in the account",
    ),
    "the pass policy gone": (
        lambda iam: iam.delete_role_policy(RoleName=ORCHESTRATOR, PolicyName=pass_policy()),
        "skyplan-pass-acc-train--aws-prod-us-east-1/",
    ),
    "trust widened": (
        lambda iam: iam.update_assume_role_policy(
            RoleName=node(),
            PolicyDocument=policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": f"{ARN}:root"}}),
        ),
        "trust: trust/statement 1 is in the account and not planned",
    ),
    "another's boundary": (
        lambda iam: iam.put_role_permissions_boundary(
            RoleName=node(), PermissionsBoundary=TARGET.permissions_boundary.replace("node", "orchestrator")
        ),
        "permissions boundary: ",
    ),
    "no boundary": (
        lambda iam: iam.delete_role_permissions_boundary(RoleName=node()),
        "is planned and not in the account",
    ),
    "a right more for CI": (
        lambda iam: iam.put_role_policy(RoleName=ENTRY, PolicyName="extra", PolicyDocument=policy(ALL)),
        "extra/All is in the account and not planned",
    ),
    "anybody of the account comes in": (
        lambda iam: iam.update_assume_role_policy(
            RoleName=ENTRY,
            PolicyDocument=policy({"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": f"{ARN}:root"}}),
        ),
        "trust: trust/",
    ),
    "a role more": (
        lambda iam: iam.create_role(
            RoleName="skyplan-acme-mine", Path=NODES, AssumeRolePolicyDocument=policy(ALL | {"Principal": {"AWS": "*"}})
        ),
        "skyplan-acme-mine is in the account and in no plan",
    ),
}


def pass_policy() -> str:
    audited = known().gathered.audited
    return next(p.name for s in audited.subjects for p in s.policies if p.name.startswith("skyplan-pass-"))


@pytest.mark.parametrize("change", CHANGES)
def test_each_change_of_the_account_is_found_and_nothing_else(applied, change: str) -> None:
    make, words = CHANGES[change]
    make(applied)
    findings = found()
    assert findings
    assert {f.rule for f in findings} == {"SKY-IAM-903"}
    assert any(words in f.message for f in findings), [f.message for f in findings]
    touched = {f.origin.rsplit("/", 1)[-1] for f in findings}
    assert len(touched) == 1, touched


def test_a_changed_statement_is_both_missing_and_extra(applied) -> None:
    held = applied.get_role_policy(RoleName=node(), PolicyName="node-data")["PolicyDocument"]
    held["Statement"][0]["Resource"] = "*"
    applied.put_role_policy(RoleName=node(), PolicyName="node-data", PolicyDocument=json.dumps(held))
    assert sorted(f.message.split(" ", 1)[1] for f in found()) == [
        "is in the account and not planned",
        "is planned and not in the account",
    ]


def test_order_and_spelling_of_a_policy_are_no_drift(applied) -> None:
    held = applied.get_role_policy(RoleName=node(), PolicyName="node-data")["PolicyDocument"]
    for number, statement in enumerate(held["Statement"]):
        statement["Sid"] = f"Renamed{number}"
        statement["Action"] = sorted(
            map(str.upper, [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"])
        )[::-1]
    held["Statement"].reverse()
    applied.put_role_policy(RoleName=node(), PolicyName="node-data", PolicyDocument=json.dumps(held))
    assert found() == []


def test_a_region_made_ready_for_failing_over_may_be_there(applied) -> None:
    plan = known().gathered.plans[0]
    ready = audit_live._ready(known())
    other = next(s for s in ready.subjects if s.job == "train" and s.name != node())
    assert plan.plan.choice.region not in other.name
    trust = json.dumps(document_of(other.of_kind(PolicyKind.TRUST)[0]))
    bound = TARGET.permissions_boundary
    tags = [{"Key": "skyplan:managed", "Value": "true"}, {"Key": "skyplan:job", "Value": "train"}]
    applied.create_role(
        RoleName=other.name, Path=NODES, AssumeRolePolicyDocument=trust, PermissionsBoundary=bound, Tags=tags
    )
    for one in other.of_kind(PolicyKind.IDENTITY):
        applied.put_role_policy(RoleName=other.name, PolicyName=one.name, PolicyDocument=json.dumps(document_of(one)))
    assert found() == []
    applied.put_role_policy(RoleName=other.name, PolicyName="extra", PolicyDocument=policy(ALL))
    assert [f.message for f in found()] == ["extra/All is in the account and not planned"]


# --- places and refusals


class Answer:
    def __init__(self, audited: Audited | Exception) -> None:
        self.audited_ = audited

    def audited(self, *, project: str, buckets: tuple[str, ...] = ()) -> Audited:
        if isinstance(self.audited_, Exception):
            raise self.audited_
        return self.audited_


def test_credentials_of_another_account_are_told_and_not_compared() -> None:
    there = Subject(cloud=Cloud.AWS, name="x", origin="arn:aws:iam::999999999999:role/skyplan/acme/x")
    findings, (told,) = drift(known(), lambda where: Answer(Audited(subjects=(there,))))
    assert findings == ()
    assert (told.code, told.severity.value) == ("SKY-IAM-902", "error")
    assert "999999999999" in told.summary


def test_what_may_not_be_read_is_an_error_where_nothing_was() -> None:
    from planner.model.diagnostic import Diagnostic

    denied = PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary="iam:ListRoles")])
    findings, told = drift(known(), lambda where: Answer(denied))
    assert findings == ()
    assert [(d.code, d.severity.value) for d in told] == [("SKY-APPLY-317", "error")]
    assert issubclass(PermissionDenied, CloudError)


def test_a_region_that_refused_is_an_error_though_another_was_read() -> None:
    from planner.model.diagnostic import Diagnostic

    denied = PermissionDenied([Diagnostic(code="SKY-APPLY-317", summary="ec2:DescribeInstances")])
    source = known().gathered.plans[0]
    more = tuple(replace(stack, region="eu-west-1") for stack in source.stacks)
    gathered = replace(known().gathered, plans=(replace(source, stacks=(*source.stacks, *more)),))
    answers = iter((Audited(), denied))
    _, told = drift(replace(known(), gathered=gathered), lambda where: Answer(next(answers)))
    assert [(d.code, d.severity.value) for d in told if d.code == "SKY-APPLY-317"] == [("SKY-APPLY-317", "error")]


def test_other_clouds_are_said_not_to_be_offered() -> None:
    source = known().gathered.plans[0]
    away = tuple(replace(stack, cloud=Cloud.GCP) for stack in source.stacks)
    gathered = replace(known().gathered, plans=(replace(source, stacks=(*source.stacks, *away)),))
    _, told = drift(replace(known(), gathered=gathered), lambda where: Answer(Audited()))
    assert [(d.severity.value, "gcp" in d.summary) for d in told] == [("warning", True)]
    alone = replace(known().gathered, plans=(replace(source, stacks=away),))
    _, told = drift(replace(known(), gathered=alone), lambda where: Answer(Audited()))
    assert {d.severity.value for d in told} == {"error"}


def test_control_identities_that_no_plan_knows_are_left_alone() -> None:
    bare = replace(PROJECT, ci=None)
    role = Subject(cloud=Cloud.AWS, name="skyplan-acme-planner", origin="o", identity=CONTROL_IDENTITIES[0])
    entry = Subject(cloud=Cloud.AWS, name=ENTRY, origin=f"{ARN}:role{GROUND}{ENTRY}")
    findings, told = drift(known(bare), lambda where: Answer(Audited(subjects=(role, entry))))
    assert not any(name in f.message for f in findings for name in ("skyplan-acme-planner", ENTRY))
    assert any("foundation" in d.summary for d in told)


def one(**changes: Any) -> Statement:
    values = {"sid": "S", "actions": ("s3:GetObject",), "resources": ("${aws_s3_bucket.b.arn}/x/*",)} | changes
    return Statement(**values)


@pytest.mark.parametrize(
    ("planned_", "live", "same"),
    [
        ({}, {"resources": ("arn:aws:s3:::b/x/*",)}, True),
        ({}, {"resources": ("arn:aws:s3:::b/y/*",)}, False),
        ({"resources": ("${aws:PrincipalTag/run}/*",)}, {"resources": ("other/*",)}, False),
        ({"resources": ("a",)}, {"resources": ("a", "b")}, False),
        ({"resources": ("a", "b")}, {"resources": ("a",)}, False),
        ({"resources": ("a",), "effect": "Deny"}, {"resources": ("a",)}, False),
        (
            {"resources": ("a",), "tests": (Test(operator="StringLike", key="s3:prefix", values=("a", "b")),)},
            {"resources": ("a",), "tests": (Test(operator="StringLike", key="S3:Prefix", values=("b", "a")),)},
            True,
        ),
        (
            {"resources": ("a",), "tests": (Test(operator="StringLike", key="s3:prefix", values=("a",)),)},
            {"resources": ("a",)},
            False,
        ),
    ],
)
def test_statements_are_the_same_by_what_they_mean(planned_: Any, live: Any, same: bool) -> None:
    assert audit_live._same(one(**planned_), one(**live)) is same


def test_machines_that_answer_more_easily_than_planned() -> None:
    want = Machine(cloud=Cloud.AWS, origin="t", job="train", hop_limit=1, tokens_required=True)
    easy = Machine(cloud=Cloud.AWS, origin="i-1", job="train", hop_limit=2, tokens_required=False)
    other = replace(easy, job="strange")
    findings = compare(Audited(machines=(want,)), Audited(machines=(want, easy, other)))
    assert [(f.origin, "hops" in f.message) for f in findings] == [("i-1", False), ("i-1", True)]


def test_an_issuer_that_is_not_believed_is_missing() -> None:
    want = Provider(cloud=Cloud.AWS, origin="o", issuer="https://i/", audiences=("a",), condition="")
    (missing,) = compare(Audited(providers=(want,)), Audited())
    assert "planned to be believed" in missing.message
    there = replace(want, issuer="i", origin="arn:x")
    assert compare(Audited(providers=(want,)), Audited(providers=(there,))) == ()
    (extra,) = compare(Audited(providers=(want,)), Audited(providers=(replace(there, audiences=("a", "b")),)))
    assert (extra.origin, "for b are believed and not planned" in extra.message) == ("arn:x", True)


def test_the_plan_source_is_what_the_test_thinks() -> None:
    stacks = stacks_of(planned(), known().around)
    assert isinstance(known().gathered.plans[0], PlanSource)
    assert {s.name for s in stacks} == {s.name for s in known().gathered.plans[0].stacks}
