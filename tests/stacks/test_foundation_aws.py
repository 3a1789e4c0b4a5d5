"""The foundation stack of an AWS account: every role, who may become it, and what its lines for skyplan.yaml say.  And what a job adds to it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from modules.aws.policy import policy_document
from planner.iam.audit.registry import run
from planner.iam.documents import policy_from
from planner.iam.evaluate.aws import trusts
from planner.iam.foundation import aws
from planner.iam.foundation.aws_entry import entry
from planner.iam.read.inputs import read_inputs
from planner.iam.read.terraform import read_terraform
from planner.model.digest import pretty
from planner.model.grants import Identity
from planner.model.policy import PolicyKind
from planner.model.stack import CiFederation, FoundationInput
from stacks.app import document
from stacks.wiring import compute_variables
from tests.stacks import checker, golden_jobs, inputs
from tests.unit.iam.aws_scope import ACCOUNT, SCOPE

GOLDEN = Path(__file__).with_name("golden") / "fnd-aws-prod.tf.json"
ISSUER = "token.actions.githubusercontent.com"
PULL, MAIN = "repo:acme/infra:pull_request", "repo:acme/infra:ref:refs/heads/main"
CI = CiFederation(issuer=f"https://{ISSUER}", audience="sts.amazonaws.com", repository="acme/infra", branch="main")
SUBJECTS = {Identity.PLANNER: (PULL,)}
OPENED = {Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR}
ENTRY, ENTRY_ROLE = "ci", "${aws_iam_role.ci.arn}"
HOST = f"arn:aws:iam::{ACCOUNT}:role/broker-host"
TRUSTED = {Identity.BROKER: (HOST,)}


def given(**changes):
    identities = tuple(
        replace(one, subjects=SUBJECTS.get(one.identity, ()), trusted=TRUSTED.get(one.identity, ()))
        for one in aws.identities(SCOPE)
    )
    made = FoundationInput(
        **{**inputs.BASE, "role_arn": None, "account": ACCOUNT},
        name="fnd-aws-prod",
        tags=(("skyplan:project", "acme"), ("skyplan:managed", "true")),
        identities=identities,
        boundaries=aws.boundaries(SCOPE),
        ci=CI,
        entry=entry(SCOPE, (MAIN,)),
    )
    return replace(made, **changes)


@pytest.fixture(scope="module")
def made():
    return document(given())


def test_golden(made, request):
    data = pretty(made)
    if request.config.getoption("--update-golden", default=False):
        GOLDEN.write_bytes(data)
    assert data == GOLDEN.read_bytes()


def test_the_providers_schema_takes_it(made):
    assert checker.problems(made) == []


def test_every_role_carries_its_policies_and_the_orchestrator_its_boundary(made):
    roles, policies = made["resource"]["aws_iam_role"], made["resource"]["aws_iam_policy"]
    attached = made["resource"]["aws_iam_role_policy_attachment"].values()
    for one in aws.identities(SCOPE):
        role = roles[one.identity.value]
        assert (role["name"], role["path"]) == (one.name, "/skyplan-foundation/acme/")
        held = {a["policy_arn"] for a in attached if a["role"] == f"${{aws_iam_role.{one.identity.value}.name}}"}
        assert held == {f"${{aws_iam_policy.{policy.name}.arn}}" for policy in one.policies}
        bound = f"${{aws_iam_policy.{one.boundary}.arn}}" if one.boundary else None
        assert role.get("permissions_boundary") == bound
    assert {policy["path"] for policy in policies.values()} == {"/skyplan-foundation/acme/"}
    assert "aws_iam_role_policy" not in made["resource"]


def trust(made, word):
    """The trust policy of a role, references as they stand."""
    statements = []
    for body in made["data"]["aws_iam_policy_document"][f"{word}-trust"]["statement"]:
        conditions: dict[str, dict[str, list[str]]] = {}
        for test in body.get("condition", []):
            conditions.setdefault(test["test"], {})[test["variable"]] = test["values"]
        statements.append(
            {
                "Sid": body["sid"],
                "Effect": body["effect"],
                "Action": body["actions"],
                "Principal": {p["type"]: p["identifiers"] for p in body["principals"]},
                "Condition": conditions,
            }
        )
    document_ = {"Version": "2012-10-17", "Statement": statements}
    return policy_from(document_, kind=PolicyKind.TRUST, name=word)


PROVIDER = "${aws_iam_openid_connect_provider.ci.arn}"


@pytest.mark.parametrize(
    ("subject", "audience", "allowed"),
    [
        (PULL, "sts.amazonaws.com", {"planner"}),
        (MAIN, "sts.amazonaws.com", {ENTRY}),
        (MAIN, "other", set()),
        (PULL, "other", set()),
        (None, "sts.amazonaws.com", set()),
        ("repo:acme/infra:ref:refs/heads/main2", "sts.amazonaws.com", set()),
        ("repo:acme/infra-evil:pull_request", "sts.amazonaws.com", set()),
    ],
)
def test_a_pull_request_only_plans_and_the_protected_branch_comes_in(made, subject, audience, allowed):
    context = {f"{ISSUER}:aud": (audience,)} | ({f"{ISSUER}:sub": (subject,)} if subject else {})
    roles = made["resource"]["aws_iam_role"]
    assert {word for word in roles if trusts(trust(made, word), "Federated", PROVIDER, context)} == allowed


def test_whoever_came_in_may_become_planner_deployer_and_orchestrator_and_never_the_broker(made):
    """Both sides say it: the roles' trust, and the one right of the entry."""
    roles = made["resource"]["aws_iam_role"]
    assert {word for word in roles if trusts(trust(made, word), "AWS", ENTRY_ROLE, {})} == {one.value for one in OPENED}
    held = [a for a in made["resource"]["aws_iam_role_policy_attachment"].values() if "role.ci." in a["role"]]
    assert [a["policy_arn"] for a in held] == ["${aws_iam_policy.skyplan-acme-ci.arn}"]
    (only,) = made["data"]["aws_iam_policy_document"]["skyplan-acme-ci"]["statement"]
    (policy,) = given().entry.policies
    assert only["actions"] == ["sts:AssumeRole"]
    assert only["resources"] == policy.document["Statement"][0]["Resource"]
    names = {roles[word]["path"] + roles[word]["name"] for word in roles if word in {one.value for one in OPENED}}
    assert {place.partition(":role")[2] for place in only["resources"]} == names


