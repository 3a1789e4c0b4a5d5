"""GCP's control identities: least rights out of the operations table, judged by the local evaluator.  Never run against live Google Cloud."""

from __future__ import annotations

import pytest

from modules.gcp.names import account_id, resource_name
from planner.iam.evaluate.gcp import judge
from planner.iam.foundation import gcp
from planner.iam.operations.gcp import OPERATIONS
from planner.model.grants import CONTROL_IDENTITIES, Identity
from planner.model.offer import Cloud
from planner.model.policy import RoleBinding
from tests.stacks.control_inputs import scope

PLACE = "projects/acme-ml/zones/us-central1-a"
INSTANCE, DISK, FIREWALL = (f"compute.googleapis.com/{one}" for one in ("Instance", "Disk", "Firewall"))
BUCKET = "projects/_/buckets/acme-state"


def made(**changes):
    return {one.identity: one for one in gcp.identities(scope(Cloud.GCP, **changes))}


def permissions(identity, **changes):
    return {one for policy in made(**changes)[identity].policies for one in policy.document["permissions"]}


def bindings(identity, **changes):
    out = []
    for policy in made(**changes)[identity].policies:
        document = policy.document
        on = document["on"]
        out.append(
            RoleBinding(
                member="m",
                role=document["role"],
                on=f"projects/{on['project']}" if "project" in on else f"projects/_/buckets/{on['bucket']}",
                permissions=tuple(document["permissions"]),
                condition=document.get("condition", {}).get("expression", ""),
            )
        )
    return out


def allows(identity, permission, resource, kind="", *, attributes=None, **changes):
    return (
        judge(bindings(identity, **changes), permission, resource, resource_type=kind, attributes=attributes).decision
        == "allow"
    )


@pytest.mark.parametrize("identity", CONTROL_IDENTITIES)
def test_every_permission_is_one_that_an_operation_takes_and_none_is_a_pattern(identity):
    needed = {action for row in OPERATIONS if row.identity is identity for action in row.actions}
    assert permissions(identity) == needed - set(gcp.WITHHELD)
    assert not [one for one in permissions(identity) if "*" in one]


def test_what_is_withheld_is_taken_by_an_operation_and_says_why():
    taken = {action for row in OPERATIONS for action in row.actions}
    assert set(gcp.WITHHELD) <= taken
    assert all(len(why) > 20 for why in gcp.WITHHELD.values())


def test_the_orchestrator_sets_no_policy_becomes_nobody_and_reads_its_state_only():
    held = permissions(Identity.ORCHESTRATOR)
    assert not [one for one in held if one.endswith(".setIamPolicy") or one.startswith(("iam.", "secretmanager."))]
    assert {one for one in held if one.startswith("storage.")} == {
        f"storage.objects.{verb}" for verb in ("create", "delete", "get", "list")
    }
    assert not permissions(Identity.ORCHESTRATOR, state="") & {"storage.objects.get", "storage.objects.list"}


def test_the_deployer_starts_nothing_and_the_planner_changes_nothing():
    assert not [one for one in permissions(Identity.DEPLOYER) if one.startswith(("compute.instances", "compute.disks"))]
    assert all(one.endswith((".get", ".list")) for one in permissions(Identity.PLANNER))
    assert permissions(Identity.BROKER) == set()


def test_names_of_nodes_disks_and_firewalls_are_those_that_the_conditions_ask_for():
    name = resource_name("acme", "llama3-8b-sft", "g1", limit=57) + "-r00"
    assert allows(Identity.ORCHESTRATOR, "compute.instances.create", f"{PLACE}/instances/{name}", INSTANCE)
    assert allows(Identity.ORCHESTRATOR, "compute.disks.create", f"{PLACE}/disks/{name}", DISK)
    rule = resource_name("acme", "acc-llama3-8b-sft--gcp-prod-us-central1", "rest-inbound")
    assert allows(Identity.DEPLOYER, "compute.firewalls.create", f"projects/acme-ml/global/firewalls/{rule}", FIREWALL)
    longest = resource_name("acme", "j" * 63, "g999", limit=57)
    assert allows(Identity.ORCHESTRATOR, "compute.instances.delete", f"{PLACE}/instances/{longest}-r99", INSTANCE)


