"""Stacks' inputs and the Terraform that they become say the same of rights, for every golden job, tunnelled parts and foundations."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.iam.foundation import aws as foundation_aws
from planner.iam.foundation import azure as foundation_azure
from planner.iam.foundation import gcp as foundation_gcp
from planner.iam.foundation import nebius as foundation_nebius
from planner.iam.foundation.aws_entry import entry
from planner.iam.read.inputs import planned_needs, read_inputs
from planner.iam.read.terraform import joined, read_terraform
from planner.model.control import ControlScope, Operation, Step
from planner.model.errors import MissingPart
from planner.model.grants import Identity, Permission
from planner.model.offer import Cloud
from planner.model.policy import Audited
from planner.model.project import Backend
from planner.model.reach import DataPath, Reach
from planner.model.stack import CiFederation, FoundationInput
from planner.model.workload import Image
from tests.stacks import cases, golden_jobs

FOUNDATIONS = {
    Cloud.AWS: foundation_aws,
    Cloud.GCP: foundation_gcp,
    Cloud.AZURE: foundation_azure,
    Cloud.NEBIUS: foundation_nebius,
}
CI = CiFederation(
    issuer="https://token.actions.githubusercontent.com",
    audience="skyplan",
    repository="acme/infra",
    branch="main",
)
TRUSTED = {
    Cloud.AWS: "arn:aws:iam::123456789012:role/platform",
    Cloud.GCP: "user:platform@acme.com",
    Cloud.AZURE: "0f1e2d3c-0000-4000-8000-000000000000",
    Cloud.NEBIUS: "useraccount-e00platform",
}


@pytest.fixture(scope="module")
def written():
    """A stack's Terraform JSON."""
    try:
        from stacks.app import document
    except MissingPart as missing:  # pragma: no cover - only where the extras are not installed
        pytest.skip(str(missing))
    return document


def plain(audited):
    """What both have to agree on, without places in files and in one order."""

    def bare(part):
        return replace(part, location=None)

    def policy(held):
        return replace(bare(held), statements=tuple(map(bare, held.statements)))

    return {
        "subjects": sorted(
            (
                replace(
                    bare(subject),
                    policies=tuple(sorted((policy(p) for p in subject.policies), key=lambda p: (p.kind, p.name))),
                    bindings=tuple(sorted(map(bare, subject.bindings), key=str)),
                    assignments=tuple(sorted(map(bare, subject.assignments), key=str)),
                    permits=tuple(sorted(map(bare, subject.permits), key=str)),
                )
                for subject in audited.subjects
            ),
            key=lambda subject: subject.origin,
        ),
        "machines": sorted(map(bare, audited.machines), key=lambda machine: machine.origin),
        "providers": sorted(map(bare, audited.providers), key=lambda provider: provider.origin),
        "public": sorted(map(bare, audited.public), key=str),
        "stores": audited.stores,
        "unread": audited.unread,
    }


def both(written, stacks):
    terraform = joined(*(read_terraform(written(given), file="cdk.tf.json") for given in stacks), Audited())
    return plain(terraform), plain(read_inputs(stacks))


@pytest.mark.parametrize("job", golden_jobs.grouped())
def test_golden_jobs_agree(written, job):
    terraform, inputs = both(written, golden_jobs.best(job).inputs)
    assert inputs == terraform
    assert any(subject.identity is Identity.NODE_DATA for subject in inputs["subjects"])


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.GCP, Cloud.AZURE])
@pytest.mark.parametrize(
    "orchestrator", [None, "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-orchestrator"]
)
@pytest.mark.parametrize("image", [True, False])
def test_with_and_without_orchestrator_and_image(written, cloud, orchestrator, image):
    job = next(job for job in golden_jobs.every() if job.cloud is cloud and job.name == "spot")
    case = golden_jobs.best(job)
    chosen = Image(ref="ghcr.io/acme/train:1.4") if image else None
    workload = replace(case.access.workload, image=chosen, registry_auth=None)
    access = replace(case.access, orchestrator=orchestrator, workload=workload)
    terraform, inputs = both(written, (access,))
    assert inputs == terraform
    assert any(s.identity is Identity.ORCHESTRATOR for s in inputs["subjects"]) is (orchestrator is not None)
    assert all(machine.containers is image for machine in inputs["machines"])


