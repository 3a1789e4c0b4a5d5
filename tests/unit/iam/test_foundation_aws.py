"""AWS's control identities: golden documents, IAM's sizes, no action without its guard, and twins that differ in one thing, judged by the local evaluator."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.iam import actions
from planner.iam.aws import AZURE_AUDIENCE, literal
from planner.iam.documents import policy_from
from planner.iam.evaluate.aws import Request, judge
from planner.iam.foundation import aws
from planner.iam.foundation.aws_entry import entry
from planner.iam.foundation.aws_guards import GUARDS
from planner.iam.operations.aws import OPERATIONS
from planner.model.grants import CONTROL_IDENTITIES
from planner.model.policy import PolicyKind
from tests.unit.iam.aws_scope import ACCOUNT, SCOPE, policies, scope

GOLDEN = Path(__file__).with_name("golden_foundation_aws.json")
P, D, ORCH, B = CONTROL_IDENTITIES
#: read-only actions that know no resource and no region worth binding
UNBOUND = {"pricing:GetProducts"}


def allows(identity, given=SCOPE):
    return [one for one in aws.statements(given, identity) if one["Effect"] == "Allow"]


def document():
    return {
        "identities": {
            one.name: {policy.name: policy.document for policy in one.policies} for one in aws.identities(SCOPE)
        },
        "boundaries": {one.name: one.document for one in aws.boundaries(SCOPE)},
    }


def test_golden(request):
    made = json.dumps(document(), indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--update-golden", default=False):
        GOLDEN.write_text(made, encoding="utf-8")
    assert made == GOLDEN.read_text(encoding="utf-8")


def check(given):
    """What holds for every scope."""
    for one in aws.identities(given):
        assert 1 <= len(one.policies) <= aws.MAX_POLICIES
        assert all(aws.size(policy.document) <= aws.MAX_POLICY for policy in one.policies)
        found = [statement for policy in one.policies for statement in policy.document["Statement"]]
        sids = [statement["Sid"] for statement in found]
        assert len(set(sids)) == len(sids)
        assert all(sid.isalnum() for sid in sids)
        for statement in found:
            assert statement["Action"]
            if statement["Effect"] == "Allow":
                guarded(statement)
    for boundary in aws.boundaries(given):
        assert aws.size(boundary.document) <= aws.MAX_POLICY


def guarded(statement):
    assert "NotAction" not in statement
    assert "NotResource" not in statement
    assert not [action for action in statement["Action"] if "*" in action]
    if "*" in statement["Resource"]:
        assert statement.get("Condition") or set(statement["Action"]) <= UNBOUND
        levels = {actions.access_level(action) for action in statement["Action"]}
        assert levels <= {"List", "Read"}, statement["Sid"]
    if "iam:PassRole" in statement["Action"]:
        assert statement["Condition"]["StringEquals"]["iam:PassedToService"] == ["ec2.amazonaws.com"]
        assert all(":role/skyplan/" in place for place in statement["Resource"])


REGION = st.from_regex(
    r"(us|eu|ap|sa|me|af|il|mx|ca)-(gov-)?(north|south|east|west|central)(east|west)?-[1-9]", fullmatch=True
)
ODD = st.text("abz09-_*?${}.", min_size=1, max_size=40)
SCOPES = st.builds(
    scope,
    # a longer one, with all else at its widest, is refused with its figures: the orchestrator's boundary is one policy
    project=ODD.filter(lambda text: len(literal(text)) <= 30),
    regions=st.lists(REGION, min_size=1, max_size=40, unique=True).map(tuple),
    instance_types=st.lists(st.sampled_from(["p5*", "g6e.*", "p4d.24xlarge", "*"]), max_size=4, unique=True).map(tuple),
    state=st.sampled_from(["", "acme-tfstate"]),
    kms_key=st.sampled_from(["", f"arn:aws:kms:us-east-1:{ACCOUNT}:key/k"]),
    partition=st.sampled_from(["aws", "aws-us-gov", "aws-cn"]),
    tag_keys=st.lists(ODD, max_size=5, unique=True).map(tuple),
    own=st.lists(st.integers(0, 10**6).map(lambda n: f"us-east-1/subnet/subnet-{n}"), max_size=40, unique=True).map(
        tuple
    ),
)


@settings(max_examples=25, deadline=None)
@given(SCOPES)
def test_no_scope_makes_an_action_unguarded_or_a_policy_too_long(given):
    check(given)


@pytest.mark.parametrize("identity", CONTROL_IDENTITIES)
def test_every_action_is_one_that_an_operation_takes_and_none_is_left_out(identity):
    needed = {action for one in OPERATIONS if one.identity is identity for action in one.actions}
    held = {
        action
        for one in allows(identity, scope(kms_key=f"arn:aws:kms:us-east-1:{ACCOUNT}:key/k"))
        for action in one["Action"]
    }
    assert held == needed - ({"iam:PassRole"} if identity is ORCH else set())


def test_no_guard_stands_for_nothing():
    """An action in a guard that no operation takes would come into a policy unseen, with the next operation."""
    for guard in GUARDS:
        needed = {
            action
            for one in OPERATIONS
            if one.identity is guard.identity and one.permission in guard.permissions
            for action in one.actions
        }
        unneeded = set(guard.actions) - needed
        assert guard.sid in {"DescribeOnly", "DescribeOwnAttributes", "ReadCapacity"} or not unneeded, (
            guard.sid,
            unneeded,
        )


def kinds_of(statement, action):
    """Types of resource of the statement that the action is checked against; {None} where the action knows none."""
    forms = actions.arn_forms(action.partition(":")[0])
    types = actions.resource_types(action)
    if not types:
        return {None} if statement["Resource"] == ["*"] else set()

    def fits(kind, place):
        form, wanted = forms[kind].split(":", 5), place.split(":", 5)
        if form[2] != wanted[2]:
            return False
        if form[5].startswith("$"):
            return ("/" in form[5]) == ("/" in wanted[5])
        return form[5].split("/")[0] == wanted[5].split("/")[0]

    return {kind for kind in types for place in statement["Resource"] if place != "*" and fits(kind, place)}


@pytest.mark.parametrize("identity", CONTROL_IDENTITIES)
def test_every_condition_can_be_met(identity):
    """Of each action, on some resource type of its statement, every key of the condition can be there: no dead grant."""
    for statement in allows(identity, scope(kms_key=f"arn:aws:kms:us-east-1:{ACCOUNT}:key/k")):
        keys = {key for tests in statement.get("Condition", {}).values() for key in tests}
        for action in statement["Action"]:
            kinds = kinds_of(statement, action)
            assert kinds, (statement["Sid"], action)
            good = [kind for kind in kinds if all(actions.has_key(action, key, kind) for key in keys)]
            assert good, (statement["Sid"], action, keys)


HERE = f"arn:aws:ec2:us-east-1:{ACCOUNT}"
TEMPLATE = {"ec2:LaunchTemplate": f"{HERE}:launch-template/lt-1"}
REGIONAL = {"aws:RequestedRegion": "us-east-1"}
TAGS = {"aws:RequestTag/skyplan:project": "acme", "aws:RequestTag/skyplan:managed": "true"}
MADE = {**REGIONAL, **TAGS, "aws:TagKeys": ("skyplan:project", "skyplan:managed", "skyplan:job", "Name", "team")}
OWNED = {**REGIONAL, "aws:ResourceTag/skyplan:project": "acme", "aws:ResourceTag/skyplan:managed": "true"}
NODE = {
    **MADE,
    **TEMPLATE,
    "ec2:MetadataHttpTokens": "required",
    "ec2:MetadataHttpPutResponseHopLimit": "1",
    "ec2:InstanceType": "p5.48xlarge",
    "ec2:InstanceProfile": f"arn:aws:iam::{ACCOUNT}:instance-profile/skyplan/acme/skyplan-acme-acc-train",
}
RUN, TAG, END = "ec2:RunInstances", "ec2:CreateTags", "ec2:TerminateInstances"
IMAGE = {**REGIONAL, **TEMPLATE, "ec2:Owner": "amazon"}
NODES = f"arn:aws:iam::{ACCOUNT}:role/skyplan/acme/n"
BOUND = {"iam:PermissionsBoundary": f"arn:aws:iam::{ACCOUNT}:policy/skyplan-foundation/acme/skyplan-acme-node-boundary"}
UNKNOWN = ("aws:TagKeys", ("skyplan:project", "skyplan:managed", "finance"))
LAUNCHER = f"arn:aws:iam::{ACCOUNT}:role/skyplan-foundation/acme/skyplan-acme-orchestrator"
LAUNCHER_BOUND = {"iam:PermissionsBoundary": BOUND["iam:PermissionsBoundary"].replace("node", "orchestrator")}
STATE = "arn:aws:s3:::acme-tfstate"
PROFILES = f"arn:aws:iam::{ACCOUNT}:instance-profile/skyplan/acme/n"
KEYS = {"aws:TagKeys": ("skyplan:job", "team")}
RETAGGED = {**OWNED, "aws:TagKeys": ("skyplan:job", "team")}
MINE = {"aws:ResourceAccount": ACCOUNT}
ABSENT = None

# (identity, action, resource, context that is allowed, (key, value) or resource that makes it denied)
TWINS = [
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("aws:RequestTag/skyplan:project", "other")),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("aws:RequestTag/skyplan:managed", ABSENT)),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("aws:TagKeys", ("skyplan:project", "skyplan:managed", "Owner"))),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:MetadataHttpTokens", "optional")),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:MetadataHttpTokens", ABSENT)),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:MetadataHttpPutResponseHopLimit", "2")),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:InstanceType", "m7i.large")),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:InstanceProfile", ABSENT)),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:InstanceProfile", f"arn:aws:iam::{ACCOUNT}:instance-profile/admin")),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("ec2:LaunchTemplate", ABSENT)),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, ("aws:RequestedRegion", "eu-west-1")),
    (ORCH, RUN, f"{HERE}:instance/*", NODE, "arn:aws:ec2:us-east-1:999988887777:instance/*"),
    (ORCH, RUN, f"{HERE}:volume/*", {**MADE, **TEMPLATE, "ec2:Encrypted": "true"}, ("ec2:Encrypted", "false")),
    (ORCH, RUN, f"{HERE}:network-interface/*", {**MADE, **TEMPLATE}, ("aws:RequestTag/skyplan:project", ABSENT)),
    (ORCH, RUN, f"{HERE}:spot-instances-request/*", MADE, ("aws:RequestTag/skyplan:project", ABSENT)),
    (ORCH, RUN, f"{HERE}:subnet/subnet-1", OWNED, ("aws:ResourceTag/skyplan:project", "other")),
    (ORCH, RUN, f"{HERE}:launch-template/lt-1", OWNED, ("aws:ResourceTag/skyplan:project", ABSENT)),
    (ORCH, RUN, f"{HERE}:subnet/subnet-0own", {**REGIONAL, **TEMPLATE}, f"{HERE}:subnet/subnet-0other"),
    (ORCH, RUN, f"{HERE}:capacity-reservation/cr-0own", {**REGIONAL, **TEMPLATE}, f"{HERE}:capacity-reservation/cr-0x"),
    (ORCH, RUN, "arn:aws:ec2:us-east-1::image/ami-1", IMAGE, ("ec2:Owner", "999988887777")),
    (ORCH, TAG, f"{HERE}:instance/i-1", {**MADE, "ec2:CreateAction": "RunInstances"}, ("ec2:CreateAction", ABSENT)),
    (ORCH, TAG, f"{HERE}:instance/i-1", {**MADE, "ec2:CreateAction": "RunInstances"}, f"{HERE}:vpc/vpc-1"),
    (ORCH, END, f"{HERE}:instance/i-1", OWNED, ("aws:ResourceTag/skyplan:project", "other")),
    (ORCH, END, f"{HERE}:instance/i-1", OWNED, ("aws:ResourceTag/skyplan:managed", ABSENT)),
    (ORCH, "ec2:CancelSpotInstanceRequests", f"{HERE}:spot-instances-request/sir-1", OWNED, ("aws:ResourceTag/skyplan:project", ABSENT)),
    (ORCH, "ec2:AssociateAddress", f"{HERE}:elastic-ip/eipalloc-1", OWNED, ("aws:ResourceTag/skyplan:project", ABSENT)),
    (ORCH, "ec2:DescribeInstanceAttribute", f"{HERE}:instance/i-1", OWNED, ("aws:ResourceTag/skyplan:project", "other")),
    (ORCH, "ec2:DescribeInstances", "*", REGIONAL, ("aws:RequestedRegion", "eu-west-1")),
    (ORCH, "s3:PutObject", f"{STATE}/skyplan/acme/cmp-train-g1.tfstate", MINE, f"{STATE}/skyplan/acme/acc-train.tfstate"),
    (ORCH, "s3:DeleteObject", f"{STATE}/skyplan/acme/cmp-t.tfstate.tflock", MINE, f"{STATE}/skyplan/acme/cmp-t.tfstate"),
    (ORCH, "s3:ListBucket", STATE, {**MINE, "s3:prefix": "skyplan/acme/cmp-t"}, ("s3:prefix", "skyplan/")),
    (ORCH, "s3:ListBucket", STATE, {**MINE, "s3:prefix": "skyplan/acme/cmp-t"}, ("aws:ResourceAccount", "999988887777")),
    (ORCH, "s3:PutObject", f"{STATE}/skyplan/acme/cmp-t.tfstate", MINE, ("aws:ResourceAccount", "999988887777")),
    (ORCH, "s3:DeleteObject", f"{STATE}/skyplan/acme/cmp-t.tfstate.tflock", MINE, ("aws:ResourceAccount", ABSENT)),
    (D, "s3:GetObject", f"{STATE}/skyplan/acme/net-x.tfstate", MINE, ("aws:ResourceAccount", "999988887777")),
    (D, "ec2:CreateVpc", f"{HERE}:vpc/*", MADE, ("aws:RequestTag/skyplan:project", "other")),
    (D, "ec2:CreateSubnet", f"{HERE}:vpc/vpc-1", OWNED, ("aws:ResourceTag/skyplan:project", ABSENT)),
    (D, "ec2:CreateSecurityGroup", f"{HERE}:vpc/vpc-0own", REGIONAL, f"{HERE}:vpc/vpc-0other"),
    (D, "ec2:AuthorizeSecurityGroupIngress", f"{HERE}:security-group/sg-1", OWNED, ("aws:ResourceTag/skyplan:project", "other")),
    (D, "ec2:DeleteVpc", f"{HERE}:vpc/vpc-1", OWNED, ("aws:ResourceTag/skyplan:project", "other")),
    (D, TAG, f"{HERE}:vpc/vpc-1", {**MADE, "ec2:CreateAction": "CreateVpc"}, ("ec2:CreateAction", "CreateImage")),
    (D, TAG, f"{HERE}:vpc/vpc-1", {**RETAGGED, "aws:RequestTag/skyplan:project": "acme"}, ("aws:RequestTag/skyplan:project", "x")),
    (D, TAG, f"{HERE}:vpc/vpc-1", RETAGGED, ("aws:TagKeys", ("team", "finance"))),
    (D, TAG, f"{HERE}:vpc/vpc-1", RETAGGED, ("aws:TagKeys", ABSENT)),
    (D, "ec2:DeleteTags", f"{HERE}:vpc/vpc-1", {**OWNED, "aws:TagKeys": ("team",)}, ("aws:TagKeys", ("team", "skyplan:project"))),
    (D, "ec2:DeleteTags", f"{HERE}:vpc/vpc-1", {**OWNED, "aws:TagKeys": ("team",)}, ("aws:TagKeys", ABSENT)),
    (D, "iam:CreateRole", NODES, BOUND, ("iam:PermissionsBoundary", ABSENT)),
    (D, "iam:CreateRole", NODES, BOUND, ("iam:PermissionsBoundary", f"arn:aws:iam::{ACCOUNT}:policy/other")),
    (D, "iam:CreateRole", NODES, BOUND, f"arn:aws:iam::{ACCOUNT}:role/n"),
    (D, "iam:TagRole", NODES, KEYS, UNKNOWN),
    (D, "iam:TagRole", NODES, KEYS, ("aws:TagKeys", ABSENT)),
    (D, "iam:TagInstanceProfile", PROFILES, KEYS, UNKNOWN),
    (D, "iam:PutRolePolicy", NODES, BOUND, LAUNCHER.replace("orchestrator", "deployer")),
    (D, "iam:PutRolePolicy", LAUNCHER, LAUNCHER_BOUND, ("iam:PermissionsBoundary", ABSENT)),
    (D, "iam:PassRole", NODES, {"iam:PassedToService": "ec2.amazonaws.com"}, ("iam:PassedToService", "lambda.amazonaws.com")),
    (D, "iam:PassRole", NODES, {"iam:PassedToService": "ec2.amazonaws.com"}, LAUNCHER),
    (D, "iam:DeleteRole", NODES, {}, LAUNCHER),
    (D, "ssm:GetParameter", "arn:aws:ssm:us-east-1::parameter/aws/service/deeplearning/ami/x", REGIONAL, f"arn:aws:ssm:us-east-1:{ACCOUNT}:parameter/secret"),
    (B, "sts:AssumeRole", f"arn:aws:iam::{ACCOUNT}:role/skyplan/acme/data/x", {}, f"arn:aws:iam::{ACCOUNT}:role/skyplan/acme/x"),
    (P, "ec2:DescribeSpotPriceHistory", "*", REGIONAL, ("aws:RequestedRegion", "eu-west-1")),
]  # fmt: skip


def asked(identity, action, resource, context):
    values = {
        key: (value,) if isinstance(value, str) else value for key, value in context.items() if value is not ABSENT
    }
    return judge(policies(identity), Request(action=action, resource=resource, context=values))


@pytest.mark.parametrize(("identity", "action", "resource", "context", "twin"), TWINS)
def test_what_is_needed_is_allowed_and_its_twin_is_not(identity, action, resource, context, twin):
    assert asked(identity, action, resource, context), asked(identity, action, resource, context).by
    if isinstance(twin, str):
        assert twin != resource
        assert not asked(identity, action, twin, context)
    else:
        assert context.get(twin[0]) != twin[1]
        assert not asked(identity, action, resource, {**context, twin[0]: twin[1]})


NEVER = [
    (ORCH, "s3:GetObject", "arn:aws:s3:::acme-corpus/x"),
    (ORCH, "iam:PassRole", NODES),
    (ORCH, "ec2:ModifyInstanceAttribute", f"{HERE}:instance/i-1"),
    (ORCH, "ec2:CreateLaunchTemplateVersion", f"{HERE}:launch-template/lt-1"),
    (ORCH, "iam:PutRolePolicy", LAUNCHER),
    (D, RUN, f"{HERE}:instance/*"),
    (D, END, f"{HERE}:instance/i-1"),
    (D, "iam:DeleteRolePermissionsBoundary", NODES),
    (D, "iam:CreatePolicyVersion", BOUND["iam:PermissionsBoundary"]),
    (D, "iam:UpdateAssumeRolePolicy", LAUNCHER),
    (D, "iam:AttachRolePolicy", NODES),
    (D, "s3:GetObject", "arn:aws:s3:::acme-corpus/x"),
    (B, RUN, f"{HERE}:instance/*"),
    (P, RUN, f"{HERE}:instance/*"),
]


@pytest.mark.parametrize(("identity", "action", "resource"), NEVER)
def test_what_nobody_needs_is_denied_whatever_it_carries(identity, action, resource):
    everything = {**NODE, **OWNED, **BOUND, "iam:PassedToService": "ec2.amazonaws.com"}
    assert not asked(identity, action, resource, everything)


def test_the_jobs_own_policy_lets_the_orchestrator_pass_that_role_and_no_other():
    from planner.iam.documents import policy_from
    from planner.model.policy import PolicyKind

    job = policy_from(aws.pass_policy(NODES).document, kind=PolicyKind.IDENTITY, name="pass")
    handed = {"iam:PassedToService": ("ec2.amazonaws.com",)}
    held = [*policies(ORCH), job]
    assert judge(held, Request(action="iam:PassRole", resource=NODES, context=handed))
    assert not judge(held, Request(action="iam:PassRole", resource=f"{NODES}2", context=handed))
    assert not judge(held, Request(action="iam:PassRole", resource=NODES, context={"iam:PassedToService": ("x",)}))


@pytest.mark.parametrize(
    ("action", "resource"),
    [
        ("iam:PassRole", f"arn:aws:iam::{ACCOUNT}:role/admin"),
        ("iam:CreateUser", f"arn:aws:iam::{ACCOUNT}:user/x"),
        (END, f"{HERE}:instance/i-1"),
        ("s3:GetObject", "arn:aws:s3:::acme-corpus/x"),
    ],
)
def test_whatever_the_deployer_writes_onto_the_orchestrator_its_boundary_holds(action, resource):
    from planner.iam.documents import policy_from
    from planner.model.policy import PolicyKind

    wide = {"Version": "2012-10-17", "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*"}]}
    held = [*policies(ORCH), policy_from(wide, kind=PolicyKind.IDENTITY, name="wide")]
    handed = {"iam:PassedToService": ("ec2.amazonaws.com",), "aws:RequestedRegion": ("us-east-1",)}
    assert not judge(held, Request(action=action, resource=resource, context=handed))


def test_the_boundary_takes_nothing_from_what_the_orchestrator_may():
    """Every allowed twin above passes with the boundary too (see `policies`); and it allows no action that the orchestrator lacks, but to pass."""
    boundary = aws.boundaries(SCOPE)[1].document["Statement"]
    held = {action for one in boundary if one["Effect"] == "Allow" for action in one["Action"]}
    assert held - {action for one in allows(ORCH) for action in one["Action"]} == {"iam:PassRole"}


def test_the_nodes_boundary_holds_no_control_plane():
    (node, *_) = aws.boundaries(SCOPE)
    held = {action for one in node.document["Statement"] for action in one["Action"]}
    assert {action.partition(":")[0] for action in held} == {"kms", "s3", "secretsmanager", "ssm", "ssmmessages", "sts"}
    assert not [action for action in held if "Delete" in action or "Assume" in action or "*" in action]


MACHINE = {"ec2:SourceInstanceARN": (f"arn:aws:ec2:us-east-1:{ACCOUNT}:instance/i-0123456789abcdef0",)}


def as_written(action, resource, context):
    """What a role that the deployer makes, and writes everything onto, is let do: its boundary holds."""
    everything = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
    (node, *_) = aws.boundaries(SCOPE)
    held = [
        policy_from(everything, kind=PolicyKind.IDENTITY, name="written"),
        policy_from(node.document, kind=PolicyKind.BOUNDARY, name=node.name),
    ]
    return bool(judge(held, Request(action=action, resource=resource, context=context)))


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject"])
@pytest.mark.parametrize("project", ["acme", "acme-b"])
def test_a_role_that_the_deployer_makes_reaches_no_state(action, project):
    """Whoever makes a role says who may become it; on a machine too."""
    context = {**{key: (value,) for key, value in MINE.items()}, **MACHINE}
    for folder, allowed in ((f"skyplan/{project}/cmp-x.tfstate", False), ("corpus/x", True)):
        assert as_written(action, f"{STATE}/{folder}", context) is allowed


@pytest.mark.parametrize(
    ("action", "resource", "more"),
    [
        ("s3:GetObject", "arn:aws:s3:::acme-corpus/x", {}),
        ("s3:PutObject", "arn:aws:s3:::acme-corpus/x", {}),
        ("s3:ListBucket", "arn:aws:s3:::acme-corpus", {}),
        ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:us-east-1:{ACCOUNT}:secret:hf-AbCdEf", {}),
        ("ssmmessages:OpenDataChannel", "*", {"aws:RequestedRegion": ("us-east-1",)}),
        ("sts:GetWebIdentityToken", "*", {"sts:IdentityTokenAudience": (AZURE_AUDIENCE,)}),
    ],
)
def test_a_nodes_role_is_worth_something_on_a_machine_only(action, resource, more):
    """The deployer may make itself one that it may become."""
    context = {**{key: (value,) for key, value in MINE.items()}, **more}
    assert as_written(action, resource, {**context, **MACHINE})
    assert not as_written(action, resource, context)


def test_all_that_the_nodes_boundary_allows_asks_for_the_machine_but_a_key_by_way_of_the_store():
    (node, *_) = aws.boundaries(SCOPE)
    asked = {"ec2:SourceInstanceARN": ["false"]}
    without = [
        one["Sid"]
        for one in node.document["Statement"]
        if one["Effect"] == "Allow" and not asked.items() <= one.get("Condition", {}).get("Null", {}).items()
    ]
    assert without == ["ObjectKeys"]


def test_what_nodes_and_the_broker_are_granted_lies_within_their_boundaries():
    from tests.stacks import golden_jobs

    (node, _, data) = aws.boundaries(SCOPE)
    held = {
        one.name: {action for s in one.document["Statement"] if s["Effect"] == "Allow" for action in s["Action"]}
        for one in (node, data)
    }
    seen = 0
    for job in golden_jobs.every():
        documents = golden_jobs.golden(str(job)).acc.get("data", {}).get("aws_iam_policy_document", {})
        for name in documents:
            if name.endswith("trust") or name == "pass":
                continue
            minted = name.split("-")[0] == "data"
            seen += minted
            for statement in documents[name]["statement"]:
                assert set(statement["actions"]) <= held[(data if minted else node).name], name
    assert seen >= 5, "on AWS, and from every cloud"


@pytest.mark.parametrize(("account", "wanted"), [("", ACCOUNT), ("210987654321", "210987654321")])
def test_the_states_bucket_is_in_the_account_that_it_should_be_in(account, wanted):
    for identity in (D, ORCH):
        kept = [one for one in allows(identity, scope(state_account=account)) if one["Action"][0].startswith("s3:")]
        assert {one["Sid"] for one in kept} == {"KeepState", "ReleaseLock", "ListState"}
        for one in kept:
            assert one["Condition"]["StringEquals"] == {"aws:ResourceAccount": [wanted]}


MAIN = "repo:acme/infra:ref:refs/heads/main"


def test_the_entry_may_become_three_roles_by_their_names_and_nothing_else():
    made = entry(SCOPE, (MAIN,))
    (policy,) = made.policies
    (only,) = policy.document["Statement"]
    path = f"arn:aws:iam::{ACCOUNT}:role/skyplan-foundation/acme/skyplan-acme"
    assert made.arn == f"{path}-ci"
    assert made.opens == (P, D, ORCH)
    assert only == {
        "Sid": "BecomeProjectIdentities",
        "Effect": "Allow",
        "Action": ["sts:AssumeRole"],
        "Resource": [f"{path}-deployer", f"{path}-orchestrator", f"{path}-planner"],
    }


@pytest.mark.parametrize("subjects", [(), ("repo:acme/infra:*",), (MAIN, "repo:acme/infra:ref:refs/heads/mai?")])
def test_no_pattern_comes_in(subjects):
    with pytest.raises(ValueError, match="whole subjects"):
        entry(SCOPE, subjects)


def test_too_many_types_are_refused_in_words():
    many = tuple(f"family{n}.{'x' * 20}" for n in range(400))
    with pytest.raises(ValueError, match="skyplan-acme-orchestrator"):
        aws.identities(scope(instance_types=many))
    assert not [one for one in many if not fnmatch.fnmatchcase(one, "family*")]
