"""dstack configurations: a table over the documented fields."""

from __future__ import annotations

import pytest

from tests.unit.spec.foreign.foreign_files import accelerators, became, error_of, one, unsaid, why


def task(more: str = "", gpu: str = "H100:8") -> str:
    return f"type: task\nname: t1\ncommands: [python a.py]\nresources:\n  gpu: {gpu}\n{more}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("H100:8", ["H100:8"]),
        ("H100", ["H100:1"]),
        ("h100:1", ["H100:1"]),
        ("A100:80GB:8", ["A100-80GB:8"]),
        ("A100:8", ["A100-80GB:8", "A100:8"]),
        ("A100:40GB", ["A100:1"]),
        ("8:A100:80GB", ["A100-80GB:8"]),
        ("nvidia:8:80GB", ["A100-80GB:8", "H100:8"]),
        ("L4,A10G:1", ["A10G:1", "L4:1"]),
        ("24GB", ["A10G:1", "L4:1"]),
        ("'24GB..48GB'", ["A10G:1", "L40S:1", "L4:1", "V100-32GB:1"]),
        ("L4:1..4", ["L4:1", "L4:4"]),
        ("MI300X:8", ["MI300X:8"]),
        ("amd:192GB:8", ["MI300X:8"]),
        ("{name: [A100, RTX4090], memory: 80GB, count: 8}", ["A100-80GB:8"]),
        ("{name: 'A100,H100', count: {min: 8}}", ["A100-80GB:8", "A100:8", "H100:8"]),
        ("{name: L4, total_memory: 96GB.., count: 1..8}", ["L4:4"]),
        ("{vendor: nvidia, memory: {min: 100GB}, count: 1}", ["H200:1"]),
    ],
)
def test_gpus_in_every_form(written: str, meant: list[str]):
    assert accelerators(one(task(gpu=written))) == meant


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("RTX4090", "`RTX4090` is sold by none"),
        ("tpu:v5litepod-8", "asks for TPUs"),
        ("v5litepod-8", "is a TPU"),
        ("{vendor: intel}", "Gaudi"),
        ("A100:24GB", "no GPU of the catalog has"),
        ("A100:x9:8", "says one thing twice"),
        ("8..2", "end lies before its start"),
        ("'..'", "empty range"),
        ("{nmae: A100}", "not known: `nmae`"),
        ("500GB", "no GPU of the catalog"),
        ("0", "asks for no GPU"),
    ],
)
def test_gpus_that_cannot_be_meant(written: str, says: str):
    line, text = error_of(task(gpu=written))
    assert line == 5
    assert says in text


def test_memory_is_never_lowered():
    assert "A100:1" not in accelerators(one(task(gpu="'48GB..'")))


def test_figures_limits_and_places():
    job = one(
        task(
            "  cpu: 8..\n  memory: 64GB..128GB\n  disk: {size: 500GB..}\n  shm_size: 16GB\nnodes: 2\nspot_policy: auto\n"
            "max_price: 12.5\nmax_duration: 1d\nbackends: [aws, gcp, runpod]\nregions: [us-east-1, EU-RO-1]\n"
            "instance_types: [p5.48xlarge]\npriority: 50\ntags: {team: x}\nworking_dir: /work\nimage: acme/train:1\n"
        )
    )
    work, limits = job.workload, job.workload.constraints
    assert (work.resources.min_vcpus, work.resources.min_ram_gib, work.resources.disk_bytes) == (8, 64, 500 << 30)
    assert work.resources.capacity == ("on_demand", "spot")
    assert (limits.max_usd_per_hour, limits.stop_after_hours) == (25, 24)
    assert (limits.clouds, limits.regions, limits.instance_types) == (("aws", "gcp"), ("us-east-1",), ("p5.48xlarge",))
    assert (work.priority, work.tags, work.workdir) == (50, (("team", "x"),), "/work")
    assert work.work.hours == 12
    assert became(job, "backends[2]")[0] == "left"
    assert became(job, "resources.memory")[0] == "changed"
    assert {"work.hours", "resources.interconnect_sensitive"} <= unsaid(job)


