"""What must hold of coverage and widening, whatever the statements; and that coverage is sound, by the evaluator's word."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from hypothesis import assume, event, given
from hypothesis import strategies as st

from planner.iam.audit.covers import covers, covers_assignment, covers_binding, covers_permit, implies, overlaps
from planner.iam.audit.widening import widening
from planner.iam.evaluate.aws import Request, judge
from planner.iam.evaluate.operators import holds
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    AwsPolicy,
    Permit,
    PolicyKind,
    RoleAssignment,
    RoleBinding,
    Statement,
    Subject,
    Test,
)

ACTIONS = ["s3:GetObject", "s3:GetObjectAcl", "s3:PutObject", "ec2:RunInstances", "ec2:RunScheduledInstances"]
ACTION_PATTERNS = [*ACTIONS, "s3:Get*", "s3:*", "S3:getobject", "ec2:Run*", "*", "s3:?etObject", "*Object"]
RESOURCES = [
    "arn:aws:s3:::acme/a/x",
    "arn:aws:s3:::acme/a/b/x",
    "arn:aws:s3:::acme/a:b",
    "arn:aws:s3:::other/a/x",
    "arn:aws:s3:::acme",
    "arn:aws:ec2:us-east-1:1:instance/i-1",
    "arn:aws:ec2:us-east-1:2:instance/i-1",
    "arn:aws:s3:::acme/team/*",
]
RESOURCE_PATTERNS = [
    *RESOURCES[:-1],
    "*",
    "arn:aws:s3:::*",
    "arn:aws:s3:::acme*",
    "arn:aws:s3:::acme/*",
    "arn:aws:s3:::acme/a/*",
    "arn:aws:s3:::acme/a/?",
    "arn:aws:s3:::acme/a/${*}",
    "arn:aws:s3:::acme/${aws:PrincipalTag/team}/*",
    "arn:aws:s3:::*/a/*",
    "arn:aws:ec2:*:1:instance/*",
    "arn:aws:ec2:*:instance/*",
    "arn:*:ec2:*:*:*",
    "arn:aws:ec2:us-east-?:*:instance/*",
]
KEYS = ["aws:ResourceTag/p", "AWS:resourcetag/P", "aws:TagKeys", "n"]
TEXTS = ["a", "ab", "A", "b", "*", "a*", "?", "${*}", "${aws:PrincipalTag/team}", "team"]
NUMBERS = ["1", "2", "1.0", "x"]
STRING = ["Equals", "NotEquals", "EqualsIgnoreCase", "NotEqualsIgnoreCase", "Like", "NotLike"]
NUMERIC = ["Equals", "NotEquals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals"]


def some(values, least=1, most=2):
    return st.lists(st.sampled_from(values), min_size=least, max_size=most, unique=True).map(tuple)


@st.composite
def conditions(draw):
    key = draw(st.sampled_from(KEYS))
    kind = draw(st.sampled_from(["String", "String", "Numeric", "Null", "Bool"]))
    if kind == "Null":
        return Test(operator="Null", key=key, values=(draw(st.sampled_from(["true", "false", "False"])),))
    if kind == "Bool":
        return Test(operator="Bool", key=key, values=(draw(st.sampled_from(["true", "false"])),))
    words, values = (STRING, TEXTS) if kind == "String" else (NUMERIC, NUMBERS)
    group = draw(st.sampled_from(["", "", "ForAllValues:", "ForAnyValue:"]))
    end = draw(st.sampled_from(["", "", "IfExists"]))
    return Test(operator=f"{group}{kind}{draw(st.sampled_from(words))}{end}", key=key, values=draw(some(values)))


@st.composite
def statements(draw, effect="Allow"):
    without = draw(st.integers(0, 9))
    return Statement(
        sid=draw(st.sampled_from(["", "One", "Two"])),
        effect=effect,
        **{"not_actions" if without == 0 else "actions": draw(some(ACTION_PATTERNS))},
        **{"not_resources" if without == 1 else "resources": draw(some(RESOURCE_PATTERNS))},
        tests=draw(st.lists(conditions(), max_size=2).map(tuple)),
    )


@st.composite
def pairs(draw):
    """Two statements that are often near each other: the second is the first with a part or two drawn anew."""
    first, second = draw(statements()), draw(statements())
    for part in ("actions", "resources", "tests"):
        if draw(st.booleans()):
            names = (part,) if part == "tests" else (part, f"not_{part}")
            second = replace(second, **{name: getattr(first, name) for name in names})
    if draw(st.booleans()):
        second = replace(second, tests=(*first.tests, *second.tests))
    return first, second


values = st.lists(st.sampled_from(["a", "ab", "A", "b", "team", "*", "1", "2", "true", "x"]), max_size=2, unique=True)
requests = st.builds(
    Request,
    action=st.sampled_from(ACTIONS),
    resource=st.sampled_from(RESOURCES),
    context=st.dictionaries(
        st.sampled_from(["aws:ResourceTag/p", "aws:TagKeys", "n", "aws:PrincipalTag/team"]),
        values.map(tuple),
        max_size=4,
    ),
)


def policy(*found, kind=PolicyKind.IDENTITY):
    return AwsPolicy(kind=kind, name=kind.value, statements=found)


def audited(*found, boundary=()):
    policies = (policy(*found), *((policy(*boundary, kind=PolicyKind.BOUNDARY),) if boundary else ()))
    subject = Subject(cloud=Cloud.AWS, name="node", origin="o", identity=Identity.NODE_DATA, job="j", policies=policies)
    return Audited(subjects=(subject,))


def allowed(found, request, boundary=()):
    policies = [policy(*found), *([policy(*boundary, kind=PolicyKind.BOUNDARY)] if boundary else [])]
    return bool(judge(policies, request))


@given(statements())
def test_a_statement_covers_itself(one):
    assert covers(one, one)


@given(pairs(), st.lists(requests, min_size=1, max_size=25))
def test_coverage_is_sound(pair, asked):
    have, want = pair
    assume(covers(have, want))
    for request in asked:
        if allowed([want], request):
            event("allowed")
            assert allowed([have], request)


VALUES = ["a", "ab", "A", "b", "team", "*", "1", "2", "3", "true", "x"]
CONTEXTS = [(), *((one,) for one in VALUES), *combinations(VALUES, 2)]


@st.composite
def two_conditions(draw):
    """Two conditions on one key, near each other."""
    first, second = (replace(draw(conditions()), key="k") for _ in range(2))
    if draw(st.booleans()):
        operator = first.operator
        for old, new in draw(st.sampled_from([[], [("IfExists", "")], [("ForAllValues:", "")], [("Like", "Equals")]])):
            operator = operator.replace(old, new)
        longer = (*first.values, *second.values)
        second = Test(operator=operator, key="k", values=draw(st.sampled_from([first.values, longer, second.values])))
    return (first, second) if draw(st.booleans()) else (second, first)


@given(two_conditions())
def test_a_condition_that_follows_holds_wherever_the_other_does(pair):
    want, have = pair
    assume(implies(want, have))
    for present in CONTEXTS:
        context = {"k": present, "aws:principaltag/team": ("team",)}
        if holds(want, context):
            assert holds(have, context), present


@given(pairs(), st.lists(requests, min_size=1, max_size=25))
def test_statements_that_do_not_overlap_share_no_request(pair, asked):
    one, other = pair
    assume(not overlaps(one, other))
    bare = [replace(found, tests=()) for found in (one, other)]
    for request in asked:
        assert not (allowed(bare[:1], request) and allowed(bare[1:], request))


@given(pairs(), statements())
def test_coverage_is_transitive(pair, third):
    first, second = pair
    narrow = replace(second, tests=(*second.tests, *third.tests))
    for a, b, c in ((first, second, third), (first, second, narrow), (second, first, narrow)):
        if covers(a, b) and covers(b, c):
            assert covers(a, c)


@given(st.lists(statements(), max_size=3), st.lists(statements(effect="Deny"), max_size=1))
def test_nothing_changed_is_no_widening(allows, denies):
    one = audited(*allows, *denies)
    assert widening(one, one) == ()


@given(st.lists(statements(), min_size=1, max_size=4), st.data())
def test_less_is_no_widening(allows, data):
    fewer = data.draw(st.lists(st.sampled_from(allows), max_size=3, unique=True))
    denies = data.draw(st.lists(statements(effect="Deny"), max_size=1))
    stricter = [replace(one, tests=(*one.tests, *data.draw(st.lists(conditions(), max_size=1)))) for one in fewer]
    assert widening(audited(*allows), audited(*stricter, *denies)) == ()


@given(st.lists(statements(), max_size=3), st.lists(statements(), max_size=2), statements())
def test_more_is_more_widening(base, more, extra):
    """What is found of some is found of them with others too."""
    few = {found.fingerprint for found in widening(audited(*base), audited(*base, *more))}
    many = widening(audited(*base), audited(*base, *more, extra))
    assert bool(few) <= bool(many)


@given(st.lists(statements(), max_size=3), statements())
def test_what_is_not_covered_is_found(base, extra):
    single = replace(extra, actions=extra.actions[:1], resources=extra.resources[:1])
    assume(not any(covers(have, single) for have in base))
    assert widening(audited(*base), audited(*base, single))


@st.composite
def changes(draw):
    """(Statements and boundary before, statements and boundary after), with denies; the second often keeps what bounds the first."""
    base, new = draw(pairs())
    denies = st.lists(statements(effect="Deny"), max_size=2)
    caps = st.lists(statements(), min_size=1, max_size=2)
    was, now, cap = draw(denies), draw(denies), draw(st.one_of(st.just([]), caps))
    kept, other = draw(st.booleans()), draw(st.one_of(st.just(cap), caps))
    return ([base, *was], cap), ([new, *(was if kept else []), *now], other)


@given(changes(), st.lists(requests, min_size=1, max_size=25))
def test_silence_is_sound(change, asked):
    """Where nothing is found, whatever the new policies allow the base's allow: with denies and boundaries."""
    (base, before), (new, after) = change
    assume(not widening(audited(*base, boundary=before), audited(*new, boundary=after)))
    for request in asked:
        if allowed(new, request, after):
            event("allowed")
            assert allowed(base, request, before)


