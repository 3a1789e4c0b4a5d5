"""Nothing is dropped silently: over random files of documented fields, every value is carried, told, or an error, once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.model.project import Project
from planner.spec.foreign import dstack, skypilot, slurm, tool_of
from planner.spec.job import parse_jobs
from tests.unit.spec.foreign.foreign_files import SHELF, WORDS, result_of

WORD = st.sampled_from(
    ["a", "x-1", "train", "${MODEL}", "$GONE", "s3://acme/x", "1.10", "true", "~/x", "é ü", "a: b", "#no"]
)
GPU = st.sampled_from(
    [
        "A100:8",
        "A100-80GB",
        "h100-sxm:8",
        "L4:1",
        "V100-32GB:4",
        "80GB+",
        "24GB+:2",
        "RTX4090",
        "tpu-v4-8",
        "K80:4",
        "T4:0.5",
    ]
)
FIGURE = st.sampled_from(["4", "4+", 8, "64GB", "32+", 1.5, "0.5+", "many"])
SCRIPT = st.sampled_from(
    [
        "python a.py",
        "echo 1\necho $SKYPILOT_NODE_RANK\n",
        "a\n\n\n",
        "  b\n c",
        "x $SKYPILOT_NODE_IPS\n",
        "é \u2028 y",
        "",
        "conda activate x",
    ]
)
PLACE = st.sampled_from(
    [
        "aws",
        "aws/us-east-1",
        "gcp/us-central1",
        "*/us-central1",
        "aws/us-east-1/us-east-1a",
        "k8s/ctx/a",
        "lambda",
        "nebius",
        "aws/*/us-east-1b",
        "aws/mars",
    ]
)


def some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


AXES = {
    "accelerators": st.one_of(
        GPU,
        st.lists(GPU, min_size=1, max_size=3, unique=True),
        st.dictionaries(st.sampled_from(["A100", "L4", "H100", "K80"]), st.integers(1, 8), min_size=1, max_size=3),
        st.dictionaries(GPU, st.none(), min_size=1, max_size=3),
    ),
    "infra": PLACE,
    "cloud": st.sampled_from(["aws", "GCP", "azure", "runpod", None]),
    "region": st.sampled_from(["us-east-1", "us-central1", "eastus", "nowhere"]),
    "zone": st.sampled_from(["us-east-1a", "us-central1-b", "x"]),
    "cpus": FIGURE,
    "memory": st.one_of(FIGURE, st.just("4x")),
    "use_spot": st.sampled_from([True, False, None]),
    "disk_size": FIGURE,
    "instance_type": st.sampled_from(["p5.48xlarge", "g6.xlarge", "m5.large"]),
}
PLAIN = {
    "disk_tier": st.sampled_from(["best", "low"]),
    "network_tier": st.sampled_from(["best", "standard"]),
    "ports": st.one_of(st.just(8080), st.lists(st.sampled_from([80, "1-9"]), max_size=2)),
    "image_id": st.sampled_from(["docker:a/b:1", "ami-1", "docker:$MODEL", "docker:$GONE", None]),
    "labels": st.dictionaries(st.sampled_from(["team", "aws:x", "ü"]), WORD, max_size=2),
    "job_recovery": st.sampled_from(["FAILOVER", {"strategy": "FAILOVER", "max_restarts_on_errors": 3}]),
    "autostop": st.sampled_from([5, True, {"idle_minutes": 5, "down": True}]),
    "max_hourly_cost": st.sampled_from([10, 2.5]),
    "priority": st.sampled_from([5, -3]),
}
MOUNT = st.one_of(
    st.sampled_from(
        ["s3://acme-x/y", "./local", "gs://acme-z", "r2://q", "$GONE", "https://acme.blob.core.windows.net/data/x"]
    ),
    some(
        {
            "name": st.sampled_from(["acme-b", "${MODEL}", "$GONE", "B_"]),
            "source": st.one_of(st.sampled_from(["s3://acme-x", "./l", "hf://x"]), st.just(["./a", "./b"])),
            "store": st.sampled_from(["s3", "gcs", "azure", "r2", "volume"]),
            "mode": st.sampled_from(["MOUNT", "COPY", "MOUNT_CACHED"]),
            "persistent": st.booleans(),
            "config": st.just({"disk_size": 10}),
        }
    ),
)
SKY = some(
    {
        "name": st.sampled_from(["a", "My Job", "llama-3", "1", None]),
        "num_nodes": st.sampled_from([1, 2, 4]),
        "workdir": st.sampled_from([".", {"url": "https://example.com/x.git", "ref": "main"}]),
        "envs": st.dictionaries(
            st.sampled_from(["MODEL", "HF_TOKEN", "N", "UID", "A_B"]),
            st.one_of(WORD, st.none(), st.integers(0, 9)),
            max_size=4,
        ),
        "secrets": st.one_of(st.just({"HF_TOKEN": None, "K": "v"}), st.just(["a", "b"])),
        "file_mounts": st.dictionaries(
            st.sampled_from(["/data", "/data/in", "~/x", "/etc", "/out/${MODEL}", "/$GONE"]), MOUNT, max_size=4
        ),
        "volumes": st.just({"/mnt": "v"}),
        "inputs": st.just({"s3://acme-x/y": 5}),
        "outputs": st.sampled_from([{"s3://acme-o": 2}, {"x": 1}]),
        "config": st.just({"kubernetes": {"pod_config": {"a": [1, {"b": 2}], "c": {}}}}),
        "experimental": st.just({"config_overrides": {}}),
        "event_callback": st.just("echo"),
        "setup": SCRIPT,
        "run": SCRIPT,
        "resources": some(AXES | PLAIN | {"any_of": st.lists(some(AXES | PLAIN), max_size=3)})
        | some(AXES | PLAIN | {"ordered": st.lists(some(AXES | PLAIN), max_size=3)}),
    }
)
RANGE = st.sampled_from(["4", "4..", "..8", "2..8", 4, {"min": 2}, {"min": 1, "max": 8}, "x"])
SIZE = st.sampled_from(["24GB", "16GB..", "..80GB", "24GB..80GB", {"min": "16GB"}, "500MB", 64])
DSTACK = some(
    {
        "name": st.sampled_from(["a", "my-run", None]),
        "image": st.sampled_from(["a/b:1", "not an image"]),
        "user": WORD,
        "privileged": st.booleans(),
        "working_dir": st.sampled_from(["/work", "sub"]),
        "registry_auth": st.just({"username": "u", "password": "p"}),
        "python": st.sampled_from(["3.11", 3.12]),
        "env": st.one_of(
            st.lists(st.sampled_from(["HF_TOKEN", "A=1", "B=x=y", "C=${{ secrets.c }}"]), unique=True, max_size=3),
            st.dictionaries(st.sampled_from(["A", "B"]), WORD, max_size=2),
        ),
        "shell": st.sampled_from(["bash", "/bin/bash", "sh"]),
        "resources": some(
            {
                "gpu": st.one_of(
                    st.sampled_from(
                        [
                            "A100:80GB:8",
                            "24GB..",
                            "H100:8",
                            "nvidia:1..8",
                            "80GB:8",
                            1,
                            "tpu:v4",
                            "amd",
                            "MI300X:8",
                            "RTX4090",
                            "A100,L4:2",
                            "0",
                        ]
                    ),
                    some(
                        {
                            "vendor": st.sampled_from(["nvidia", "amd"]),
                            "name": st.one_of(st.just("A100"), st.just(["H100", "L4", "X9"])),
                            "memory": SIZE,
                            "count": RANGE,
                            "total_memory": SIZE,
                            "compute_capability": st.just(8.0),
                        }
                    ),
                ),
                "cpu": st.one_of(RANGE, st.just("x86:8.."), st.just({"arch": "x86", "count": "4.."}), st.just("arm:4")),
                "memory": SIZE,
                "disk": st.one_of(SIZE, st.just({"size": "100GB.."})),
                "shm_size": st.just("16GB"),
            }
        ),
        "priority": st.sampled_from([0, 50]),
        "volumes": st.just(["v:/x", {"name": "n", "path": "/y"}]),
        "ports": st.just([8000, "80:80"]),
        "files": st.just([".:x"]),
        "repos": st.just([".."]),
        "commands": st.lists(SCRIPT, max_size=3),
        "nodes": st.sampled_from([1, 2, "0..2", {"min": 1, "target": 3, "max": 4}]),
        "backends": st.lists(st.sampled_from(["aws", "gcp", "runpod"]), max_size=3, unique=True),
        "regions": st.lists(st.sampled_from(["us-east-1", "us-central1", "EU-1"]), max_size=3, unique=True),
        "availability_zones": st.just(["us-east-1a", "x"]),
        "instance_types": st.lists(st.sampled_from(["p5.48xlarge", "x"]), max_size=2, unique=True),
        "spot_policy": st.sampled_from(["spot", "auto", "on-demand"]),
        "max_price": st.sampled_from([1.5, 3]),
        "max_duration": st.sampled_from(["2h", 3600, "off", True, "1d"]),
        "retry": st.sampled_from([True, {"on_events": ["error"], "duration": "1h"}]),
        "utilization_policy": st.just({"min_gpu_utilization": 10, "time_window": "1h"}),
        "tags": st.just({"team": "x"}),
        "schedule": st.just({"cron": "0 * * * *"}),
        "placement": st.just("cluster"),
    }
)


def leaves(value: Any) -> int:
    if isinstance(value, dict) and value:
        return sum(map(leaves, value.values()))
    if isinstance(value, list) and value:
        return sum(map(leaves, value))
    return 1


def check(document: dict[str, Any], tool: str) -> None:
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    result = result_of(text, tool)
    assert result.failed == (not result.jobs)
    for problem in result.problems:
        assert problem.location is not None
        assert problem.location.line >= 1
    for job in result.jobs:
        found = Counter(leaf for entry in job.entries for leaf in entry.leaves)
        assert set(found.values()) <= {1}
        assert sum(found.values()) == leaves(document), sorted(found)
        assert all(entry.why for entry in job.entries if entry.outcome.value != "carried")
        again, problems = parse_jobs(job.written.text, "x.yaml", WORDS, Project())
        assert not [p for p in problems if p.severity.value == "error"]
        assert again == (job.workload,)
        assert tool_of(job.written.text, "x.yaml") is None
        if tool == "skypilot":
            assert job.workload.run.endswith(document["run"])
            assert (job.workload.setup or "").endswith(document.get("setup") or "")


SLOW = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(SKY)
@SLOW
def test_every_value_of_a_skypilot_task_is_accounted_for(document: dict[str, Any]):
    if document:
        check(document, "skypilot")


@given(
    SKY.flatmap(
        lambda d: st.just(
            d | {"run": "python a.py", "resources": {"accelerators": "L4:1"} | (d.get("resources") or {})}
        )
    )
)
@SLOW
def test_of_one_that_asks_for_gpus_and_runs_something(document: dict[str, Any]):
    check(document, "skypilot")


@given(DSTACK)
@SLOW
def test_every_value_of_a_dstack_configuration_is_accounted_for(document: dict[str, Any]):
    check({"type": "task"} | document, "dstack")


@given(
    DSTACK.flatmap(
        lambda d: st.just(d | {"commands": ["a"], "resources": (d.get("resources") or {}) | {"gpu": "L4:1"}})
    ),
    st.sampled_from(["task", "fleet"]),
)
@SLOW
def test_of_one_that_asks_for_a_gpu(document: dict[str, Any], kind: str):
    check({"type": kind} | document, "dstack")


def test_the_words_of_the_test_are_the_catalogs_kind():
    assert set(SHELF.machines["p5.48xlarge"].gpu.split()) <= set(WORDS.gpus)


ANY = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 9),
        st.sampled_from(["", "x", "A100:8", "s3://acme-x", "1..", ":", "..", "\0", "a" * 70]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["name", "source", "count", "min", "/x", "a.b", "é", "<<", "accelerators"]),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)


def nonsense(fields: tuple[str, ...]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(fields), ANY, min_size=1, max_size=5)


@given(nonsense(skypilot.FIELDS), nonsense((*AXES, *PLAIN, "any_of", "ordered")))
@SLOW
def test_nonsense_of_a_skypilot_task_ends_in_words(document: dict[str, Any], resources: dict[str, Any]):
    safe(document, "skypilot")
    safe({"run": "a"} | document | {"resources": {"accelerators": "L4"} | resources}, "skypilot")


@given(
    nonsense(dstack.FIELDS),
    nonsense(("gpu", "cpu", "memory", "disk", "shm_size", "x")),
    st.sampled_from(["task", "fleet", "service"]),
)
@SLOW
def test_nonsense_of_a_dstack_configuration_ends_in_words(
    document: dict[str, Any], resources: dict[str, Any], kind: str
):
    safe(document, "dstack")
    safe({"commands": ["a"], "type": kind} | document | {"resources": {"gpu": "L4"} | resources}, "dstack")


@given(
    st.lists(
        st.tuples(
            st.sampled_from([f"--{option}" for option in slurm.FIELDS] + ["-N", "-t", "-c"]),
            st.sampled_from(["", "=", "=1", " 2", "=gpu:l4:2", "=1:2:3:4", "='", "=ALL,A=b"]),
        ),
        max_size=8,
    )
)
@SLOW
def test_nonsense_of_a_batch_script_ends_in_words(options: list[tuple[str, str]]):
    text = "#!/bin/bash\n#SBATCH --gres=gpu:l4:1\n" + "".join(f"#SBATCH {a}{b}\n" for a, b in options) + "a\n"
    result = result_of(text, "slurm")
    assert result.failed == (not result.jobs)
    for job in result.jobs:
        found = Counter(leaf for entry in job.entries for leaf in entry.leaves)
        assert set(found.values()) == {1}


def safe(document: dict[str, Any], tool: str) -> None:
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    result = result_of(text, tool)
    assert result.failed == (not result.jobs)
    for job in result.jobs:
        assert sum(len(entry.leaves) for entry in job.entries) == leaves(document)
