"""Rules 6xx but 605: rights that do not mean what they seem to: dead, open, by exclusion, malformed, unused.  By AWS's own table of actions and keys."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from planner.iam import actions as reference
from planner.iam.audit.covers import parse
from planner.iam.audit.data_aws import forms_of
from planner.iam.audit.find import (
    Held,
    gives,
    of_right,
    of_statement,
    of_subject,
    statements,
    subjects,
)
from planner.iam.audit.grown import listed, said
from planner.iam.audit.guards import demands, present
from planner.iam.audit.lines import guarded, instead, only, without, written
from planner.iam.audit.patterns import ARN_PARTS, parts_meet
from planner.iam.audit.registry import Rule
from planner.iam.audit.unused import unused
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, PolicyKind, RoleAssignment, Statement, Subject, Test

_GIVING: Final = (PolicyKind.IDENTITY, PolicyKind.SESSION)
_ALL: Final = tuple(PolicyKind)
_ARN: Final = re.compile(r"arn:(aws|aws-[a-z-]+|\*|\$\{[^}]*\}):[\w*?${}.-]+:[^:]*:[^:]*:.+", re.DOTALL)
_ACTION: Final = re.compile(r"[A-Za-z0-9-]+:[A-Za-z0-9*?]+")
#: every launch of a machine carries these, so that IfExists on them only lets the launch's other resources through
_TAGS_OF = ("aws:resourcetag", "ec2:resourcetag", "iam:resourcetag")
#: what puts tags on what is there, and names at least one
_TAGGING = re.compile(r"ec2:createtags|[a-z0-9-]+:tag[a-z]+")
_OF_MACHINES: Final = frozenset({"ec2:instancetype", "ec2:metadatahttptokens", "ec2:metadatahttpputresponsehoplimit"})
_VERSIONS: Final = ("2012-10-17",)


def _held(audited: Audited, kinds: tuple[PolicyKind, ...]) -> Iterator[tuple[Subject, Held]]:
    """Statements of those kinds, those of stores among the RESOURCE ones."""
    for subject in subjects(audited, Cloud.AWS):
        for kind in kinds:
            for held in statements(subject, kind):
                yield subject, held
    if PolicyKind.RESOURCE in kinds:
        for name, policy in audited.stores:
            holder = Subject(cloud=Cloud.AWS, name=name, origin=name, location=policy.location)
            for statement in policy.statements:
                yield holder, (policy, statement)


def dead_condition(audited: Audited) -> Iterator[Finding]:
    """601."""
    for subject, held in _held(audited, _GIVING):
        statement = held[1]
        if statement.effect != "Allow" or not statement.tests or statement.not_actions:
            continue
        for test in statement.tests:
            if not demands(test) or reference.global_key(test.key):
                continue
            dead = [one for one in statement.actions if _dead(subject, statement, one, test.key)]
            if dead:
                yield of_statement(
                    subject,
                    held,
                    f"{listed(dead)} on {listed(statement.resources)} never carries {test.key}: this grants nothing"
                    f"{_where(dead[0], test.key)}",
                    action=", ".join(dead),
                    resource=", ".join(statement.resources),
                    fix=_keyed(statement, dead, test),
                )


def _dead(subject: Subject, statement: Statement, pattern: str, key: str) -> bool:
    """No request for any of these actions can pass by way of this statement."""
    names = reference.expand(pattern)
    return bool(names) and all(_dead_action(subject, statement, name, key) for name in names)


def _dead_action(subject: Subject, statement: Statement, action: str, key: str) -> bool:
    kinds = _kinds(action, statement)
    if not kinds:
        return not reference.has_key(action, key)
    without_key = [kind for kind in kinds if not reference.has_key(action, key, kind)]
    if len(without_key) == len(kinds):
        return True
    # one statement over several kinds: a request has to pass on each kind that it needs
    needed = set(reference.required_resource_types(action)) & set(without_key)
    wide = "*" in statement.resources or bool(statement.not_resources)
    return wide and any(not _elsewhere(subject, statement, action, kind) for kind in needed)


def _kinds(action: str, statement: Statement) -> tuple[str, ...]:
    """Types of resource that the statement reaches with the action."""
    if statement.not_resources or "*" in statement.resources:
        return reference.resource_types(action)
    return _reached(action, statement.resources)


@lru_cache(maxsize=16384)
def _reached(action: str, resources: tuple[str, ...]) -> tuple[str, ...]:
    forms = forms_of(action)
    return tuple(
        kind
        for kind in reference.resource_types(action)
        # a type without a form here is another service's
        if kind in forms and any(parts_meet(forms[kind], resource) for resource in resources)
    )


def _elsewhere(subject: Subject, statement: Statement, action: str, kind: str) -> bool:
    """Another statement gives the action on that kind."""
    return any(
        other is not statement and other.effect == "Allow" and gives(other, action) and kind in _kinds(action, other)
        for _, other in statements(subject)
    )


def _where(action: str, key: str) -> str:
    if not reference.known(action):
        return ""
    kinds = [kind for kind in reference.resource_types(action) if reference.has_key(action, key, kind)]
    return f"; only {listed(kinds)} has the key" if kinds else ""


def _keyed(statement: Statement, dead: list[str], test: Test) -> str:
    """Grant it where the key is, and the rest without it; or without the key at all."""
    bare = tuple(one for one in statement.tests if one.key.lower() != test.key.lower())
    action = dead[0]
    kinds = (
        [kind for kind in reference.resource_types(action) if reference.has_key(action, test.key, kind)]
        if reference.known(action)
        else []
    )
    if not kinds:
        other = test.key.replace("RequestTag", "ResourceTag")
        if other != test.key and reference.known(action) and reference.has_key(action, other):
            return instead(
                statement, dead, guarded(only(replace(statement, tests=bare), dead), replace(test, key=other))
            )
        return instead(statement, dead, only(replace(statement, tests=bare), dead))
    forms = forms_of(action)
    there = only(statement, dead, resources=[forms[kind] for kind in kinds if kind in forms])
    rest = [forms[kind] for kind in reference.required_resource_types(action) if kind not in kinds and kind in forms]
    parts = [there] + (
        [only(replace(statement, tests=bare), dead, resources=rest, sid=f"{statement.sid}Others")] if rest else []
    )
    return instead(statement, dead, *parts)


def open_guard(audited: Audited) -> Iterator[Finding]:
    """602."""
    for subject, held in _held(audited, _ALL):
        statement = held[1]
        if statement.effect != "Allow":
            continue
        loose = [test for test in statement.tests if _open(statement, test)]
        if loose:
            repaired = replace(statement, tests=tuple(fix for test in statement.tests for fix in _closed(test, loose)))
            yield of_statement(
                subject,
                held,
                f"open where the key is missing: {'; '.join(said(test) for test in loose)}",
                action=", ".join(statement.actions),
                resource=", ".join(statement.resources),
                fix=f"write instead:\n{written(repaired)}",
            )


def _open(statement: Statement, test: Test) -> bool:
    """It holds without its key, and nothing else asks for the key."""
    group, base, exists = parse(test.operator)
    if base == "null" or not (exists or group == "forallvalues") or "not" in base:
        return False
    if exists and test.key.lower() in _OF_MACHINES and not _machines_only(statement):
        return False
    return not present(statement.tests, test.key) and not _own_already(statement, test)


def _own_already(statement: Statement, test: Test) -> bool:
    """It only bounds which tags of what is already one's own may be changed, and to what: whoever sends no such tag changes none."""
    key = test.key.lower()
    prefix, _, tag = key.partition("/")
    asked = [one.key.lower() for one in statement.tests if demands(one)]
    if prefix == "aws:requesttag" and any(one in {f"{of}/{tag}" for of in _TAGS_OF} for one in asked):
        return True
    owned = any(one.startswith(tuple(f"{of}/" for of in _TAGS_OF)) for one in asked)
    tagging = bool(statement.actions) and all(_TAGGING.fullmatch(one.lower()) for one in statement.actions)
    return owned and tagging and (prefix == "aws:requesttag" or key == "aws:tagkeys")


