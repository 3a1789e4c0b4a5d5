"""Why an identity has its rights, and rights of one identity in several places (R26)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.app.audit_explain import explain
from planner.app.audit_join import connected, filled
from planner.app.audit_rights import rights_of
from planner.app.audit_sources import Gathered, gather
from planner.app.audit_tree import WorkingTree
from planner.iam.audit import registry
from planner.model.errors import InputError
from planner.model.finding import Level
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    AwsPolicy,
    Permit,
    PolicyKind,
    Provider,
    RoleAssignment,
    RoleBinding,
    Statement,
    Subject,
    Test,
)
from tests.unit.app.auditing import (
    NARROW,
    WIDE,
    policy,
    put,
    role,
    run,
    source,
    wide_resources,
)
from tests.unit.app.world import small_market


@pytest.fixture
def one_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = registry.Rule(id="SKY-IAM-109", level=Level.HIGH, why="w", fix="f", check=wide_resources)
    monkeypatch.setattr(registry, "RULES", {"SKY-IAM-109": rule})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_each_clouds_rights_are_rows() -> None:
    subject = Subject(
        cloud=Cloud.GCP,
        name="s",
        origin="o",
        policies=(
            policy(
                Statement(
                    not_actions=("iam:*",),
                    not_resources=("x",),
                    tests=(Test(operator="Bool", key="k", values=("true",)),),
                )
            ),
            policy(Statement(actions=("sts:AssumeRole",)), kind=PolicyKind.TRUST),
        ),
        bindings=(
            RoleBinding(member="m", role="roles/viewer", on="projects/p"),
            RoleBinding(member="m", role="custom", on="projects/p", permissions=("a.b.get", "a.b.list"), condition="c"),
        ),
        assignments=(
            RoleAssignment(role="r", scope="/s", actions=("A/*",), not_actions=("A/x",), data_actions=("B/y",)),
        ),
        permits=(Permit(role="viewer", on="bucket", paths=("a/*",)),),
    )
    rows = [(r.grant, r.action, r.resources, r.bounds) for r in rights_of(subject)]
    assert rows == [
        ("p/statement 1", "all but iam:*", ("all but x",), ("k Bool true",)),
        ("roles/viewer", "roles/viewer", ("projects/p",), ()),
        ("custom", "a.b.get", ("projects/p",), ("c",)),
        ("custom", "a.b.list", ("projects/p",), ("c",)),
        ("r", "A/*", ("/s",), ("not A/x",)),
        ("r", "B/y", ("/s",), ("not A/x",)),
        ("viewer", "viewer", ("bucket",), ("paths a/*",)),
    ]


def orchestrator(*actions: str) -> Subject:
    return Subject(
        cloud=Cloud.AWS,
        name="skyplan-acme-orchestrator",
        origin="fnd-aws-prod aws_iam_role.orchestrator",
        identity=Identity.ORCHESTRATOR,
        policies=(
            policy(Statement(sid="S", actions=actions, resources=("*",)), name="orchestrator"),
            policy(Statement(actions=("sts:AssumeRole",), principals=(("AWS", "arn:x"),)), kind=PolicyKind.TRUST),
        ),
    )


@pytest.mark.parametrize("asked", ["orchestrator", "skyplan-acme-orchestrator"])
def test_a_permission_is_explained_by_the_operation_that_needs_it(asked: str) -> None:
    needs = {(Identity.ORCHESTRATOR, Cloud.AWS): {"ec2:RunInstances": "create aws_instance"}}
    audited = Audited(subjects=(orchestrator("ec2:RunInstances", "ec2:Describe*", "ec2:RebootInstances"),), needs=needs)
    told = explain(asked, Gathered(audited=audited))
    rows = {r.action: r for r in told.rights}
    assert any("aws_instance" in word and "(compute)" in word for word in rows["ec2:RunInstances"].needed_by)
    assert rows["ec2:Describe*"].needed_by
    assert rows["ec2:RebootInstances"].needed_by == ()
    assert [rows[a].used for a in ("ec2:RunInstances", "ec2:RebootInstances")] == [True, False]
    assert [(one.subject, one.place, one.trusted) for one in told.who] == [
        ("skyplan-acme-orchestrator", "fnd-aws-prod", ("AWS arn:x",))
    ]


def founded(cloud: Cloud, address: str, target: str = "prod", **held: Any) -> Subject:
    return Subject(
        cloud=cloud,
        name="skyplan-acme-orchestrator",
        origin=f"fnd-{cloud.value}-{target} {address}.orchestrator",
        identity=Identity.ORCHESTRATOR,
        **held,
    )


def test_identities_of_one_name_are_explained_apart_by_cloud_and_account() -> None:
    door = policy(Statement(actions=("sts:AssumeRole",), principals=(("AWS", "arn:x"),)), kind=PolicyKind.TRUST)
    cap = policy(Statement(actions=("s3:*",), resources=("*",)), kind=PolicyKind.BOUNDARY, name="cap")
    audited = Audited(
        subjects=(
            orchestrator("ec2:RunInstances"),
            founded(Cloud.AWS, "aws_iam_role", "lab", policies=(door, cap)),
            founded(
                Cloud.AZURE,
                "azurerm_user_assigned_identity",
                assignments=(RoleAssignment(role="Reader", scope="/s"),),
            ),
        )
    )
    told = explain("orchestrator", Gathered(audited=audited))
    assert [(one.cloud, one.place, one.limits, one.trusted) for one in told.who] == [
        ("aws", "fnd-aws-lab", ("within the boundary cap",), ("AWS arn:x",)),
        ("aws", "fnd-aws-prod", (), ("AWS arn:x",)),
        ("azure", "fnd-azure-prod", (), ()),
    ]
    assert [len(told.of(one)) for one in told.who] == [0, 1, 1]


def test_who_may_become_an_identity_is_told_of_every_cloud() -> None:
    account = "projects/p/serviceAccounts/skyplan-acme-orchestrator@p.iam.gserviceaccount.com"
    member = "principal://iam.googleapis.com/projects/1/pool/subject/repo:acme/infra:ref:refs/heads/main"
    pool = Subject(
        cloud=Cloud.GCP,
        name=member,
        origin="fnd-gcp-prod google_service_account_iam_member.ci",
        bindings=(RoleBinding(member=member, role="roles/iam.workloadIdentityUser", on=account),),
    )
    azure = founded(Cloud.AZURE, "azurerm_user_assigned_identity")
    token = Provider(
        cloud=Cloud.AZURE, origin="o", issuer="https://i", audiences=("a",), condition="sub == 's'", opens=azure.origin
    )
    audited = Audited(
        subjects=(founded(Cloud.GCP, "google_service_account"), azure, pool),
        providers=(token, replace(token, opens="", issuer="https://other")),
    )
    told = {one.cloud: one.trusted for one in explain("orchestrator", Gathered(audited=audited)).who}
    assert told == {
        "gcp": (f"principal {member.partition(':')[2]} if by roles/iam.workloadIdentityUser",),
        "azure": ("token of https://i if sub == 's' and audience a",),
    }


def test_a_policy_that_is_managed_elsewhere_is_explained_as_one_line() -> None:
    admin = AwsPolicy(kind=PolicyKind.IDENTITY, name="arn:aws:iam::aws:policy/AdministratorAccess", statements=())
    subject = replace(orchestrator(), policies=(admin,))
    (right,) = explain("orchestrator", Gathered(audited=Audited(subjects=(subject,)))).rights
    assert right.action == "all of arn:aws:iam::aws:policy/AdministratorAccess"
    assert "not in this document" in right.reason


def test_a_boundary_is_explained_and_is_nobody(folder: Path, one_rule: None) -> None:
    lets = Statement(sid="L", actions=("s3:GetObject",), resources=("*",))
    cap = policy(lets, kind=PolicyKind.BOUNDARY, name="arn:aws:iam::1:policy/acme-orchestrator-boundary")
    loose = Subject(
        cloud=Cloud.AWS,
        name="acme-node-boundary",
        origin="fnd-aws-prod aws_iam_policy.node",
        policies=(replace(cap, name="acme-node-boundary"),),
    )
    audited = Audited(subjects=(founded(Cloud.AWS, "aws_iam_role", policies=(cap,)), loose))
    told = explain("acme-orchestrator-boundary", Gathered(audited=audited))
    assert [(r.grant, r.action) for r in told.rights] == [("acme-orchestrator-boundary/L", "s3:GetObject")]
    assert told.who[0].limits[1] == "bounds skyplan-acme-orchestrator"
    told = explain("acme-node-boundary", Gathered(audited=audited))
    assert len(told.rights) == 1
    assert told.who[0].limits[1].startswith("bounds nobody")


def test_a_role_whose_trust_was_not_read_is_one_identity_with_what_others_give_it() -> None:
    give = policy(Statement(sid="Pass", actions=("iam:PassRole",), resources=("arn:x",)), name="skyplan-pass")
    given = replace(orchestrator(), origin="acc-train--aws-prod-us-east-1 aws_iam_role_policy.pass", policies=(give,))
    home = replace(orchestrator("a:B"), origin="shown.json module.f.aws_iam_role.orchestrator[0]")
    home = replace(home, policies=home.policies[:1])
    (found,) = connected(Audited(subjects=(home, given))).subjects
    assert give in found.policies


def test_the_pipelines_own_role_is_explained_by_its_word() -> None:
    entry = replace(orchestrator("sts:AssumeRole"), name="x-ci", origin="fnd-aws-prod aws_iam_role.ci", identity=None)
    told = explain("ci", Gathered(audited=Audited(subjects=(entry, orchestrator("a:B")))))
    assert [(one.subject, len(told.of(one))) for one in told.who] == [("x-ci", 1)]


def test_a_policy_for_a_role_of_two_accounts_is_joined_by_its_target() -> None:
    give = policy(Statement(sid="Pass", actions=("iam:PassRole",), resources=("arn:x",)), name="skyplan-pass")
    given = replace(orchestrator(), origin="acc-train--aws-lab-us-east-1 aws_iam_role_policy.pass", policies=(give,))
    lab = replace(orchestrator("a:B"), origin="fnd-aws-lab aws_iam_role.orchestrator")
    found = connected(Audited(subjects=(orchestrator("a:B"), lab, given))).subjects
    assert [(s.origin.split()[0], give in s.policies) for s in found] == [
        ("fnd-aws-prod", False),
        ("fnd-aws-lab", True),
    ]


def test_without_a_plan_nothing_is_said_of_use() -> None:
    told = explain("orchestrator", Gathered(audited=Audited(subjects=(orchestrator("ec2:RunInstances"),))))
    assert [r.used for r in told.rights] == [None]


def test_a_nodes_two_identities_are_told_apart_with_the_grants_reason() -> None:
    node = Subject(
        cloud=Cloud.AWS,
        name="n",
        origin="o",
        identity=Identity.NODE_DATA,
        job="train",
        policies=(
            policy(
                Statement(sid="R", actions=("s3:GetObject",), resources=("arn:aws:s3:::acme-corpus/llama/*",)),
                name="node-data",
            ),
            policy(
                Statement(sid="W", actions=("s3:PutObject",), resources=("arn:aws:s3:::acme-ckpt/x/*",)),
                name="node-checkpoint",
            ),
        ),
    )
    given = {
        Grant(
            identity=Identity.NODE_DATA,
            permission=Permission.READ_OBJECTS,
            resource="s3://acme-corpus/llama/",
            reason="training data",
        ),
        Grant(
            identity=Identity.NODE_CHECKPOINT,
            permission=Permission.WRITE_CHECKPOINTS,
            resource="s3://acme-ckpt/x/",
            reason="checkpoints",
        ),
    }
    one = replace(source(), plan=replace(source().plan, grants={"d": tuple(sorted(given))}))
    gathered = Gathered(audited=Audited(subjects=(node,)), plans=(one,))
    data, checkpoint = explain("node-data", gathered).rights, explain("node-checkpoint", gathered).rights
    assert [(r.action, r.reason) for r in data] == [("s3:GetObject", "training data: s3://acme-corpus/llama/")]
    assert [(r.action, r.reason) for r in checkpoint] == [("s3:PutObject", "checkpoints: s3://acme-ckpt/x/")]


def test_an_identity_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(InputError) as caught:
        explain("broker", Gathered(audited=Audited(subjects=(orchestrator("a:B"),))))
    assert caught.value.diagnostics[0].code == "SKY-IAM-907"
    assert "skyplan-acme-orchestrator" in caught.value.diagnostics[0].hint


def test_gather_reads_nothing_of_nothing() -> None:
    from planner.app.audit_sources import Around
    from tests.unit.app.world import PROJECT

    assert gather((), (), WorkingTree(), Around(project=PROJECT, market=small_market)).audited == Audited()


def trusted(*, name: str = "ci", origin: str = "a") -> Subject:
    trust = policy(Statement(actions=("sts:AssumeRole",)), kind=PolicyKind.TRUST, name="trust")
    return Subject(cloud=Cloud.AWS, name=name, origin=origin, policies=(trust,))


def test_a_policy_that_another_file_gives_is_the_roles() -> None:
    more = Subject(cloud=Cloud.AWS, name="ci", origin="b", policies=(policy(Statement(actions=("iam:PassRole",))),))
    (one,) = connected(Audited(subjects=(more, trusted()))).subjects
    assert (one.origin, [p.name for p in one.policies]) == ("a", ["trust", "p"])


def test_of_two_roles_of_one_name_nobody_knows_which_is_meant() -> None:
    more = Subject(cloud=Cloud.AWS, name="ci", origin="b", policies=(policy(Statement(actions=("iam:PassRole",))),))
    given = Audited(subjects=(more, trusted(), trusted(origin="other account")))
    assert connected(given) == given


def test_a_boundary_named_by_its_arn_gets_its_statements() -> None:
    arn = "arn:aws:iam::111122223333:policy/cap"
    cap = policy(Statement(actions=("s3:*",)), kind=PolicyKind.BOUNDARY, name=arn)
    bare = replace(trusted(), policies=(*trusted().policies, replace(cap, statements=())))
    own = Subject(cloud=Cloud.AWS, name="cap", origin="b", policies=(cap,))
    first, second = filled(Audited(subjects=(bare, own))).subjects
    assert first.of_kind(PolicyKind.BOUNDARY) == (cap,)
    assert second == own


def test_a_boundary_that_nobody_has_read_hides_no_widening(folder: Path, one_rule: None) -> None:
    def bounded(statement: dict[str, Any]) -> dict[str, Any]:
        document = role(statement)
        document["resource"]["aws_iam_role"]["ci"]["permissions_boundary"] = "arn:aws:iam::111122223333:policy/cap"
        return document

    put(folder / "old.tf.json", bounded(NARROW))
    put(folder / "new.tf.json", bounded(WIDE))
    assert {f.rule for f in run("new.tf.json", base="old.tf.json").findings} == {"SKY-IAM-605", "SKY-IAM-109"}
    put(folder / "new.tf.json", role(NARROW))
    (gone,) = run("new.tf.json", base="old.tf.json").findings
    assert "boundary" in gone.message


def test_half_of_an_administrator_taken_away_is_nothing_new(folder: Path) -> None:
    """What an administrator's finding took in was there before."""
    ends = ["ec2:TerminateInstances", "ec2:StopInstances"]
    for name, actions in (("base", "*"), ("now", ends)):
        held = role({"Sid": "All", "Effect": "Allow", "Action": actions, "Resource": "*"})
        put(folder / name / "iam.tf.json", held)
    assert "SKY-IAM-102" not in {f.rule for f in run("base/iam.tf.json").findings}
    report = run("now/iam.tf.json", base="base/iam.tf.json")
    assert report.standing > 0
    assert "SKY-IAM-102" not in {f.rule for f in report.findings}
