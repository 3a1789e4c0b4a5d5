"""GCP's foundation stack and what a job's access stack gives the orchestrator.  Never run against live Google Cloud: held to the provider's schema."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.offer import Cloud
from tests.stacks import checker, gcp_inputs
from tests.stacks.control_inputs import CI, MAIN, PULL, foundation
from tests.stacks.foundation_common import holds, same_as_golden

ORCHESTRATOR = "skyplan-acme-orchestrator@acme-ml.iam.gserviceaccount.com"


@pytest.fixture(scope="module")
def made(render):
    return render(foundation(Cloud.GCP))


def test_the_stack_is_the_golden_one(made, request):
    same_as_golden(Cloud.GCP, made, update=request.config.getoption("--update-golden", default=False))


def test_the_stack_holds_the_contract(made):
    holds(Cloud.GCP, made)


def test_what_the_ci_names_is_an_output(made, render):
    assert made["output"]["ci"]["value"] == {
        "workload_identity_provider": "${google_iam_workload_identity_pool_provider.ci.name}",
        "audience": CI.audience,
    }
    assert "ci" not in render(foundation(Cloud.GCP, ci=None))["output"]


def test_a_pull_request_becomes_the_planner_alone_and_the_branch_the_others(made):
    members = made["resource"]["google_service_account_iam_member"]
    by_subject: dict[str, set[str]] = {PULL: set(), MAIN: set()}
    for body in members.values():
        if body["role"] == "roles/iam.workloadIdentityUser":
            subject = body["member"].rpartition("/subject/")[2]
            by_subject[subject].add(body["service_account_id"].split(".")[1])
    assert by_subject == {PULL: {"planner"}, MAIN: {"planner", "deployer", "orchestrator"}}


def test_the_provider_of_ci_takes_its_own_subjects_and_audience_only(made):
    (provider,) = made["resource"]["google_iam_workload_identity_pool_provider"].values()
    assert provider["attribute_condition"] == f"assertion.sub in ['{PULL}', '{MAIN}']"
    assert provider["oidc"] == {"issuer_uri": CI.issuer, "allowed_audiences": [CI.audience]}


def test_without_ci_no_token_from_outside_is_believed(render):
    without = render(foundation(Cloud.GCP, ci=None))
    assert not {kind for kind in without["resource"] if "workload_identity" in kind}
    assert "workloadIdentityUser" not in str(without)


def test_the_deployer_may_be_become_by_whom_the_platform_team_names(made):
    given = [
        (body["service_account_id"], body["member"])
        for body in made["resource"]["google_service_account_iam_member"].values()
        if body["role"] == "${google_project_iam_custom_role.become.name}"
    ]
    assert given == [
        ("${google_service_account.deployer.name}", "group:platform@acme.example"),
        # what the broker becomes, which has jobs' prefixes and nothing else: the broker, and nobody
        ("${google_service_account.data.name}", "serviceAccount:${google_service_account.broker.email}"),
    ]
    role = made["resource"]["google_project_iam_custom_role"]["become"]
    assert role["permissions"] == ["iam.serviceAccounts.getAccessToken"]
    assert "serviceAccountTokenCreator" not in str(made)


def test_every_custom_role_is_bound_once_to_its_own_account(made):
    resource = made["resource"]
    bound = {**resource["google_project_iam_member"], **resource["google_storage_bucket_iam_member"]}
    assert set(bound) == set(resource["google_project_iam_custom_role"]) - {"become"}
    for name, body in bound.items():
        assert body["role"] == f"${{google_project_iam_custom_role.{name}.name}}"
        assert body["member"] == f"${{google_service_account.{name.split('-')[0]}.member}}"


def test_a_quote_in_a_subject_is_refused(render):
    odd = foundation(Cloud.GCP)
    first = replace(odd.identities[0], subjects=("repo:a'] || true",))
    with pytest.raises(ValueError, match="no subject"):
        render(replace(odd, identities=(first, *odd.identities[1:])))


def test_a_foundation_needs_a_project(render):
    with pytest.raises(ValueError, match="project"):
        render(foundation(Cloud.GCP, account=None))


def test_the_orchestrator_may_use_the_account_of_this_job_and_nothing_is_on_the_project(render):
    made = render(gcp_inputs.access(orchestrator=ORCHESTRATOR))
    assert checker.problems(made) == []
    assert made["resource"]["google_service_account_iam_member"] == {
        "orchestrator": {
            "service_account_id": "${google_service_account.nodes.name}",
            "role": "roles/iam.serviceAccountUser",
            "member": f"serviceAccount:{ORCHESTRATOR}",
        }
    }
    plain = render(gcp_inputs.access())
    del made["resource"]["google_service_account_iam_member"]
    assert made == plain