def _machines_only(statement: Statement) -> bool:
    return bool(statement.resources) and all(":instance/" in one for one in statement.resources)


def _closed(test: Test, loose: list[Test]) -> Iterator[Test]:
    if test not in loose:
        yield test
        return
    if test.operator.lower().endswith("ifexists"):
        test = replace(test, operator=test.operator[: -len("IfExists")])
    yield test
    if test.operator.lower().startswith("forallvalues:"):
        yield Test(operator="Null", key=test.key, values=("false",))


def by_exclusion(audited: Audited) -> Iterator[Finding]:
    """603."""
    for subject, held in _held(audited, (*_GIVING, PolicyKind.TRUST, PolicyKind.RESOURCE)):
        statement = held[1]
        if statement.effect != "Allow":
            continue
        for word, values in (
            ("NotAction", statement.not_actions),
            ("NotResource", statement.not_resources),
            ("NotPrincipal", tuple(name for _, name in statement.not_principals)),
        ):
            if values:
                yield of_statement(
                    subject,
                    held,
                    f"Allow with {word}: everything is allowed but {listed(values)}",
                    action=", ".join(statement.actions) if word != "NotAction" else f"not {', '.join(values)}",
                    resource=", ".join(statement.resources),
                    fix=f"name what is allowed:\n{written(_named(statement))}",
                )
    for subject in subjects(audited, Cloud.AZURE):
        for assignment in subject.assignments:
            excluded = (*assignment.not_actions, *assignment.not_data_actions)
            if excluded:
                named = _without_exclusion(assignment)
                message = (
                    f"the role allows {listed((*assignment.actions, *assignment.data_actions))} but {listed(excluded)}"
                )
                fix = f"name what is allowed:\n{written(named)}"
                yield of_right(subject, assignment, message, action=", ".join(excluded), fix=fix)


