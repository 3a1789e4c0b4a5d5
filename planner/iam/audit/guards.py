"""What binds a right: whether a condition really guards, whether a right is left once boundaries and denies are through, and what the specs allow.

Judges single statements for the rules on data, trust and meaning; which of them is a finding say the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from planner.iam.audit.by_action import allowing, rights
from planner.iam.audit.covers import overlaps, parse
from planner.iam.audit.find import NODES, gives
from planner.iam.audit.grown import blocked
from planner.iam.audit.patterns import arns_meet, includes_arn, meet, tokens
from planner.model.policy import Audited, AwsPolicy, PolicyKind, Statement, Subject, Test

S3 = "arn:aws:s3:::"
_ACCOUNT = re.compile(r"arn:[\w-]+:[\w-]*:[\w*-]*:(\d{12}):")
_NEGATIVE = ("not", "null")
_BUCKET_REFERENCE = re.compile(r"\$\{(?:data\.)?aws_s3_bucket\.[^}]*\.arn\}")
_CAPS = (PolicyKind.BOUNDARY, PolicyKind.SESSION)


def demands(test: Test) -> bool:
    """The test only holds where its key is there and has one of the values."""
    group, base, exists = parse(test.operator)
    if base == "null":
        return False
    return not exists and group != "forallvalues" and not any(word in base for word in _NEGATIVE)


def present(tests: Iterable[Test], key: str) -> bool:
    """Some test sees to it that the key is there: `aws:TagKeys` also by way of any tag that is asked for."""
    folded = key.lower()
    for test in tests:
        have = test.key.lower()
        is_null = parse(test.operator)[1] == "null" and {value.lower() for value in test.values} == {"false"}
        if (demands(test) or is_null) and (
            have == folded or (folded == "aws:tagkeys" and have.startswith("aws:requesttag/"))
        ):
            return True
    return False


def bound(statement: Statement, names: Callable[[str], bool]) -> bool:
    """A condition on one of these keys (in lower case) that holds for some values only, absent ones included."""
    return any(
        names(test.key.lower())
        and not any("*" in value and set(value) <= {"*", "?"} for value in test.values)
        and (demands(test) or (parse(test.operator)[0] == "forallvalues" and present(statement.tests, test.key)))
        for test in statement.tests
    )


def by(*keys: str) -> Callable[[str], bool]:
    """Whether a key is one of these, or begins with one that ends in `/`."""
    folded = tuple(key.lower() for key in keys)
    return lambda key: key in folded or key.startswith(tuple(one for one in folded if one.endswith("/")))


def left(subject: Subject, statement: Statement, action: str, resource: str) -> bool:
    """Of a statement of its own, this action on this resource is not taken away whole by a Deny, a boundary or a session."""
    if rights(subject).plain:
        return True
    atom = replace(statement, actions=(action,), not_actions=(), resources=(resource,), not_resources=())
    policies = [one for one in subject.policies if one.kind in {PolicyKind.IDENTITY, *_CAPS}]
    if blocked(atom, [s for policy in policies for s in policy.statements if s.effect == "Deny"]):
        return False
    return all(
        any(s.effect == "Allow" and overlaps(s, atom) for s in policy.statements)
        for policy in policies
        if policy.kind in _CAPS
    )


def narrowed(subject: Subject, statement: Statement, action: str, resource: str) -> tuple[str, ...]:
    """On what of the resource the action is left: within what boundaries and sessions name, and outside of what a Deny has all but an exception of."""
    out = (resource,) if left(subject, statement, action, resource) else ()
    for policy in subject.policies:
        if policy.kind in _CAPS:
            allows = [s for s in policy.statements if s.effect == "Allow" and gives(s, action)]
            out = _within(out, [one for s in allows for one in (s.resources if not s.not_resources else ("*",))])
        for deny in policy.statements if policy.kind in {PolicyKind.IDENTITY, *_CAPS} else ():
            if deny.effect == "Deny" and deny.not_resources and gives(deny, action) and not deny.tests:
                out = _within(out, deny.not_resources)
    return out


def _within(resources: tuple[str, ...], limits: Iterable[str]) -> tuple[str, ...]:
    """What both name, of two patterns the narrower; of two that only meet, the first."""
    out: dict[str, None] = {}
    for limit in limits:
        for one in resources:
            if includes_arn(limit, one):
                out[one] = None
            elif includes_arn(one, limit):
                out[limit] = None
            elif arns_meet(one, limit):
                out[one] = None
    return tuple(out)


def is_node(subject: Subject) -> bool:
    """A machine's identity: skyplan says so, or machines may assume it."""
    if subject.identity is not None:
        return subject.identity in NODES
    return any(
        name.startswith("ec2.amazonaws.com")
        for policy in subject.of_kind(PolicyKind.TRUST)
        for statement in policy.statements
        for _, name in statement.principals
    )


