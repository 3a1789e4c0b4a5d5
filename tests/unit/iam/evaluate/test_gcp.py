"""Bindings of Google's IAM and the part of CEL that their conditions are read with; each denial beside its allowed twin."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planner.iam.evaluate.cel import CelError, Scope, holds
from planner.iam.evaluate.gcp import judge, reaches
from planner.iam.evaluate.verdict import Decision
from planner.model.policy import RoleBinding

INSTANCE = "projects/p/zones/us-central1-a/instances/skyplan-llm-a-0"
LAUNCHER = (
    '(resource.type == "compute.googleapis.com/Instance" && '
    'resource.name.extract("/instances/{name}").startsWith("skyplan-llm-a-")) || '
    '(resource.type == "compute.googleapis.com/Disk" && '
    'resource.name.extract("/disks/{name}").startsWith("skyplan-llm-a-"))'
)
PREFIX = (
    "resource.name.startsWith('projects/_/buckets/b/objects/llm-a/') || "
    "api.getAttribute('storage.googleapis.com/objectListPrefix', '').startsWith('llm-a/')"
)
GRANTS = (
    "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly("
    "['roles/storage.objectViewer', 'roles/run.invoker'])"
)
SCOPE = Scope(
    names={
        "resource.name": INSTANCE,
        "resource.type": "compute.googleapis.com/Instance",
        "resource.service": "compute.googleapis.com",
        "request.time": datetime(2026, 11, 30, tzinfo=UTC),
        "assertion.sub": "repo:acme/infra:ref:refs/heads/main",
    },
    attributes={"list": ("a", "b"), "text": "x"},
)


def binding(on="projects/p", condition="", permissions=("compute.instances.create", "compute.disks.create")):
    return RoleBinding(
        member="serviceAccount:x", role="projects/p/roles/r", on=on, permissions=permissions, condition=condition
    )


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ('resource.service == "compute.googleapis.com"', True),
        ("resource.service != 'compute.googleapis.com'", False),
        ("resource.type in ['compute.googleapis.com/Disk', \"compute.googleapis.com/Instance\"]", True),
        ("resource.type in ['compute.googleapis.com/Disk']", False),
        ("resource.type in []", False),
        ('resource.name.endsWith("-0")', True),
        ("resource.name.contains('llm-a')", True),
        ("!resource.name.contains('llm-b')", True),
        ("resource.name.matches('instances/skyplan-[a-z-]+[0-9]$')", True),
        ("resource.name.extract('/instances/{name}') == 'skyplan-llm-a-0'", True),
        ("resource.name.extract('zones/{zone}/') == 'us-central1-a'", True),
        ("resource.name.extract('{start}/zones/') == 'projects/p'", True),
        ("resource.name.extract('{all}') == resource.name", True),
        ("resource.name.extract('/disks/{name}') == ''", True),
        ("resource.name.extract('/zones/{none}/disks') == ''", True),
        ('request.time < timestamp("2027-01-01T00:00:00Z")', True),
        ('request.time >= timestamp("2027-01-01T00:00:00Z")', False),
        ("has(assertion.sub) && assertion.sub.startsWith('repo:acme/')", True),
        ("assertion['sub'] == 'repo:acme/infra:ref:refs/heads/main'", True),
        ("has(assertion.other)", False),
        ("api.getAttribute('list', []).hasOnly(['a', 'b', 'c'])", True),
        ("api.getAttribute('list', []).hasOnly(['a'])", False),
        ("api.getAttribute('none', []).hasOnly(['a'])", True),
        ("api.getAttribute('none', 'd') == 'd'", True),
        ("size('abc') == 3 && size([1, 2]) > 1", True),
        ("true && !false", True),
        # && binds closer than ||
        ("true || true && false", True),
        ("(true || true) && false", False),
        # the side that decides does so though the other has no value
        ("true || nobody.knows", True),
        ("nobody.knows || true", True),
        ("nobody.knows && false", False),
        (r"'it\'s' == \"it's\"".replace('\\"', '"'), True),
        (r"r'a\d' == 'a\\d'", True),
        ("resource.name.startsWith('projects/') // and a remark", True),
        # a text that looks like a sign is a text
        ("'&&' == '&&'", True),
    ],
)
def test_expressions(expression, wanted):
    assert holds(expression, SCOPE) is wanted


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "resource.name",
        "nobody.knows == 'x'",
        "nobody.knows || false",
        "resource.name == 1",
        "resource.name.reverse() == 'x'",
        "frobnicate('x')",
        "resource.name ==",
        "(true",
        "true true",
        "'open",
        "resource.name == 'a' ? true : false",
        "request.time.getHours('UTC') == 1",
        "resource.name.matches('(?=x)')",
        "resource.name.matches('[')",
        "resource.name.extract('no braces') == ''",
        "'x' in 'xyz'",
        "api.getAttribute('text', '').hasOnly(['x'])",
        "timestamp('soon') > request.time",
        "1.5 < 2",
        "'\\x' == 'x'",
        "(" * 5000 + "true" + ")" * 5000,
        "!" * 5000 + "true",
        ("!" * 15 + "(") * 25 + "true" + ")" * 25,
    ],
)
def test_what_is_not_understood_is_refused(expression):
    with pytest.raises(CelError):
        holds(expression, SCOPE)


def test_a_long_expression_is_read():
    assert holds(" || ".join(["resource.name == 'x'"] * 3000 + ["true"]), SCOPE)


@pytest.mark.parametrize(
    ("name", "kind", "allowed"),
    [
        (INSTANCE, "compute.googleapis.com/Instance", True),
        ("//compute.googleapis.com/" + INSTANCE, "compute.googleapis.com/Instance", True),
        (INSTANCE.replace("llm-a", "llm-b"), "compute.googleapis.com/Instance", False),
        (INSTANCE.replace("instances", "disks"), "compute.googleapis.com/Disk", True),
        (INSTANCE.replace("instances", "disks"), "compute.googleapis.com/Instance", False),
        (INSTANCE.replace("projects/p/", "projects/q/"), "compute.googleapis.com/Instance", False),
    ],
)
def test_the_launcher_of_the_notes(name, kind, allowed):
    verdict = judge([binding(condition=LAUNCHER)], "compute.instances.create", name, resource_type=kind)
    assert verdict.allowed is allowed


def test_a_permission_that_the_role_has_not_is_denied():
    assert judge([binding()], "compute.instances.create", INSTANCE)
    assert judge([binding()], "compute.instances.delete", INSTANCE).decision is Decision.IMPLICIT_DENY
    assert judge([binding(permissions=("compute.instances.*",))], "compute.instances.delete", INSTANCE)


def test_a_listing_under_a_boundary_is_held_to_its_prefix():
    reader = binding(
        on="projects/_/buckets/b", condition=PREFIX, permissions=("storage.objects.get", "storage.objects.list")
    )
    key = "storage.googleapis.com/objectListPrefix"
    assert judge([reader], "storage.objects.get", "projects/_/buckets/b/objects/llm-a/x")
    assert not judge([reader], "storage.objects.get", "projects/_/buckets/b/objects/llm-ab/x")
    assert judge([reader], "storage.objects.list", "projects/_/buckets/b", attributes={key: "llm-a/"})
    assert not judge([reader], "storage.objects.list", "projects/_/buckets/b", attributes={key: "llm-b/"})
    assert not judge([reader], "storage.objects.list", "projects/_/buckets/b")


def test_only_the_roles_named_may_be_given_on():
    giver = binding(condition=GRANTS, permissions=("resourcemanager.projects.setIamPolicy",))
    key, action = "iam.googleapis.com/modifiedGrantsByRole", "resourcemanager.projects.setIamPolicy"
    assert judge([giver], action, "projects/p", attributes={key: ("roles/run.invoker",)})
    assert not judge([giver], action, "projects/p", attributes={key: ("roles/run.invoker", "roles/owner")})


def test_time_is_asked_of_the_caller():
    until = binding(condition='request.time < timestamp("2026-12-01T00:00:00Z")')
    asked = ([until], "compute.instances.create", INSTANCE)
    assert judge(*asked, now=datetime(2026, 11, 30, tzinfo=UTC))
    assert not judge(*asked, now=datetime(2026, 12, 1, tzinfo=UTC))
    assert "request.time is not known" in judge(*asked).by


def test_a_condition_that_is_not_understood_lets_nothing_through_and_another_binding_may():
    odd = binding(condition="resource.name.reverse() == 'x'")
    verdict = judge([odd], "compute.instances.create", INSTANCE)
    assert verdict.decision is Decision.IMPLICIT_DENY
    assert "reverse() is not understood" in verdict.by
    assert judge([odd, binding()], "compute.instances.create", INSTANCE)


def test_a_predefined_role_is_what_is_known_of_it():
    def by(role, permission):
        return judge([RoleBinding(member="user:x", role=role, on="projects/p")], permission, INSTANCE)

    assert by("roles/owner", "compute.instances.create")
    assert not by("roles/viewer", "compute.instances.create")
    assert by("roles/viewer", "compute.instances.get")
    assert "what the role holds is not known" in by("roles/nobody.knows", "compute.instances.get").by


@pytest.mark.parametrize(
    ("on", "resource", "wanted"),
    [
        ("projects/p", "projects/p", True),
        ("projects/p", "projects/p/zones/z/instances/i", True),
        ("projects/p", "projects/pq/zones/z/instances/i", False),
        ("projects/_/buckets/b", "projects/_/buckets/b/objects/x", True),
        ("projects/_/buckets/b", "projects/_/buckets/bc/objects/x", False),
        ("projects/_/buckets/b/managedFolders/f/", "projects/_/buckets/b/objects/f/x", True),
        ("projects/_/buckets/b/managedFolders/f/", "projects/_/buckets/b/objects/fg/x", False),
        ("projects/_/buckets/b/managedFolders/f", "projects/_/buckets/b/objects/fg/x", False),
        ("projects/_/buckets/b/managedFolders/f/", "projects/_/buckets/b", False),
        ("projects/p/serviceAccounts/e", "projects/p/serviceAccounts/f", False),
    ],
)
def test_what_a_binding_reaches(on, resource, wanted):
    assert reaches(on, resource) is wanted


def test_a_bucket_is_in_the_project_that_the_caller_names():
    assert not reaches("projects/p", "projects/_/buckets/b")
    assert reaches("projects/p", "projects/_/buckets/b", ["projects/p"])
