"""What a job's nodes could not run on, and what a plan says of the way it ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.app.plan import Planned, Request, run
from planner.model.codes import CODES
from tests.unit.app.world import NOW

JOB = """\
name: probe
resources: {{accelerators: "{gpu}", nodes: {nodes}, capacity: [on_demand]}}
work: {{hours: 20, on: "{gpu}"}}
run: python train.py
"""


def planned(tmp_path: Path, more: str = "", *, gpu: str = "L4:1", nodes: int = 1, project: str = "") -> Planned:
    job = tmp_path / "job.yaml"
    job.write_text(JOB.format(gpu=gpu, nodes=nodes) + more)
    file = None
    if project:
        file = tmp_path / "skyplan.yaml"
        file.write_text(project)
    (found,) = run(Request(job_files=(job,), project_file=file, offline=True), NOW).planned
    return found


def clouds(found: Planned) -> set[str]:
    return {p.cloud for p in found.plan.ranked}


def reasons(found: Planned) -> str:
    return " ".join(e for r in found.plan.rejected if r.code == "SKY-REJ-215" for e in r.examples)


def test_a_secret_keeps_a_job_to_the_clouds_that_hold_it(tmp_path: Path) -> None:
    one = planned(tmp_path, "secrets: {HF_TOKEN: gcp-secretmanager://acme-ml/hf}\n")
    assert clouds(one) == {"gcp"}
    assert "cannot read the secret gcp-secretmanager://acme-ml/hf" in reasons(one)
    both = "secrets: {HF_TOKEN: [gcp-secretmanager://acme-ml/hf, aws-secretsmanager://acme/hf]}\n"
    assert clouds(planned(tmp_path, both + "constraints: {clouds: [aws]}\n")) == {"aws"}
    assert clouds(planned(tmp_path, both + "constraints: {clouds: [azure, nebius]}\n", gpu="H100:8")) == set()


def test_a_session_keeps_a_job_to_the_clouds_that_have_a_channel(tmp_path: Path) -> None:
    assert clouds(planned(tmp_path, "access: session\n", gpu="H100:8")) <= {"aws", "gcp"}


@pytest.mark.parametrize("how", ["mount: /data", "copy_to: /srv/data"])
def test_data_that_skyplan_must_bring_needs_credentials(tmp_path: Path, how: str) -> None:
    data = f'data: [{{uri: "gs://acme/p/", size: 1GB, region: us-central1, {how}}}]\n'
    assert clouds(planned(tmp_path, data)) == {"gcp"}
    federated = (
        "project: acme\nfederation: [{stores: ['gs://acme'], from: [aws], gcp_provider: "
        "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/aws}]\n"
    )
    only = "constraints: {clouds: [aws]}\n"
    assert clouds(planned(tmp_path, data + only)) == set()
    assert clouds(planned(tmp_path, data + only, project=federated)) == {"aws"}


def test_what_is_copied_must_fit(tmp_path: Path) -> None:
    data = 'data: [{{uri: "gs://acme/p/", size: {size}, region: us-central1, copy_to: /scratch/p}}]\n'
    assert clouds(planned(tmp_path, data.format(size="300GB"))) == {"gcp"}
    full = planned(tmp_path, data.format(size="900TB"))
    assert not full.plan.ranked
    assert "of local NVMe" in reasons(full)


def test_r27_a_job_that_its_hard_end_would_cut_off_is_not_placed_there(tmp_path: Path) -> None:
    assert planned(tmp_path, "constraints: {stop_after: 90h}\n").plan.ranked
    cut = planned(tmp_path, "constraints: {stop_after: 1h}\n")
    assert not cut.plan.ranked
    found = {r.code: r.examples for r in cut.plan.rejected}
    assert "hard end 1 h" in found["SKY-REJ-209"][0]


def test_r27_a_plan_says_what_ends_its_nodes(tmp_path: Path) -> None:
    ends = planned(tmp_path, "constraints: {stop_after: 90h}\n").plan
    assert any("hard end: the nodes power themselves off 90 h" in note for note in ends.notes)
    assert not any(c.code == "SKY-RUN-504" for c in ends.choice.caveats)
    endless = planned(tmp_path).plan
    assert any(c.code == "SKY-RUN-504" for c in endless.choice.caveats)
    azure = [
        p for p in planned(tmp_path, "constraints: {clouds: [azure]}\n", gpu="T4:1").plan.ranked if p.cloud == "azure"
    ]
    assert azure
    assert all("SKY-RUN-508" in {c.code for c in p.caveats} for p in azure)


def test_a_choice_that_apply_would_refuse_is_said_to_be_one(tmp_path: Path) -> None:
    data = 'data: [{uri: "gs://acme/p/", size: 1GB, region: us-central1}]\n'
    aws = planned(tmp_path, data + "constraints: {clouds: [aws]}\n").plan
    assert not aws.status.applyable
    assert any("--own-credentials" in note for note in aws.notes)
    gcp = planned(tmp_path, data + "constraints: {clouds: [gcp]}\n").plan
    assert gcp.status.applyable
    assert not any("--own-credentials" in note for note in gcp.notes)


def test_a_tunnel_that_cannot_come_up_is_told_while_planning(tmp_path: Path) -> None:
    project = (
        "project: acme\ntargets:\n"
        "  - {name: p, cloud: aws, quotas: [{instance_types: ['*'], max_nodes: 2}]}\n"
        "  - {name: p, cloud: gcp, quotas: [{instance_types: ['*'], max_nodes: 2}]}\n"
    )
    more = "network: {across: tunnel, sync: {size: 1GB, every: 60s}}\n"
    found = planned(tmp_path, more, gpu="A100-80GB:8", nodes=4, project=project).plan
    assert found.choice.parts
    told = [c.text for c in found.choice.caveats if c.code == "SKY-RUN-505"]
    assert any("agent" in text for text in told)


def test_every_code_that_is_told_is_explained() -> None:
    assert {"SKY-REJ-215", "SKY-RUN-508", "SKY-APPLY-327"} <= set(CODES)


CONTROLLED = """
project: acme
agent: {{url: "https://plane.example.com/agent.pyz", sha256: {sha}}}
control_plane: {{url: "https://plane.example.com"{broker}}}
targets:
  - {{name: prod, cloud: aws, account: "123456789012", regions: [us-east-1]{aws}}}
  - {{name: prod, cloud: nebius, project: project-e00x, tenant: tenant-e00x}}