def own_accounts(subject: Subject, *, named: bool = True) -> frozenset[str]:
    """Accounts that the subject is known to be in: by its ARN, else (`named`) by the ARNs of its boundary and of what its policies name."""
    found = set(_ACCOUNT.findall(f"{subject.origin}: {subject.name}:"))
    if found or not named:
        return frozenset(found)
    texts = [
        text
        for policy in subject.policies
        if policy.kind is not PolicyKind.TRUST
        for statement in policy.statements
        for text in statement.resources
    ]
    # a boundary is of the role's own account, or AWS's
    texts += [policy.name for policy in subject.policies if policy.kind is PolicyKind.BOUNDARY]
    return frozenset(account for text in texts for account in _ACCOUNT.findall(text))


def s3_parts(resource: str) -> tuple[str, str] | None:
    """(bucket, key pattern) of an ARN of S3's; key "" = the bucket itself.  None for what is none, or not known."""
    text = _BUCKET_REFERENCE.sub("arn:aws:s3:::referenced-bucket", resource)
    parts = text.split(":", 5)
    if len(parts) < 6 or parts[2] != "s3" or parts[3] or parts[4]:  # noqa: PLR2004 - an ARN has six parts
        return None
    bucket, slash, key = parts[5].partition("/")
    return bucket, key or ("*" if slash else "")


def wild(text: str) -> bool:
    """It has a wildcard; `${*}` is none."""
    bare = re.sub(r"\$\{[^}]*\}", "", text)
    return "*" in bare or "?" in bare


def places(audited: Audited, subject: Subject, scheme: str, *, write: bool = False) -> tuple[str, ...]:
    """`bucket/prefix/` of each place that the subject's job names in that kind of store; of all jobs where it has none."""
    return tuple(
        uri.removeprefix(scheme)
        for job, uri, writes in audited.allowed
        if uri.startswith(scheme) and (writes or not write) and (not subject.job or job == subject.job)
    )


def named_in(audited: Audited, subject: Subject) -> bool:
    """The audit knows what data the subject's job names."""
    return any(not subject.job or job == subject.job for job, _, _ in audited.allowed)


def in_place(resource: str, allowed: Iterable[str]) -> bool:
    """An ARN of objects lies within one of the places."""
    arns = (f"{S3}{_pattern(place)}" for place in allowed)
    partition = resource.split(":")[1:2]
    return any(
        includes_arn(arn.replace(":aws:", f":{partition[0]}:", 1) if partition else arn, resource) for arn in arns
    )


def _pattern(place: str) -> str:
    text = re.sub(r"[*?$]", lambda found: "${" + found[0] + "}", place.rstrip("/"))
    return f"{text}/*"


def given(subject: Subject, action: str) -> Iterator[tuple[AwsPolicy, Statement, tuple[str, ...]]]:
    """Each Allow of the subject's own that gives the action, with the resources on which something of it is left."""
    for policy, statement in allowing(subject, action):
        resources = ("*",) if statement.not_resources else statement.resources
        some = tuple(dict.fromkeys(r for one in resources for r in narrowed(subject, statement, action, one)))
        if some:
            yield policy, statement, some


def either(
    subject: Subject, action: str, other: str
) -> Iterator[tuple[str, tuple[AwsPolicy, Statement, tuple[str, ...]]]]:
    """Statements that give the action, and those that only give the other, which comes to the same."""
    yield from ((action, one) for one in given(subject, action))
    yield from ((other, one) for one in given(subject, other) if not gives(one[1], action))


def every_object(resource: str) -> bool:
    """It takes objects of any bucket in without being S3's plain form: `*`, `arn:aws:s3:*:*:*`, any access point."""
    if meet(tokens(resource), tokens(f"{S3}BUCKET/KEY")):
        return True
    place = resource.split(":", 5)[-1] if ":s3:" in resource else ""
    return place.startswith("accesspoint/") and wild(place.split("/")[1])