def test_what_the_ci_takes_is_an_output(made):
    assert made["output"]["ci"]["value"] == {
        "protected_branch": ENTRY_ROLE,
        "pull_requests": "${aws_iam_role.planner.arn}",
    }


def test_without_ci_nobody_comes_in():
    named = {Identity.PLANNER: (HOST,), Identity.DEPLOYER: (HOST,), Identity.ORCHESTRATOR: (HOST,)}
    identities = tuple(
        replace(one, subjects=(), trusted=named.get(one.identity, one.trusted)) for one in given().identities
    )
    made = document(given(ci=None, entry=None, identities=identities))
    assert ENTRY not in made["resource"]["aws_iam_role"]
    assert "aws_iam_openid_connect_provider" not in made["resource"]
    assert "ci" not in made["output"]
    assert ENTRY_ROLE not in json.dumps(made)


@pytest.mark.parametrize("read", ["written", "inputs"])
def test_no_rule_finds_anything_in_it(made, read):
    """The audit of the foundation itself: each rule, over what Terraform would make and over its input."""
    audited = read_terraform(made, file="cdk.tf.json") if read == "written" else read_inputs([given()])
    assert {one.name for one in audited.subjects} >= {"skyplan-acme-ci", "skyplan-acme-deployer"}
    assert [(one.rule, one.origin, one.message) for one in run(audited)] == []


def test_a_rule_would_find_an_entry_that_any_branch_opens():
    """As the stack never writes it: it compares subjects whole, so that a star in one lets nobody in."""
    wide = replace(given().entry, subjects=("repo:*",))
    assert run(read_inputs([given(entry=wide)])) == ()
    loose = document(given(entry=wide))
    (trust,) = loose["data"]["aws_iam_policy_document"]["ci-trust"]["statement"]
    trust["condition"][1]["test"] = "StringLike"
    assert {one.rule for one in run(read_terraform(loose, file="cdk.tf.json"))} == {"SKY-IAM-402"}


def test_nobody_trusts_everybody_or_a_whole_account(made):
    for word in made["resource"]["aws_iam_role"]:
        for statement in trust(made, word).statements:
            for _, name in statement.principals:
                assert name != "*"
                assert not name.endswith(":root")
            if statement.actions == ("sts:AssumeRoleWithWebIdentity",):
                keys = {test.key for test in statement.tests}
                assert keys == {f"{ISSUER}:aud", f"{ISSUER}:sub"}
                assert not [v for test in statement.tests for v in test.values if v.strip("*") == ""]


def test_any_branch_is_said_as_a_pattern_and_only_for_the_planner():
    any_branch = "project_path:acme/infra:ref_type:branch:ref:*"
    identities = tuple(
        replace(one, subjects=(any_branch,) if one.identity is Identity.PLANNER else one.subjects)
        for one in given().identities
    )
    made = document(given(identities=identities))
    (only,) = (one for one in trust(made, "planner").statements if one.sid != "ThroughCi")
    assert {(t.operator, t.key) for t in only.tests} == {
        ("StringEquals", f"{ISSUER}:aud"),
        ("StringLike", f"{ISSUER}:sub"),
    }