"""
BROKER = ', broker: "https://broker.example.com"'
MINTS = ', broker_role: "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme-broker"'
CHECKPOINTS = "checkpoint: {uri: s3://acme-ckpt/m/, region: us-east-1, size: 20GB, every: 1h}\n"


def controlled(broker: str = "", aws: str = "") -> str:
    return CONTROLLED.format(sha="a" * 64, broker=broker, aws=aws)


def codes(found: Planned) -> set[str]:
    return {c.code for p in found.plan.ranked for c in p.caveats}


def test_a_job_under_the_agent_is_not_bare(tmp_path: Path) -> None:
    assert "SKY-RUN-501" in codes(planned(tmp_path))
    assert "SKY-RUN-501" not in codes(planned(tmp_path, project=controlled(), gpu="H100:8"))


def test_the_broker_reaches_what_nothing_else_does(tmp_path: Path) -> None:
    here = CHECKPOINTS + "constraints: {clouds: [nebius]}\n"
    without = planned(tmp_path, here, project=controlled(), gpu="H100:8").plan
    assert not without.status.applyable
    assert {"SKY-RUN-502"} <= {c.code for p in without.ranked for c in p.caveats}
    found = planned(tmp_path, here, project=controlled(BROKER, MINTS), gpu="H100:8").plan
    assert found.status.applyable
    assert "SKY-RUN-502" not in {c.code for p in found.ranked for c in p.caveats}
    ((path,),) = found.access.values()
    assert path.minted
    nobody = planned(tmp_path, here, project=controlled(BROKER), gpu="H100:8").plan
    assert not nobody.status.applyable, "no target of aws says who mints there"


def test_under_the_agent_a_tag_that_metadata_does_not_take_keeps_a_job_off_aws(tmp_path: Path) -> None:
    tags = "tags: {'a/b': c}\n"
    assert "aws" in clouds(planned(tmp_path, tags, gpu="H100:8"))
    found = planned(tmp_path, tags, project=controlled(), gpu="H100:8")
    assert "aws" not in clouds(found)
    assert "nodes under the agent on aws read their tags" in reasons(found)


def test_what_goes_by_leases_is_not_mounted(tmp_path: Path) -> None:
    """The node would stop at boot: leases are the running job's, and the mount comes before it."""
    data = 'data: [{uri: "s3://acme-ckpt/m/", size: 1GB, region: us-east-1, mount: /data}]\n' + CHECKPOINTS
    here = "constraints: {clouds: [aws]}\n"
    assert clouds(planned(tmp_path, data + here, project=controlled())) == {"aws"}
    assert clouds(planned(tmp_path, data + here, project=controlled(BROKER, MINTS))) == set()