def _named(statement: Statement) -> Statement:
    return replace(
        statement,
        actions=statement.actions or ("SERVICE:ACTION",),
        not_actions=(),
        resources=statement.resources
        or (("arn:aws:SERVICE:REGION:ACCOUNT:RESOURCE",) if statement.not_resources else ()),
        not_resources=(),
        principals=statement.principals
        or ((("AWS", "arn:aws:iam::ACCOUNT:role/NAME"),) if statement.not_principals else ()),
        not_principals=(),
    )


def _without_exclusion(assignment: RoleAssignment) -> RoleAssignment:
    return replace(
        assignment,
        actions=tuple(one for one in assignment.actions if "*" not in one) or ("PROVIDER/TYPE/ACTION",),
        not_actions=(),
        not_data_actions=(),
    )


def malformed(audited: Audited) -> Iterator[Finding]:
    """604."""
    seen = {id(policy): (subject, policy) for subject in subjects(audited, Cloud.AWS) for policy in subject.policies}
    for name, policy in audited.stores:
        holder = Subject(cloud=Cloud.AWS, name=name, origin=name, location=policy.location)
        seen.setdefault(id(policy), (holder, policy))
    for subject, policy in seen.values():
        if policy.version not in _VERSIONS:
            yield _of_policy(
                subject,
                policy,
                f"Version is {policy.version or 'missing'}: variables such as ${{aws:PrincipalTag/x}} are then plain text",
                '"Version": "2012-10-17"',
            )
        for sid, count in Counter(one.sid for one in policy.statements if one.sid).items():
            if count > 1:
                yield _of_policy(subject, policy, f"{count} statements have the Sid {sid}", f'"Sid": "{sid}2"', sid)
        for statement in policy.statements:
            yield from _words(subject, (policy, statement))


def _of_policy(subject: Subject, policy: AwsPolicy, message: str, fix: str, sid: str = "") -> Finding:
    return of_subject(
        subject,
        message,
        grant=f"{policy.name}/{sid}" if sid else policy.name,
        evidence=f'"Version": "{policy.version}"' if not sid else f'"Sid": "{sid}"',
        fix=fix,
        location=policy.location or subject.location,
    )