def test_a_provider_that_stands_is_used_and_not_made():
    arn = f"arn:aws:iam::{ACCOUNT}:oidc-provider/{ISSUER}"
    made = document(given(ci=replace(CI, provider=arn)))
    assert "aws_iam_openid_connect_provider" not in made["resource"]
    for word in ("planner", ENTRY):
        assert ("Federated", arn) in [who for one in trust(made, word).statements for who in one.principals]


def test_an_identity_that_nobody_may_become_is_not_made():
    identities = tuple(replace(one, trusted=()) for one in given().identities)
    made = document(given(identities=identities))
    assert set(made["resource"]["aws_iam_role"]) == {"planner", "deployer", "orchestrator", ENTRY}
    assert set(made["output"]["identities"]["value"]) == {"planner", "deployer", "orchestrator"}


def test_the_lines_for_the_project_file(made):
    text = made["output"]["skyplan_yaml"]["value"]
    assert f'account: "{ACCOUNT}"' in text
    assert "deployer_role: ${aws_iam_role.deployer.arn}" in text
    assert "orchestrator_role: ${aws_iam_role.orchestrator.arn}" in text
    assert "permissions_boundary: ${aws_iam_policy.skyplan-acme-node-boundary.arn}" in text


def test_what_is_rendered_is_what_was_planned(made):
    """Through the data source and back: the same statements, nothing lost on the way."""
    for one in (*[p for i in aws.identities(SCOPE) for p in i.policies], *aws.boundaries(SCOPE)):
        found = made["data"]["aws_iam_policy_document"][one.name]["statement"]
        assert [statement["sid"] for statement in found] == [s["Sid"] for s in one.document["Statement"]]
        for statement, planned in zip(found, one.document["Statement"], strict=True):
            assert statement["effect"] == planned["Effect"]
            assert statement["actions"] == planned["Action"]
            assert statement.get("resources") == planned.get("Resource")
            assert statement.get("not_resources") == planned.get("NotResource")
            assert len(statement.get("condition", [])) == sum(
                len(keys) for keys in planned.get("Condition", {}).values()
            )


def test_a_job_gives_the_orchestrator_exactly_its_own_role():
    acc = golden_jobs.golden("aws-spot").acc
    (statement,) = acc["data"]["aws_iam_policy_document"]["pass"]["statement"]
    (planned,) = aws.pass_policy("${aws_iam_role.node.arn}").document["Statement"]
    assert (statement["sid"], statement["actions"], statement["resources"]) == (
        planned["Sid"],
        planned["Action"],
        planned["Resource"],
    )
    (test,) = statement["condition"]
    assert {test["test"]: {test["variable"]: test["values"]}} == planned["Condition"]


def test_without_an_orchestrator_nothing_is_added():
    access = replace(golden_jobs.best("aws-spot").access, orchestrator=None, spot_templates=())
    made = document(access)
    assert "pass" not in made["resource"]["aws_iam_role_policy"]
    assert not [key for key in made["output"]["launch"]["value"] if key.endswith("/spot")]


def test_a_spot_launch_takes_the_template_that_tags_its_request_and_no_other_does():
    case = golden_jobs.best("aws-spot")
    launch = golden_jobs.golden("aws-spot").acc["output"]["launch"]["value"]
    spot = compute_variables(case.compute, {"launch": launch})
    assert spot["launch_template_id"].endswith("-spot.id}")
    plain = compute_variables(replace(case.compute, capacity="on_demand"), {"launch": launch})
    assert not plain["launch_template_id"].endswith("-spot.id}")
    without = {key: value for key, value in launch.items() if not key.endswith("/spot")}
    assert compute_variables(case.compute, {"launch": without}) == plain


def test_variables_of_policies_are_escaped_and_references_are_not(monkeypatch):
    from modules.aws import policy

    held = {}
    monkeypatch.setattr(policy.cdk, "DataSource", lambda scope, name, kind, body: held.update(body))
    places = ["arn:aws:s3:::b/${aws:PrincipalTag/x}/${*}", "${aws_iam_role.node.arn}", "${data.aws_partition.here.id}"]
    policy_document(None, "x", {"Statement": [{"Effect": "Allow", "Action": "a:B", "Resource": places}]})
    assert held["statement"][0]["resources"] == [
        "arn:aws:s3:::b/&{aws:PrincipalTag/x}/&{*}",
        "${aws_iam_role.node.arn}",
        "${data.aws_partition.here.id}",
    ]
    assert json.dumps(held)