PERMISSIONS = ["a.get", "a.list", "a.set"]
bindings = st.builds(
    RoleBinding,
    member=st.just("m"),
    role=st.sampled_from(["r", "s", "roles/x"]),
    on=st.sampled_from(["projects/p", "projects/p/x/y", "projects/q", "projects/_/buckets/b"]),
    permissions=some(PERMISSIONS, 0, 3),
    condition=st.sampled_from(["", "x", "x && y", "x || y", "(y) && z"]),
)
assignments = st.builds(
    RoleAssignment,
    role=st.sampled_from(["r", "Owner"]),
    scope=st.sampled_from(["/subscriptions/s", "/subscriptions/s/resourceGroups/g", "/subscriptions/t"]),
    actions=some(["*", "a/*", "a/read", "*/write", "a/write"], 0, 2),
    not_actions=some(["a/write", "*/delete", "a/*"], 0, 1),
    data_actions=some(["d/read", "d/*"], 0, 1),
    condition=st.sampled_from(["", "A", "A AND B", "(A OR C)"]),
)
permits = st.builds(
    Permit,
    role=st.sampled_from(["viewer", "editor", "storage.uploader"]),
    on=st.sampled_from(["p", "b"]),
    paths=some(["a/*", "a/b/*", "*", "c"], 0, 2),
    anonymous=st.booleans(),
)


@given(bindings, bindings, bindings)
def test_bindings(a, b, c):
    assert covers_binding(a, a)
    assert not (covers_binding(a, b) and covers_binding(b, c)) or covers_binding(a, c)


@given(assignments, assignments, assignments)
def test_assignments(a, b, c):
    assert covers_assignment(a, a)
    assert not (covers_assignment(a, b) and covers_assignment(b, c)) or covers_assignment(a, c)


@given(permits, permits, permits)
def test_permits(a, b, c):
    assert covers_permit(a, a)
    assert not (covers_permit(a, b) and covers_permit(b, c)) or covers_permit(a, c)


@given(
    st.lists(bindings, max_size=3).map(tuple),
    st.lists(assignments, max_size=3).map(tuple),
    st.lists(permits, max_size=3).map(tuple),
)
def test_nothing_changed_in_the_other_clouds(have, assigned, permitted):
    subject = Subject(cloud=Cloud.GCP, name="n", origin="o", bindings=have, assignments=assigned, permits=permitted)
    one = Audited(subjects=(subject,))
    assert widening(one, one) == ()
    assert widening(one, Audited(subjects=(replace(subject, bindings=have[:1], assignments=assigned[1:]),))) == ()