@pytest.mark.parametrize("cloud", list(Cloud))
@pytest.mark.parametrize("ci", [None, CI])
def test_foundations_agree(written, cloud, ci):
    scope = ControlScope(
        cloud=cloud,
        project="acme",
        target="prod",
        account=cases.ACCOUNTS[cloud],
        regions=("us-east-1",),
        state="acme-state" if cloud is not Cloud.AZURE else "acmestate/tf",
        resource_group="acme-gpu",
        tenant="tenant-e00acme",
    )
    maker = FOUNDATIONS[cloud]
    subjects = {
        Identity.PLANNER: ("repo:acme/infra:pull_request",),
        Identity.DEPLOYER: ("repo:acme/infra:ref:refs/heads/main",),
    }
    identities = tuple(
        replace(one, trusted=(TRUSTED[cloud],), subjects=subjects.get(one.identity, ()) if ci else ())
        for one in maker.identities(scope)
    )
    given = FoundationInput(
        name=f"fnd-{cloud.value}-prod",
        project="acme",
        cloud=cloud,
        target="prod",
        region="us-east-1",
        account=scope.account,
        role_arn=None,
        backend=Backend(kind="local"),
        provider_version=golden_jobs.best(
            next(j for j in golden_jobs.every() if j.cloud is cloud)
        ).network.provider_version,
        tags=(("skyplan:project", "acme"), ("skyplan:managed", "true")),
        resource_group="acme-gpu",
        tenant="tenant-e00acme",
        identities=identities,
        boundaries=maker.boundaries(scope) if cloud is Cloud.AWS else (),
        ci=ci,
        entry=entry(scope, ("repo:acme/infra:ref:refs/heads/main",)) if ci and cloud is Cloud.AWS else None,
    )
    terraform, inputs = both(written, (given,))
    assert inputs == terraform
    found = {subject.identity for subject in inputs["subjects"]} - {None}
    assert found >= {Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR}
    assert any(one.name == "skyplan-acme-ci" for one in inputs["subjects"]) is (cloud is Cloud.AWS and ci is not None)


def test_leases_and_what_is_allowed():
    case = golden_jobs.best(next(job for job in golden_jobs.every() if str(job) == "aws-spot"))
    paths = (
        DataPath(uri="s3://a/b/", write=False, reach=Reach.PLATFORM, detail=""),
        DataPath(uri="gs://a/b/", write=False, reach=Reach.FEDERATION, detail=""),
        DataPath(uri="nebius://a/b/", write=True, reach=Reach.BROKER, detail=""),
    )
    audited = read_inputs([replace(case.access, data_paths=paths)])
    assert [(one.kind, one.lifetime_seconds, one.renewed, one.run_hours) for one in audited.leases] == [
        ("platform", 6 * 3600, True, case.workload.work.hours),
        ("federation", 3600, True, case.workload.work.hours),
        ("nebius-key", None, False, case.workload.work.hours),
    ]
    assert audited.allowed == (
        (case.workload.name, "s3://acme-corpus/llama/", False),
        (case.workload.name, "s3://acme-ckpt/runs/llama/", True),
    )


def test_no_leak_in_golden_inputs_and_one_that_is_planted_is_found():
    case = golden_jobs.best(next(job for job in golden_jobs.every() if str(job) == "aws-spot"))
    assert read_inputs(case.inputs).leaks == ()
    workload = replace(case.workload, env=(("WANDB_API_KEY", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"),))
    (leak,) = read_inputs([replace(case.access, workload=workload)]).leaks
    assert leak.origin.startswith(case.access.name)


def test_needs_by_the_kinds_of_stacks_at_hand():
    def operation(stack, identity, action):
        return Operation(
            stack=stack,
            resource="aws_x",
            step=Step.CREATE,
            identity=identity,
            permission=Permission.LAUNCH,
            actions=(action,),
        )

    table = [
        operation("compute", Identity.ORCHESTRATOR, "ec2:RunInstances"),
        operation("addresses", Identity.DEPLOYER, "ec2:AllocateAddress"),
        operation("", Identity.PLANNER, "sts:GetCallerIdentity"),
    ]
    case = golden_jobs.best(next(job for job in golden_jobs.every() if str(job) == "aws-spot"))
    assert planned_needs(case.inputs, lambda _: table) == {
        (Identity.ORCHESTRATOR, Cloud.AWS): {"ec2:RunInstances": "create aws_x (compute)"},
        (Identity.PLANNER, Cloud.AWS): {"sts:GetCallerIdentity": "create aws_x"},
    }
    assert (Identity.ORCHESTRATOR, Cloud.AWS) in read_inputs(case.inputs).needs