@pytest.mark.parametrize(
    ("resource", "kind"),
    [
        (f"{PLACE}/instances/skyplan-other-job-g1-r00", INSTANCE),
        (f"{PLACE}/instances/acme-skyplan-acme-x", INSTANCE),
        ("projects/acme-ml/zones/us-east4-a/instances/skyplan-acme-job-g1-r00", INSTANCE),
        ("projects/acme-ml/zones/us-central10-a/instances/skyplan-acme-job-g1-r00", INSTANCE),
        (f"{PLACE}/instances/skyplan-acme-job-g1-r00", "compute.googleapis.com/Image"),
        ("projects/other/zones/us-central1-a/instances/skyplan-acme-job-g1-r00", INSTANCE),
    ],
)
@pytest.mark.parametrize("permission", ["compute.instances.delete", "compute.instances.setMetadata"])
def test_a_machine_of_another_name_region_or_project_is_not_touched(resource, kind, permission):
    twin = f"{PLACE}/instances/skyplan-acme-job-g1-r00"
    assert allows(Identity.ORCHESTRATOR, permission, twin, INSTANCE)
    assert not allows(Identity.ORCHESTRATOR, permission, resource, kind)


def test_listing_works_though_names_are_bounded():
    assert allows(Identity.ORCHESTRATOR, "compute.instances.list", "projects/acme-ml")


def test_a_deployer_gives_these_roles_and_no_other():
    key = "iam.googleapis.com/modifiedGrantsByRole"
    account = "projects/acme-ml/serviceAccounts/x@acme-ml.iam.gserviceaccount.com"
    ask = "iam.serviceAccounts.setIamPolicy"
    for role in gcp.GRANTABLE:
        assert allows(Identity.DEPLOYER, ask, account, attributes={key: (role,)})
    for role in ("roles/iam.serviceAccountTokenCreator", "roles/owner", "roles/storage.objectAdmin"):
        assert not allows(Identity.DEPLOYER, ask, account, attributes={key: (role,)})
        assert not allows(Identity.DEPLOYER, ask, account, attributes={key: (gcp.GRANTABLE[0], role)})


@pytest.mark.parametrize(
    ("identity", "mine", "others"),
    [
        (Identity.ORCHESTRATOR, "skyplan/acme/cmp-a-g1.tfstate", "skyplan/acme/acc-a.tfstate"),
        (Identity.DEPLOYER, "skyplan/acme/acc-a.tfstate", "skyplan/acme/cmp-a-g1.tfstate"),
    ],
)
@pytest.mark.parametrize("verb", ["get", "create", "delete"])
def test_state_is_kept_apart(identity, mine, others, verb):
    ask = f"storage.objects.{verb}"
    assert allows(identity, ask, f"{BUCKET}/objects/{mine}", "storage.googleapis.com/Object")
    for other in (others, mine.replace("acme", "other"), f"x/{mine}"):
        assert not allows(identity, ask, f"{BUCKET}/objects/{other}", "storage.googleapis.com/Object")


@pytest.mark.parametrize("prefix", ["skyplan/acme/acc-", "skyplan/acme/", "", "skyplan/other/cmp-"])
def test_only_its_own_state_is_listed(prefix):
    ask, attribute = "storage.objects.list", gcp.LIST_PREFIX
    mine = {attribute: ("skyplan/acme/cmp-a-g1.tfstate/",)}
    for kind in ("storage.googleapis.com/Bucket",):
        assert allows(Identity.ORCHESTRATOR, ask, BUCKET, kind, attributes={attribute: mine[attribute][0]})
        assert not allows(Identity.ORCHESTRATOR, ask, BUCKET, kind, attributes={attribute: prefix})


def test_the_condition_holds_no_more_operators_than_google_takes():
    for count in range(1, 30):
        regions = tuple(f"region-{number}" for number in range(count))
        for identity in made(regions=regions).values():
            for policy in identity.policies:
                text = policy.document.get("condition", {}).get("expression", "")
                assert text.count("&&") + text.count("||") <= gcp.MOST_OPERATORS
    (owns,) = [p for p in made(regions=regions)[Identity.ORCHESTRATOR].policies if p.name.endswith("-owns")]
    assert any("regions do not fit" in limit for limit in owns.document["limits"])


def test_what_google_cannot_say_is_said():
    said = " ".join(limit for one in made().values() for p in one.policies for limit in p.document["limits"])
    for word in ("machine type", "user data", "whole project", "terraform init", "only which roles"):
        assert word in said
    assert all(policy.document["reason"] for one in made().values() for policy in one.policies)


def test_names_fit_google_and_stay_two_for_two_projects():
    assert gcp.names(scope(Cloud.GCP))[Identity.ORCHESTRATOR] == "skyplan-acme-orchestrator"
    long = [gcp.names(scope(Cloud.GCP, project=f"a-rather-long-name-{end}")) for end in "ab"]
    assert all(6 <= len(name) <= 30 for names in long for name in names.values())
    assert len({name for names in long for name in names.values()}) == 8
    assert account_id("acme", "acc", "job") not in gcp.names(scope(Cloud.GCP)).values()
