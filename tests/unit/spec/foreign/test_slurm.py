"""Slurm batch scripts: a table over the options of sbatch."""

from __future__ import annotations

import pytest

from tests.unit.spec.foreign.foreign_files import accelerators, became, error_of, one, result_of, unsaid, why


def script(*options: str, body: str = "python a.py\n") -> str:
    return "#!/bin/bash\n" + "".join(f"#SBATCH {option}\n" for option in options) + "\n" + body


@pytest.mark.parametrize(
    ("options", "meant", "nodes"),
    [
        (["--gres=gpu:a100:4"], ["A100:4"], 1),
        (["--gres", "gpu:l4:4"], None, 1),
        (["--gres=gpu:H100:8", "-N 2"], ["H100:8"], 2),
        (["--gpus-per-node=h100:8", "--nodes=4"], ["H100:8"], 4),
        (["-G h100:16", "-N2"], ["H100:8"], 2),
        (["--gpus=l4:1"], ["L4:1"], 1),
        (["--gpus-per-task=l4:1", "-N 2", "-n 8"], ["L4:4"], 2),
        (["--gpus-per-task=l4:1", "--ntasks-per-node=4"], ["L4:4"], 1),
        (["--gres=gpu:2"], [">=16GiB:2"], 1),
        (["--gres=gpu"], [">=16GiB:1"], 1),
        (["--gres=gpu:l4:1,tmpdisk:100"], ["L4:1"], 1),
    ],
)
def test_gpus(options: list[str], meant: list[str] | None, nodes: int):
    if meant is None:
        options, meant = [" ".join(options)], ["L4:4"]
    job = one(script(*options))
    assert accelerators(job) == meant
    assert job.workload.resources.nodes == nodes


def test_a_kind_may_be_said():
    job = one(script("--gres=gpu:4"), gpu="A100-80GB")
    assert accelerators(job) == ["A100-80GB:4"]
    assert "resources.accelerators" not in unsaid(job)


def test_a_cluster_may_mean_the_larger_one():
    assert "the cluster's may be A100-80GB" in why(one(script("--gres=gpu:a100:4")), "gres")


@pytest.mark.parametrize(
    ("time", "hours"),
    [
        ("90", 1.5),
        ("90:30", 5430 / 3600),
        ("02:00:00", 2),
        ("1-0", 24),
        ("1-12:30", 36.5),
        ("2-00:00:30", 48 + 30 / 3600),
    ],
)
def test_times_in_all_forms(time: str, hours: float):
    job = one(script("--gres=gpu:l4:1", f"-t {time}"))
    assert job.workload.constraints.stop_after_hours == pytest.approx(hours)
    assert job.workload.work.hours == pytest.approx(min(hours / 2, 24), abs=1e-4)


def test_sizes_per_task_cpu_and_gpu_become_sizes_per_node():
    job = one(script("--gres=gpu:l4:4", "--ntasks-per-node=4", "-c 8", "--mem-per-cpu=4G"))
    assert (job.workload.resources.min_vcpus, job.workload.resources.min_ram_gib) == (32, 128)
    assert one(script("--gres=gpu:l4:4", "--mem-per-gpu=32G")).workload.resources.min_ram_gib == 128
    assert one(script("--gres=gpu:l4:4", "--mem=2048")).workload.resources.min_ram_gib == 2
    assert one(script("--gres=gpu:l4:4", "--mem=0")).workload.resources.min_ram_gib is None


def test_the_name_and_what_only_a_cluster_has():
    job = one(
        script(
            "-J 'My Job'",
            "-p gpu",
            "-A acct",
            "--gres=gpu:l4:1",
            "-o %j.out",
            "--requeue",
            "--signal=B:USR1@120",
            "--exclusive",
        )
    )
    assert job.name == "my-job"
    assert {became(job, key)[0] for key in ("partition", "account", "output", "requeue", "signal", "exclusive")} == {
        "left"
    }
    assert became(job, "partition")[1] == 3


def test_exported_variables():
    job = one(script("--gres=gpu:l4:1", "--export=ALL,MODE=offline,HOME"))
    assert dict(job.workload.env) == {"MODE": "offline"}
    assert "HOME" in why(job, "export")


def test_the_body_is_carried_with_what_needs_slurm_told_by_line():
    job = one(
        script(
            "--gres=gpu:l4:1",
            "-N 2",
            body="module load cuda\n\nsrun --ntasks=2 python a.py $SLURM_NNODES $SLURM_PROCID\n",
        )
    )
    assert job.workload.run.endswith("module load cuda\n\nsrun --ntasks=2 python a.py $SLURM_NNODES $SLURM_PROCID\n")
    assert "export SLURM_NNODES=2" in job.workload.run
    told = {e.at.line: e.why for e in job.entries if e.outcome.value == "note" and "submitted from" not in e.why}
    assert "environment modules" in told[5]
    lines = [e.at.line for e in job.entries if "SLURM_PROCID" in e.why]
    assert lines == [7]
    assert "on the first of 2 nodes" in why(job, "body")


def test_options_slurm_would_not_read_are_told():
    job = one(script("--gres=gpu:l4:1", body="echo a\n#SBATCH --time=10\n"))
    assert job.workload.constraints.stop_after_hours is None
    assert "below the first command" in why(job, "time")
    again = one(script("--gres=gpu:l4:1", "-t 10", "-t 20"))
    assert again.workload.constraints.stop_after_hours == pytest.approx(1 / 3)
    assert "given again in line 4" in why(again, "time")


def test_a_commented_option_is_a_comment():
    assert one("#!/bin/bash\n#SBATCH --gres=gpu:l4:1\n##SBATCH --gres=gpu:8\npython a.py\n").workload.run


@pytest.mark.parametrize(
    ("options", "line", "says"),
    [
        (["--gres=gpu:l4:1", "--array=0-9"], 3, "a job array"),
        (["--gres=gpu:l4:1", "hetjob"], 3, "heterogeneous"),
        (["--gres=gpu:l4:1 : --gres=gpu:h100:8"], 2, "heterogeneous"),
        (["--gres=gpu:rtx8000:1"], 2, "`rtx8000` is sold by none"),
        (["--gres=gpu:l4:1", "--tiem=10"], 3, "--tiem is no option of sbatch that is known | did you mean `time`?"),
        (["--gres=gpu:l4:1", "-t soon"], 3, "is no time"),
        (["--gres=gpu:l4:1", "--mem=lots"], 3, "is no size"),
        (["-N 2", "--gpus=l4:3"], 3, "no number of GPUs of one kind per node"),
        (["-N 2"], 1, "asks for no GPU"),
        (["--gres=gpu:l4:1", "--gpus-per-node=l4:2"], 3, "different numbers"),
    ],
)
def test_what_is_refused(options: list[str], line: int, says: str):
    found, told = error_of(script(*options))
    assert found == line
    assert says in told


def test_a_script_that_runs_nothing_or_is_no_shell_script():
    assert "runs nothing" in error_of(script("--gres=gpu:l4:1", body="# later\n"))[1]
    assert "not for a shell" in error_of("#!/usr/bin/env python3\n#SBATCH --gres=gpu:l4:1\nprint()\n")[1]


def test_every_option_is_accounted_for_once():
    result = result_of(script("--gres=gpu:l4:1", "-c 4", "--mail-type=END", "--qos=high"))
    leaves = [leaf for job in result.jobs for e in job.entries for leaf in e.leaves]
    assert sorted(leaves) == ["body", "cpus-per-task", "gres", "mail-type", "qos"]
