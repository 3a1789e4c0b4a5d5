"""Rules 208-210 and 215 for AWS, and AWS's part of 216: by what an identity writes rights, trust or credentials.

Judged by witness: the request is one that the whole set of policies allows.  A permissions boundary that every role made must carry is what makes such
rights bearable, so it is the guard that these rules look for.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.iam.audit.by_action import allowing
from planner.iam.audit.find import NODES, Held, gives, of_statement, of_subject, statements, subjects
from planner.iam.audit.grouped import dropped, given, plain
from planner.iam.audit.lines import guarded, instead, only, without, written
from planner.iam.audit.powers import ADMINISTERS, CREDENTIAL_MAKERS, MANAGED, MANAGED_ON_NODES, POLICY_WRITERS
from planner.iam.audit.registry import Rule
from planner.iam.audit.tags import tagged
from planner.iam.audit.witness import ANY, Opening, Question, openings, shown
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Statement, Subject, Test

EC2 = "ec2.amazonaws.com"
_BOUNDARY = "iam:PermissionsBoundary"
_BOUNDED = frozenset({"iam:permissionsboundary", "iam:policyarn"})
#: a boundary in name only
_NO_BOUND = "arn:aws:iam::aws:policy/AdministratorAccess"
_MOST_OF = 6
#: how a finding of 216 begins that is about everything, not about one service
ADMINISTRATOR = "administrator"


def policies_written(audited: Audited) -> Iterator[Finding]:
    """208."""
    asked = [
        Question(action=action, kind=kind, guard=lambda key: key in _BOUNDED or tagged(key), named=True)
        for action, kind in POLICY_WRITERS
    ]
    yield from given(audited, asked, "policies may be written or attached", _bounded)


def _bounded(statement: Statement, actions: list[str]) -> str:
    able = [action for action in actions if action.endswith(("RolePolicy", "UserPolicy"))]
    if not able:
        return without(statement, actions)
    test = Test(operator="StringEquals", key=_BOUNDARY, values=("arn:aws:iam::ACCOUNT:policy/BOUNDARY",))
    return instead(statement, actions, guarded(only(statement, able), test))


def trust_rewritten(audited: Audited) -> Iterator[Finding]:
    """209."""
    asked = Question(action="iam:UpdateAssumeRolePolicy", kind="role", guard=tagged, named=True)
    for subject in subjects(audited, Cloud.AWS):
        for found in openings(subject, asked):
            if not all(_own_path(subject, pattern) for pattern in found.held[1].resources):
                yield plain(subject, [found], "who may assume a role may be changed", dropped)


def _own_path(subject: Subject, pattern: str) -> bool:
    """A path of roles that it may make, and only behind a boundary: whoever comes in there stays within that."""
    place = pattern.rpartition(":")[2]
    if not (place.startswith("role/") and place.count("/") > 1 and place.endswith("/*")):
        return False
    makes = allowing(subject, "iam:CreateRole")
    return any(pattern in statement.resources for _, statement in makes) and not list(_without_boundary(subject))


def credentials_made(audited: Audited) -> Iterator[Finding]:
    """210."""
    asked = [Question(action=action, kind="user", guard=tagged, named=True) for action in CREDENTIAL_MAKERS]
    yield from given(audited, asked, "credentials of others may be made", dropped)


def no_boundary(audited: Audited) -> Iterator[Finding]:
    """215."""
    for subject in subjects(audited, Cloud.AWS):
        for found in _without_boundary(subject):
            statement, action = found.held[1], found.request.action
            drops = "Delete" in action
            message = (
                "a permissions boundary may be taken away"
                if drops
                else "roles may be made without a permissions boundary"
            )
            test = Test(operator="StringEquals", key=_BOUNDARY, values=("arn:aws:iam::ACCOUNT:policy/BOUNDARY",))
            fix = (
                without(statement, [action])
                if drops
                else instead(statement, [action], guarded(only(statement, [action]), test))
            )
            yield of_statement(
                subject, found.held, message, action=action, resource=shown(found.request.resource), fix=fix
            )


def _without_boundary(subject: Subject) -> Iterator[Opening]:
    for kind in ("role", "user"):
        name = kind.capitalize()
        for action in (f"iam:Create{name}", f"iam:Put{name}PermissionsBoundary"):
            bare = Question(action=action, kind=kind, guard=lambda key: key == "iam:permissionsboundary", named=True)
            idle = Question(action=action, kind=kind, extra={_BOUNDARY: (_NO_BOUND,)}, named=True)
            yield from {id(one.held[1]): one for asked in (idle, bare) for one in openings(subject, asked)}.values()
        yield from openings(subject, Question(action=f"iam:Delete{name}PermissionsBoundary", kind=kind, named=True))


def administrators(audited: Audited) -> Iterator[Finding]:
    """216 in AWS."""
    for subject in subjects(audited, Cloud.AWS):
        node = _is_node(subject)
        for policy in subject.of_kind(PolicyKind.IDENTITY):
            yield from _managed(subject, policy, node=node)
            for statement in policy.statements:
                held = (policy, statement)
                if _administers(subject, held):
                    yield _whole(audited, subject, held, f"{ADMINISTRATOR}: nearly every action on everything")
                elif node and _whole_services(statement):
                    services = ", ".join(_whole_services(statement))
                    yield _whole(audited, subject, held, f"a node administers whole services: {services}")


def _managed(subject: Subject, policy: AwsPolicy, *, node: bool) -> Iterator[Finding]:
    name = policy.name.rpartition("/")[2]
    if name in MANAGED or (node and name in MANAGED_ON_NODES):
        yield of_subject(
            subject,
            f"{ADMINISTRATOR}: {name}",
            grant=policy.name,
            evidence=policy.name,
            fix=f"detach {policy.name} and name the actions that are needed",
            location=policy.location or subject.location,
        )


def _administers(subject: Subject, held: Held) -> bool:
    """Nearly all of the grave actions come from this one statement, and none of the others takes them back."""
    statement = held[1]
    wide = statement.not_actions or any(one in {"*", "*:*"} for one in statement.actions)
    if statement.effect != "Allow" or not (wide or len(statement.actions) >= _MOST_OF):
        return False
    given = [action for action in ADMINISTERS if gives(statement, action)]
    if len(given) < _MOST_OF:
        return False
    found = [
        any(one.held[1] is statement for one in openings(subject, Question(action=action, kind=ANY)))
        for action in given
    ]
    return sum(found) >= _MOST_OF


def _whole_services(statement: Statement) -> list[str]:
    """`ec2:*` on everything, without a condition."""
    if statement.effect != "Allow" or "*" not in statement.resources or statement.tests:
        return []
    return [one for one in statement.actions if one.endswith(":*")]


def _is_node(subject: Subject) -> bool:
    """One of skyplan's, or a role that machines take."""
    trusts = [statement for _, statement in statements(subject, PolicyKind.TRUST)]
    return subject.identity in NODES or any(("Service", EC2) in statement.principals for statement in trusts)


