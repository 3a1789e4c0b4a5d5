"""The normal form: what plans hold and digests are made of."""

from __future__ import annotations

import json

from planner.model.digest import digest
from planner.model.project import Project
from planner.spec.normal import project_document, workload_document, workload_from_document
from tests.unit.spec.spec_words import JOB, job_of, project_of, with_
from tests.unit.spec.test_project import FULL, PROVIDER

FULL_JOB = with_(
    JOB.replace(
        "capacity: on_demand", "capacity: [spot]\n  cpus: 32+\n  disk: 1TB\n  nodes: 2\n  interconnect_sensitive: true"
    ).replace("A100-80GB:8\n", "[{gpu_memory: 80GiB+, count: 8}, H100:4]\n"),
    "image: {ref: 'ghcr.io/acme/train:1', size: 18GB}",
    "setup: pip install .",
    "workdir: /w",
    "env: {A: '1'}",
    "secrets: {HF: azure-keyvault://v/hf}",
    "registry_auth: aws-secretsmanager://acme/ghcr",
    "data: [{uri: az://acmeml/corpus/a/b, region: eastus, size: 5GB, reads: 2.5, mount: /data/a}, {uri: gs://acme-corpus, size: 1B, copy_to: /scratch/b/}]",
    "checkpoint: {uri: s3://acme-ckpt/x/, region: us-east-1, size: 1GB, every: 20m}",
    "output: {uri: az://acmeml/out, region: eastus, size: 1GB}",
    "constraints: {deadline: 2d, max_usd_per_hour: 1.5, max_usd_total: 100, clouds: [aws], regions: ['us-*'], instance_types: ['p*'], stop_after: 60h}",
    "access: session",
    "tags: {team: llm}",
    "priority: -3",
    "team: vision",
    "anti_affinity: [{group: eval, by: region}, {group: blast}]",
    "gang: {group: sweep, least: 8}",
)


TUNNEL_JOB = with_(
    JOB.replace("  memory: 500GiB+", "  nodes: 2"), "network: {across: tunnel, sync: {size: 2GB, every: 30s}}"
)


def test_a_workload_comes_back_exactly() -> None:
    for text in (JOB, FULL_JOB, TUNNEL_JOB):
        job = job_of(text)
        document = json.loads(json.dumps(workload_document(job)))
        assert workload_from_document(document) == job
        assert workload_document(workload_from_document(document)) == document


def test_defaults_are_left_out_and_units_stand_in_names() -> None:
    assert workload_document(job_of(JOB)) == {
        "name": "llama3-8b-sft",
        "resources": {"accelerators": [{"count": 8, "model": "A100-80GB"}], "min_ram_gib": 500},
        "work": {"hours": 24, "model": "A100-80GB", "count": 8, "nodes": 1},
        "run": "torchrun train.py",
    }


def test_every_way_of_writing_one_job_has_one_digest() -> None:
    other = (
        JOB.replace("500GiB+", "500 GiB")
        .replace("hours: 24", "hours: 1d")
        .replace("A100-80GB:8\n", "{model: a100 80gb, count: 8}\n")
    )
    assert digest(workload_document(job_of(JOB))) == digest(workload_document(job_of(other)))


def test_a_projects_document_is_json_and_tells_projects_apart() -> None:
    full, _ = project_of(FULL)
    document = project_document(full)
    assert json.loads(json.dumps(document)) == document
    assert document["backend"] == {
        "kind": "s3",
        "settings": {"bucket": "acme-tfstate", "region": "us-east-1", "use_lockfile": "true"},
    }
    assert digest(document) != digest(project_document(Project()))
    assert project_document(Project()) == {}
    assert document["federation"][1] == {
        "stores": ["gs://acme-tokens"],
        "from_clouds": ["aws"],
        "settings": {"gcp_provider": PROVIDER},
    }
    assert document["targets"][1]["network_quota"] == {"us-central1": 0, "us-*": 5}


def test_what_a_job_says_of_tunnel_session_folders_and_hard_end_stands_in_its_document() -> None:
    full = workload_document(job_of(FULL_JOB))
    assert (full["session"], full["constraints"]["stop_after_hours"]) == (True, 60)
    assert [(d.get("mount"), d.get("copy_to")) for d in full["data"]] == [("/data/a", None), (None, "/scratch/b")]
    assert "tunnel" not in full
    assert workload_document(job_of(TUNNEL_JOB))["tunnel"] is True
