"""Rules 5xx at their borders, and the public issues that they are made of."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import run
from planner.model.offer import Cloud
from planner.model.policy import Audited, LeasePath, Machine

HOUR = 3600


def found(rule, kind, seconds, *, cloud=Cloud.AWS, renewed=True, run_hours=40.0):
    lease = LeasePath(
        cloud=cloud,
        origin="train",
        job="train",
        kind=kind,
        lifetime_seconds=seconds,
        renewed=renewed,
        run_hours=run_hours,
    )
    return run(Audited(leases=(lease,)), [rule])


@pytest.mark.parametrize(
    ("kind", "cloud", "seconds", "bad"),
    [
        ("assume-role", Cloud.AWS, 16 * 60, True),
        ("assume-role", Cloud.AWS, 16 * 60 + 1, False),
        ("assume-role", Cloud.AWS, 12 * HOUR, False),
        ("assume-role", Cloud.AWS, 12 * HOUR + 1, True),
        ("chained-role", Cloud.AWS, HOUR, False),
        ("chained-role", Cloud.AWS, HOUR + 1, True),
        ("federation", Cloud.AWS, 2 * HOUR, False),
        ("federation", Cloud.GCP, 2 * HOUR, True),
        ("gcp-token", Cloud.GCP, HOUR, False),
        ("gcp-token", Cloud.GCP, HOUR + 1, True),
        ("azure-sas", Cloud.AZURE, 7 * 24 * HOUR, False),
        ("azure-sas", Cloud.AZURE, 7 * 24 * HOUR + 1, True),
        ("platform", Cloud.AWS, None, False),
    ],
)
def test_lifetimes(kind, cloud, seconds, bad):
    assert bool(found("SKY-IAM-502", kind, seconds, cloud=cloud)) is bad


def test_a_chained_lease_of_two_hours_is_rejected():
    """aws-vault#263, prowler#7721, eks-anywhere#9485."""
    (one,) = found("SKY-IAM-502", "chained-role", 2 * HOUR)
    assert one.message == "2 h is longer than chained-role gives, 1 h: the request is refused"
    assert one.fix == "lifetime_seconds = 3600"


def test_a_static_file_is_never_read_again_though_it_is_rewritten():
    """aws-controllers-k8s/test-infra#971."""
    (one,) = found("SKY-IAM-503", "static-file", HOUR, renewed=True)
    assert "test-infra#971" in one.message
    assert "AWS_CONTAINER_CREDENTIALS_FULL_URI" in one.fix


def test_azcli_is_rejected_on_nodes_however_short_the_run():
    """Azure/azure-storage-fuse#1609."""
    (one,) = found("SKY-IAM-503", "azcli", HOUR, cloud=Cloud.AZURE, run_hours=0.1)
    assert "azure-storage-fuse#1609" in one.message
    assert "managed identity" in one.fix


@pytest.mark.parametrize(
    ("renewed", "run_hours", "seconds", "bad"),
    [
        (False, 1.0, HOUR, False),
        (False, 1.1, HOUR, True),
        (False, None, HOUR, True),
        (True, None, HOUR, False),
        (False, 40.0, None, False),
    ],
)
def test_a_run_and_its_credential(renewed, run_hours, seconds, bad):
    assert bool(found("SKY-IAM-503", "assume-role", seconds, renewed=renewed, run_hours=run_hours)) is bad


def test_both_faults_of_a_machine_are_one_finding():
    machine = Machine(cloud=Cloud.AWS, origin="m", hop_limit=3, tokens_required=False, containers=True)
    (one,) = run(Audited(machines=(machine,)), ["SKY-IAM-505"])
    assert "IMDSv1" in one.message
    assert "hop limit 3" in one.message
    assert not run(Audited(machines=(Machine(cloud=Cloud.GCP, origin="m", tokens_required=False),)), ["SKY-IAM-505"])
