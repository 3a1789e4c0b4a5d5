"""What the three foundations share: a page of docs that is theirs word for word, and names that stacks really use."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from planner.app.foundation import AUDIENCES
from planner.clouds import azure_ci
from planner.iam.evaluate.gcp import judge
from planner.iam.foundation import aws_entry, aws_names, azure
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import RoleBinding
from tests.stacks.control_inputs import CLOUDS, MAIN, foundation, renderer, scope
from tests.stacks.foundation_page import page
from tests.unit.iam.aws_scope import SCOPE as AWS_SCOPE

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "control-identities.md"
JOBS = sorted((Path(__file__).with_name("golden") / "jobs" / "gcp").glob("*.json"))


def test_the_page_is_what_the_renderers_say(request):
    made = page()
    if request.config.getoption("--update-golden", default=False):
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made


def test_what_the_page_tells_ci_to_name_is_what_the_foundations_make(render):
    snippets = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page(), re.DOTALL)]
    aws, gcp, azure_ = snippets
    role = aws["apply"][0]["with"]["role-to-assume"]
    assert role == aws_entry.entry(AWS_SCOPE, (MAIN,)).arn
    assert aws["pull-request"][0]["with"]["role-to-assume"] == aws_names.role(AWS_SCOPE, Identity.PLANNER)
    pools = render(foundation(Cloud.GCP))["resource"]["google_iam_workload_identity_pool"]
    pool = pools["ci"]["workload_identity_pool_id"]
    assert f"/workloadIdentityPools/{pool}/providers/ci" in gcp["apply"][0]["with"]["workload_identity_provider"]
    assert gcp["apply"][0]["with"]["audience"] == AUDIENCES[Cloud.GCP]
    assert set(azure_["apply"][0]["env"]) == {"ARM_USE_OIDC", "ARM_USE_AZUREAD", "ARM_TENANT_ID"}
    assert AUDIENCES[Cloud.AZURE] == azure_ci.AUDIENCE
    assert AUDIENCES[Cloud.AZURE] in page()


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