def test_a_long_limit_does_not_make_the_work_long():
    assert one(task("max_duration: 30d\n")).workload.work.hours == 24


@pytest.mark.parametrize("off", ["off", "false", "true"])
def test_no_limit(off: str):
    assert one(task(f"max_duration: {off}\n")).workload.constraints.stop_after_hours is None


def test_zones_become_regions():
    job = one(task("availability_zones: [us-east-1a, us-east-1b]\n"))
    assert job.workload.constraints.regions == ("us-east-1",)


def test_environment_as_list_and_as_mapping():
    job = one(task("env:\n  - A=x=y\n  - HF_TOKEN\n  - B=${{ secrets.b }}\n"))
    assert dict(job.workload.env) == {"A": "x=y"}
    assert became(job, "env[1]")[0] == "left"
    assert became(job, "env[2]")[0] == "left"
    assert dict(one(task("env: {A: 1, B: two}\n")).workload.env) == {"A": "1", "B": "two"}


def test_commands_end_at_the_first_that_fails_and_know_their_place():
    text = "type: task\nnodes: 2\nimage: a/b:1\ncommands:\n  - server &\n  - |\n    if true; then\n      echo $DSTACK_NODE_RANK $DSTACK_GPUS_NUM\n    fi\n  - cat $DSTACK_MPI_HOSTFILE\nresources: {gpu: 'L4:4'}\n"
    job = one(text)
    assert job.workload.run.endswith(
        "{ server & } &&\nif true; then\n  echo $DSTACK_NODE_RANK $DSTACK_GPUS_NUM\nfi &&\ncat $DSTACK_MPI_HOSTFILE"
    )
    assert "export DSTACK_GPUS_NUM=8\n" in job.workload.run
    assert "DSTACK_MPI_HOSTFILE" in why(job, "commands[2]")


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("name: x\ntype: service\nport: 8000\ncommands: [a]\n", 2, "a service"),
        ("type: dev-environment\nide: vscode\n", 1, "a dev environment"),
        ("type: volume\nname: v\n", 1, "a volume"),
        ("type: gateway\n", 1, "a gateway"),
        ("type: task\ncommands: [a]\n", 1, "asks for no GPU"),
        ("type: task\nimage: a/b:1\nresources: {gpu: L4}\n", 1, "has no `commands`"),
        ("type: fleet\nssh_config: {hosts: [a]}\n", 2, "hosts you have"),
        ("type: task\ncommands: [a]\nresources: {gpu: L4}\nreplicas: 2\n", 4, "`replicas` is no field of dstack"),
        ("type: task\ncommands: [a]\nresources: {gpu: L4, gpus: 2}\n", 3, "`resources.gpus` is no field"),
        (
            "type: task\ncommands: [a]\nresources: {gpu: L4}\nbackends: [runpod]\n",
            4,
            "names no cloud that skyplan knows",
        ),
        ("type: task\ncommands: [a]\nresources: {gpu: L4}\nspot_policy: maybe\n", 4, "`maybe` is not known"),
    ],
)
def test_what_is_no_job(text: str, line: int, says: str):
    found, told = error_of(text)
    assert found == line
    assert says in told


def test_a_fleet_brings_its_resources_and_runs_nothing():
    job = one("type: fleet\nname: my-fleet\nnodes: 0..2\nplacement: cluster\nresources: {gpu: 'H100:8'}\n")
    assert job.workload.resources.nodes == 2
    assert job.workload.resources.interconnect_sensitive
    assert "exit 1" in job.workload.run
    assert "run" in unsaid(job)


def test_credentials_are_not_shown():
    job = one(task("registry_auth: {username: u, password: hunter2}\n"))
    assert "hunter2" not in job.written.text
    assert became(job, "registry_auth.password")[0] == "left"


def test_hours_are_counted_on_a_usual_card_where_many_are_admitted():
    job = one(task(gpu="'24GB..80GB'"))
    assert job.workload.work.model == "L4"
    assert "work.on" in unsaid(job)
    assert "work.on" not in unsaid(one(task(gpu="L4:1")))