def _whole(audited: Audited, subject: Subject, held: Held, message: str) -> Finding:
    statement = held[1]
    needs = sorted(audited.needs.get((subject.identity, Cloud.AWS), {})) if subject.identity else []
    if needs:
        fix = f"write instead, on the resources that they need:\n{written(only(statement, needs))}"
    else:
        fix = f"drop this statement and name the actions that are needed, as in:\n{written(_example())}"
    return of_statement(
        subject,
        held,
        message,
        action=", ".join(statement.actions) or "NotAction " + ", ".join(statement.not_actions),
        resource=", ".join(statement.resources) or "NotResource",
        fix=fix,
    )


def _example() -> Statement:
    return Statement(sid="ReadData", actions=("s3:GetObject",), resources=("arn:aws:s3:::BUCKET/PREFIX/*",))


RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-208",
        level=Level.CRITICAL,
        why="Who writes or attaches policies gives themselves anything. One call puts `*` on a role that they hold, and no later check of this policy sees it. Roles and users"
        " behind a required permissions boundary, or a list of policies that may be attached, guard; an exact ARN does not, for it may be one's own.",
        fix="Require `iam:PermissionsBoundary`, or `iam:PolicyARN` for attaching; drop the rest.",
        maps=(
            "cloudsplaining CreateNewPolicyVersion",
            "cloudsplaining PutRolePolicy",
            "CKV_AWS_109",
            "CKV_AWS_110",
            "CKV_AWS_289",
            "pathfinding iam-001",
        ),
        check=policies_written,
    ),
    Rule(
        id="SKY-IAM-209",
        level=Level.CRITICAL,
        why="A role's trust policy says who may become it. Whoever rewrites it names themselves and assumes the role. A path of roles that the same identity may make, and"
        " only behind a boundary, is no finding: whoever comes in there stays within that boundary.",
        fix="Drop `iam:UpdateAssumeRolePolicy`, or keep it to a path of roles that all carry the boundary.",
        maps=("cloudsplaining UpdateRolePolicyToAssumeIt", "pathfinding iam-012"),
        check=trust_rewritten,
    ),
    Rule(
        id="SKY-IAM-210",
        level=Level.CRITICAL,
        why="A key or a password made for somebody else signs in as them. It never expires, and it works from anywhere. A user's own name (`user/${aws:username}`)"
        " is no finding.",
        fix="Drop the credential makers: nothing of skyplan has users.",
        maps=("cloudsplaining CreateAccessKey", "CKV_AWS_107", "CKV_AWS_287", "pathfinding iam-002"),
        check=credentials_made,
    ),
    Rule(
        id="SKY-IAM-215",
        level=Level.HIGH,
        why="Who makes roles without a boundary makes an administrator. Create a role that trusts oneself, give it a policy, assume it: none of the steps needs more than a"
        " deployer has. Taking a boundary away undoes every rule that rests on it.",
        fix="Require `iam:PermissionsBoundary` on CreateRole and PutRolePermissionsBoundary; never give DeleteRolePermissionsBoundary.",
        check=no_boundary,
    ),
)
