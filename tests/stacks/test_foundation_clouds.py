"""What the three foundations share: a page of docs that is theirs word for word, and names that stacks really use."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.iam.evaluate.gcp import judge
from planner.iam.foundation import azure
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import RoleBinding
from tests.stacks.control_inputs import CLOUDS, foundation, renderer, scope
from tests.stacks.foundation_page import page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "control-identities.md"
JOBS = sorted((Path(__file__).with_name("golden") / "jobs" / "gcp").glob("*.json"))


def test_the_page_is_what_the_renderers_say(request):
    made = page()
    if request.config.getoption("--update-golden", default=False):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made


def test_variables_of_azure_are_those_that_its_roles_name(render):
    stack = render(foundation(Cloud.AZURE))
    assert set(stack["variable"]) == {azure.STORES_ELSEWHERE, azure.USED_ELSEWHERE}


@pytest.mark.parametrize("cloud", CLOUDS, ids=str)
def test_the_order_of_regions_changes_nothing(cloud):
    one, other = ("us-central1", "europe-west4"), ("europe-west4", "us-central1")
    made = renderer(cloud).identities
    assert made(scope(cloud, regions=one)) == made(scope(cloud, regions=other))


def bound(identity):
    (found,) = [one for one in renderer(Cloud.GCP).identities(scope(Cloud.GCP, regions=())) if one.identity is identity]
    return [
        RoleBinding(
            member="m",
            role=policy.document["role"],
            on="projects/acme-ml",
            permissions=tuple(policy.document["permissions"]),
            condition=policy.document["condition"]["expression"],
        )
        for policy in found.policies
        if policy.name.endswith("-owns")
    ]


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_what_golden_jobs_call_their_nodes_disks_and_rules_is_within_the_conditions(path):
    documents = json.loads(path.read_text(encoding="utf-8"))
    node = documents["cmp"]["resource"]["google_compute_instance"]["node"]
    name = node["name"].replace("${each.key}", "r00")
    zone = f"projects/acme-ml/zones/{node['zone']}"
    asked = [
        (Identity.ORCHESTRATOR, "compute.instances.create", f"{zone}/instances/{name}", "Instance"),
        (Identity.ORCHESTRATOR, "compute.disks.create", f"{zone}/disks/{name}", "Disk"),
        *(
            (
                Identity.DEPLOYER,
                "compute.firewalls.delete",
                f"projects/acme-ml/global/firewalls/{one['name']}",
                "Firewall",
            )
            for one in documents["acc"]["resource"]["google_compute_firewall"].values()
        ),
    ]
    for identity, permission, resource, word in asked:
        kind = f"compute.googleapis.com/{word}"
        assert judge(bound(identity), permission, resource, resource_type=kind).decision == "allow", resource
        twin = resource.replace("skyplan-acme-", "skyplan-other-")
        assert judge(bound(identity), permission, twin, resource_type=kind).decision != "allow", twin
