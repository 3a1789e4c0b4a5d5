"""Public threads as cases for the audit (notes, 4): what went wrong for others is found here."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import RULES, run
from planner.iam.evaluate.aws import Request, judge
from planner.iam.foundation import aws, azure, gcp
from planner.model.control import ControlScope
from planner.model.offer import Cloud
from tests.unit.iam.audit.fixture_files import audited_from, files, judged, load

ACCOUNT = "111122223333"
TRUST = {"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}


def policy(*statements, name="p", kind="identity"):
    return {"kind": kind, "name": name, "document": {"Version": "2012-10-17", "Statement": list(statements)}}


def test_6_a_spot_launch_that_would_fail_is_told_before():
    """karpenter-provider-aws#5270, cdk-eks-karpenter#150."""
    (bad, tags) = (load(path) for path in files("SKY-IAM-110", "fail"))
    assert [one.action for one in judged("SKY-IAM-110", bad)] == ["ec2:RunInstances", "ec2:CreateTags"]
    assert [one.action for one in judged("SKY-IAM-110", tags)] == ["ec2:CreateTags"]
    assert all("spot-instances-request/*" in one.fix for one in judged("SKY-IAM-110", bad))


def test_7_the_orchestrator_passes_the_one_role_to_the_one_service():
    """skypilot#3366: the right to pass got lost in a refactoring.  The policy of a job's own access stack gives it, and no other."""
    role = f"arn:aws:iam::{ACCOUNT}:role/skyplan/acme/node"
    condition = {"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}
    statement = {"Sid": "Pass", "Effect": "Allow", "Action": "iam:PassRole", "Resource": role, "Condition": condition}
    audited = audited_from({"subjects": [{"cloud": "aws", "name": "o", "policies": [policy(statement)]}]})
    policies = audited.subjects[0].policies

    def passes(arn, service):
        return bool(
            judge(policies, Request(action="iam:PassRole", resource=arn, context={"iam:PassedToService": (service,)}))
        )

    assert passes(role, "ec2.amazonaws.com")
    assert not passes(f"{role}2", "ec2.amazonaws.com")
    assert not passes(role, "lambda.amazonaws.com")
    assert run(audited, [name for name in RULES if "SKY-IAM-200" < name < "SKY-IAM-300"]) == ()


@pytest.mark.parametrize("identity", ["node-data", None])
def test_8_a_node_that_had_all_of_ec2_and_s3(identity):
    """Log2n-io/Typhon#971."""
    everything = {"Effect": "Allow", "Action": ["ec2:*", "s3:*"], "Resource": "*"}
    subject = {
        "cloud": "aws",
        "name": "skypilot-v1",
        "identity": identity,
        "policies": [policy(everything), policy(TRUST, name="trust", kind="trust")],
    }
    found = {one.rule for one in run(audited_from({"subjects": [subject]}))}
    assert {"SKY-IAM-216", "SKY-IAM-305"} <= found


def test_8_by_the_managed_policies_that_it_really_had():
    attached = [
        {"kind": "identity", "name": f"arn:aws:iam::aws:policy/{name}", "document": {"Statement": []}}
        for name in ("AmazonEC2FullAccess", "AmazonS3FullAccess")
    ]
    subject = {"cloud": "aws", "name": "n", "identity": "node-data", "policies": attached}
    assert len(run(audited_from({"subjects": [subject]}), ["SKY-IAM-216"])) == 2


@pytest.mark.parametrize(("cloud", "identities"), [(Cloud.AWS, aws), (Cloud.GCP, gcp), (Cloud.AZURE, azure)])
def test_9_one_role_for_all_is_never_rendered(cloud, identities):
    """skypilot#3487, ray#9327."""
    scope = ControlScope(
        cloud=cloud,
        project="acme",
        target="prod",
        account=ACCOUNT,
        regions=("us-east-1",),
        resource_group="llm",
        tenant="t",
    )
    made = identities.identities(scope)
    assert len({one.name for one in made}) == len(made) == 4
    names = [document.name for one in made for document in one.policies]
    assert len(names) == len(set(names))