def _words(subject: Subject, held: Held) -> Iterator[Finding]:
    statement = held[1]
    for action in (*statement.actions, *statement.not_actions):
        if _unknown(action):
            yield of_statement(
                subject,
                held,
                f"there is no action {action}",
                action=action,
                fix=without(statement, [action]) if action in statement.actions else f"drop {action}",
            )
    for resource in (*statement.resources, *statement.not_resources):
        if not _well_formed(resource):
            fix = f'"Resource": "arn:aws:{resource.partition(":")[0] if ":" in resource else "SERVICE"}:REGION:ACCOUNT:RESOURCE"'
            yield of_statement(subject, held, f"{resource} is no ARN", resource=resource, fix=fix)


def _unknown(action: str) -> bool:
    """No such action, as far as its service is in the table."""
    if action == "*" or action.startswith("${"):
        return False
    if not _ACTION.fullmatch(action):
        return True
    service = action.partition(":")[0]
    return reference.covers_service(service) and not reference.expand(action)


def _well_formed(resource: str) -> bool:
    if resource == "*" or resource.startswith("${"):
        return True
    return bool(_ARN.fullmatch(resource)) and len(resource.split(":", ARN_PARTS - 1)) == ARN_PARTS


RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-601",
        level=Level.MEDIUM,
        why=(
            "A condition on a key that the request never carries is never met: the statement looks strict and grants nothing. aws:RequestTag exists only on what "
            "is being made, aws:ResourceTag only on what is there, and a Describe has no resource at all. Found in production, it is repaired by `*`."
        ),
        fix="Use the key that the action has on that type of resource; one statement per type where they differ.",
        maps=("parliament UNKNOWN_CONDITION_FOR_ACTION",),
        check=dead_condition,
        clouds="AWS only, by the Service Authorization Reference. For Google's conditions on listing see 304.",
    ),
    Rule(
        id="SKY-IAM-602",
        level=Level.HIGH,
        why=(
            "`…IfExists` and `ForAllValues:` hold when the key is missing, and whoever sends the request decides whether it is there: leave out the tag, and the "
            "guard on tags is passed. A companion that asks for the key (`Null: false`, or any plain test on it) closes it."
        ),
        fix="Use the operator without IfExists; beside ForAllValues require the key with `Null: false`.",
        maps=("parliament SINGLE_VALUE_CONDITION",),
        check=open_guard,
        clouds="AWS only.",
    ),
    Rule(
        id="SKY-IAM-603",
        level=Level.HIGH,
        why=(
            "An Allow by exclusion grants whatever is not thought of, and whatever the cloud adds next year. `NotAction: iam:*` gives away every key and every "
            "bucket. Exclusion belongs into a Deny or a boundary."
        ),
        fix="Name what is allowed.",
        maps=("parliament NOTRESOURCE_WITH_ALLOW",),
        check=by_exclusion,
        clouds="AWS: NotAction, NotResource, NotPrincipal. Azure: notActions and notDataActions of roles that are defined beside. Boundaries grant nothing and are left out.",
    ),
    Rule(
        id="SKY-IAM-604",
        level=Level.LOW,
        why=(
            "A misspelt action grants nothing and nobody notices, until the job needs it. Without its Version a document is read by the rules of 2008, in which "
            "`${…}` is plain text: a right per tag becomes a right on nothing."
        ),
        fix="See the message.",
        maps=(
            "parliament UNKNOWN_ACTION",
            "parliament INVALID_ARN",
            "parliament NO_VERSION",
            "parliament DUPLICATE_SID",
        ),
        check=malformed,
        clouds="AWS only. Actions of services that are not in skyplan's extract of the reference are not judged.",
    ),
    Rule(
        id="SKY-IAM-606",
        level=Level.INFO,
        why=(
            "What no planned operation needs is only there for somebody else. Compared are the rights of skyplan's own identities with the operations of the "
            "stacks that are planned; a wildcard counts as needed if anything in it is."
        ),
        fix="Drop it.",
        maps=("GCP Recommender", "Access Analyzer unused access"),
        check=unused,
        clouds="All, for identities whose operations are known.",
    ),
)
