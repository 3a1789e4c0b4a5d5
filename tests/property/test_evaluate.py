"""What holds of IAM's evaluation whatever the policies are; and moto's own evaluator, where both speak."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from moto.iam.access_control import IAMPolicy, PermissionResult

from planner.iam import actions
from planner.iam.documents import document_of, policy_from
from planner.iam.evaluate.aws import Request, judge
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import AwsPolicy, PolicyKind, Statement, Test

ACTIONS = ("s3:GetObject", "s3:PutObject", "s3:ListBucket", "ec2:RunInstances", "iam:PassRole")
RESOURCES = ("arn:aws:s3:::b", "arn:aws:s3:::b/p/x", "arn:aws:s3:::b/q/x", "arn:aws:ec2:us-east-1:1:instance/i")
PATTERNS = st.sampled_from([*ACTIONS, "*", "s3:*", "s3:*Object", "ec2:Run*"])
PLACES = st.sampled_from([*RESOURCES, "*", "arn:aws:s3:::b/*", "arn:aws:s3:::*/x", "arn:aws:ec2:*:*:instance/*"])
OPERATORS = st.sampled_from(
    ["StringEquals", "StringNotEquals", "StringLike", "StringLikeIfExists", "ForAllValues:StringEquals", "Null", "Odd"]
)
EFFECTS = st.sampled_from(["Allow", "Deny"])
VALUES = st.sampled_from(["a", "b", "a*", "true", "${aws:PrincipalTag/run}"])
TESTS = st.builds(
    lambda operator, key, values: Test(operator=operator, key=key, values=tuple(values)),
    OPERATORS,
    st.sampled_from(["aws:RequestTag/x", "aws:TagKeys"]),
    st.lists(VALUES, min_size=1, max_size=2),
)


def several(values):
    return st.lists(values, min_size=1, max_size=3).map(tuple)


@st.composite
def statements(draw, effect=EFFECTS, tests=TESTS):
    acting, placed = draw(several(PATTERNS)), draw(several(PLACES))
    out = Statement(effect=draw(effect), tests=tuple(draw(st.lists(tests, max_size=2))) if tests is not None else ())
    out = replace(out, **({"not_actions": acting} if draw(st.integers(0, 9)) == 0 else {"actions": acting}))
    return replace(out, **({"not_resources": placed} if draw(st.integers(0, 9)) == 0 else {"resources": placed}))


def policies(kind, **more):
    made = st.lists(statements(**more), max_size=4)
    return made.map(lambda found: AwsPolicy(kind=kind, name=kind.value, statements=tuple(found)))


IDENTITY = policies(PolicyKind.IDENTITY)
REQUESTS = st.builds(
    lambda action, resource, context: Request(action=action, resource=resource, context=context),
    st.sampled_from(ACTIONS),
    st.sampled_from(RESOURCES),
    st.fixed_dictionaries(
        {},
        optional={
            "aws:RequestTag/x": st.sampled_from([("a",), ("b",), ("ab",)]),
            "aws:TagKeys": st.sampled_from([("a",), ("a", "b"), ()]),
            "aws:PrincipalTag/run": st.just(("a",)),
        },
    ),
)


def added(policy, statement):
    return replace(policy, statements=(*policy.statements, statement))


@given(IDENTITY, statements(effect=st.just("Deny")), REQUESTS)
def test_another_deny_never_allows_more(policy, deny, request):
    if not judge([policy], request):
        assert not judge([added(policy, deny)], request)


@given(IDENTITY, statements(effect=st.just("Allow")), REQUESTS)
def test_another_allow_never_denies_more(policy, allow, request):
    before, after = judge([policy], request), judge([added(policy, allow)], request)
    assert after or not before
    assert (before.decision is Decision.EXPLICIT_DENY) == (after.decision is Decision.EXPLICIT_DENY)


@given(IDENTITY, policies(PolicyKind.BOUNDARY), policies(PolicyKind.SESSION), REQUESTS)
def test_within_bounds_is_within_each(identity, boundary, session, request):
    """…and is exactly what each of the three would give alone."""
    alone = [bool(judge([replace(one, kind=PolicyKind.IDENTITY)], request)) for one in (identity, boundary, session)]
    assert bool(judge([identity, boundary, session], request)) is all(alone)


@given(IDENTITY, REQUESTS, st.randoms(use_true_random=False))
def test_the_order_of_statements_and_values_changes_nothing(policy, request, random):
    def shuffled(values):
        return tuple(random.sample(values, len(values)))

    mixed = tuple(
        replace(
            one,
            actions=shuffled(one.actions),
            resources=shuffled(one.resources),
            tests=tuple(replace(test, values=shuffled(test.values)) for test in shuffled(one.tests)),
        )
        for one in shuffled(policy.statements)
    )
    decided = judge([policy], request).decision
    assert judge([replace(policy, statements=mixed)], request).decision is decided
    assert judge([replace(policy, statements=(one,)) for one in policy.statements], request).decision is decided


@given(IDENTITY)
def test_a_policy_is_its_document(policy):
    distinct = tuple(
        replace(one, tests=tuple({(test.operator, test.key): test for test in one.tests}.values()))
        for one in policy.statements
    )
    grouped = replace(policy, statements=distinct)
    again = policy_from(json.dumps(document_of(grouped)), kind=policy.kind, name=policy.name)
    assert [sorted(one.tests) for one in again.statements] == [sorted(one.tests) for one in grouped.statements]
    bare = [[replace(one, tests=()) for one in made.statements] for made in (again, grouped)]
    assert bare[0] == bare[1]


@given(st.text("ec2:Dsribe*?PGA", min_size=1, max_size=8))
def test_what_a_pattern_means_means_itself(pattern):
    once = actions.expand(pattern)
    assert [name for one in once for name in actions.expand(one)] == list(once)


#: what moto and we both read: no conditions, no NotResource, nothing that is special in a regular expression only
PLAIN = policies(PolicyKind.IDENTITY, tests=None).filter(
    lambda policy: policy.statements and not any(one.not_resources for one in policy.statements)
)
MOTO = {
    PermissionResult.PERMITTED: Decision.ALLOW,
    PermissionResult.DENIED: Decision.EXPLICIT_DENY,
    PermissionResult.NEUTRAL: Decision.IMPLICIT_DENY,
}


@given(PLAIN, st.sampled_from(ACTIONS), st.sampled_from(RESOURCES))
def test_moto_decides_the_same_where_it_decides(policy, action, resource):
    theirs = IAMPolicy(json.dumps(document_of(policy))).is_action_permitted(action, resource)
    assert judge([policy], Request(action=action, resource=resource)).decision is MOTO[theirs]
