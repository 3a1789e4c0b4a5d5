"""`skyplan import` and `skyplan plan task.yaml`: files in, job files or reasons out, with the packaged catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.app import inputs, review
from planner.cli.entry import call

SKY = """\
name: train
workdir: .
resources:
  accelerators: {H100:8, A100-80GB:8}
  use_spot: true
envs: {HF_TOKEN: , EPOCHS: "3"}
file_mounts: {/data: s3://acme-corpus/x}
run: torchrun train.py
"""
DSTACK = "type: task\nname: tune\ncommands: [python a.py]\nresources: {gpu: 'A100:80GB:8'}\nspot_policy: auto\n"
SLURM = "#!/bin/bash\n#SBATCH -J sweep\n#SBATCH --gres=gpu:l4:1\n#SBATCH -t 8:00:00\npython a.py\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "task.yaml").write_text(SKY)
    (tmp_path / "tune.dstack.yml").write_text(DSTACK)
    (tmp_path / "sweep.sbatch").write_text(SLURM)

    def call_it(*arguments: str) -> tuple[int, str, str]:
        code = call(list(arguments))
        return code, *capsys.readouterr()

    return call_it


FILES = ("task.yaml", "tune.dstack.yml", "sweep.sbatch")


def test_files_of_three_tools_become_job_files_that_plan(run, tmp_path: Path):
    code, out, err = run("import", *FILES, "--out", "jobs")
    assert (code, out) == (0, "")
    assert "task.yaml:2: left out: workdir" in err
    assert "task.yaml:6: left out: envs.HF_TOKEN" in err
    made = sorted(path.name for path in (tmp_path / "jobs").iterdir())
    assert made == ["sweep.yaml", "train.yaml", "tune.yaml"]
    code, out, err = run("plan", *(f"jobs/{name}" for name in made), "--offline", "--json")
    assert code == 0
    assert {plan["job"]["name"] for plan in json.loads(out)["plans"] if plan["ranked"]} == {"sweep", "train", "tune"}


def test_without_a_folder_the_job_is_printed_and_nothing_written(run, tmp_path: Path):
    before = sorted(tmp_path.iterdir())
    code, out, err = run("import", "task.yaml")
    assert code == 0
    assert out.startswith("# Made of a SkyPilot file by `skyplan import`.")
    assert "hours: 24  # TODO" in out
    assert "not said there: work.hours" in err
    assert sorted(tmp_path.iterdir()) == before


def test_json_has_every_value(run):
    code, out, _ = run("import", "task.yaml", "--json")
    assert code == 0
    (file,) = json.loads(out)["files"]
    (job,) = file["jobs"]
    assert (file["tool"], job["name"], job["written"]) == ("skypilot", "train", None)
    leaves = [leaf for value in job["values"] for leaf in value["leaves"]]
    assert sorted(leaves) == sorted(
        [
            *("name", "workdir", 'resources.accelerators["H100:8"]', 'resources.accelerators["A100-80GB:8"]'),
            *("resources.use_spot", "envs.HF_TOKEN", "envs.EPOCHS", 'file_mounts["/data"]', "run"),
        ]
    )
    assert job["counts"]["left"] == 2
    said = {u["field"] for u in job["not_said"]}
    assert said == {"work.hours", "work.on", "resources.disk", "data[0].size", "data[0].region"}


def test_problems_of_all_files_are_told_at_once_and_nothing_is_written(run, tmp_path: Path):
    (tmp_path / "serve.yaml").write_text("service: {readiness_probe: /}\nresources: {accelerators: L4}\nrun: a\n")
    (tmp_path / "old.yaml").write_text("resources:\n  accelerators: K80:8\nrun: a\n")
    (tmp_path / "notes.yaml").write_text("a: b\n")
    code, out, err = run("import", *FILES, "serve.yaml", "old.yaml", "notes.yaml", "gone.yaml", "--out", "jobs")
    assert (code, out) == (1, "")
    for place in ("serve.yaml:1", "old.yaml:2", "notes.yaml: ", "gone.yaml"):
        assert f"error: {place}" in err
    assert not (tmp_path / "jobs").exists()


def test_a_job_file_that_is_there_is_never_written_over_without_force(run, tmp_path: Path):
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "tune.yaml").write_text("mine\n")
    code, _, err = run("import", *FILES, "--out", "jobs")
    assert code == 1
    assert "jobs/tune.yaml is there already" in err
    assert [path.name for path in (tmp_path / "jobs").iterdir()] == ["tune.yaml"]
    assert (tmp_path / "jobs" / "tune.yaml").read_text() == "mine\n"
    assert run("import", *FILES, "--out", "jobs", "--force")[0] == 0
    assert "A100-80GB" in (tmp_path / "jobs" / "tune.yaml").read_text()


def test_two_files_with_one_job_name_are_refused(run, tmp_path: Path):
    (tmp_path / "again.yaml").write_text(SKY)
    code, _, err = run("import", "task.yaml", "again.yaml", "--out", "jobs")
    assert code == 1
    assert "job `train` comes of task.yaml too" in err


def test_a_job_file_of_ours_needs_no_import(run, tmp_path: Path):
    assert run("import", "task.yaml", "--out", "jobs")[0] == 0
    code, _, err = run("import", "jobs/train.yaml")
    assert code == 1
    assert "needs no import" in err


def test_whose_it_is_may_be_said(run):
    code, _, err = run("import", "task.yaml", "--from", "skyplan")
    assert code == 1
    assert "task.yaml: a skyplan job file needs no import" in err
    code, _, err = run("import", "tune.dstack.yml", "--from", "skypilot")
    assert code == 1
    assert "`type` is no field of SkyPilot" in err


def test_a_file_that_may_be_of_two_tools_says_whose_it_was_taken_for(run, tmp_path: Path):
    (tmp_path / "bare.yaml").write_text("resources: {accelerators: L4:1}\nrun: a\n")
    code, out, err = run("import", "bare.yaml", "--json")
    assert code == 0
    assert [d["code"] for d in json.loads(out)["diagnostics"]] == ["SKY-SPEC-130"]
    assert "bare.yaml:1: it is taken for a SkyPilot task" in err
    assert "taken for" not in run("import", "bare.yaml", "--from", "skypilot")[2]


def test_a_file_that_is_no_yaml_is_told_at_its_line(run, tmp_path: Path):
    (tmp_path / "odd.yaml").write_text("name: a\nrun: b\n\n4\n")
    code, _, err = run("import", "odd.yaml")
    assert code == 1
    assert "error: odd.yaml:" in err
    assert "this is no SkyPilot task" not in err


@pytest.mark.parametrize("wrong", [("--hours", "soon"), ("--env", "A"), ("--data-size", "big"), ("--from", "pbs")])
def test_wrong_options(run, wrong: tuple[str, str]):
    code, _, err = run("import", "task.yaml", *wrong)
    assert code == 1
    assert wrong[0] in err


def test_a_model_that_is_none_is_told(run):
    code, _, err = run("import", "task.yaml", "--work-model", "X100:8")
    assert code == 1
    assert "X100" in err


def test_a_skypilot_file_is_planned_as_it_is(run):
    code, out, err = run("plan", "task.yaml", "tune.dstack.yml", "--offline")
    assert code == 0
    assert "train" in out
    assert "24 hours are assumed" in err
    assert "task.yaml:2: `workdir` is not carried over" in err


def test_a_plan_of_a_skypilot_file_is_as_old_as_that_file(run, tmp_path: Path):
    """What apply and audit compare a plan with is read as planning read it."""
    assert run("plan", "task.yaml", "--offline", "--out", "plans")[0] == 0
    assert "task.yaml" not in run("audit", "--fail-on", "none")[2]
    plan, setting = inputs.read_plan(tmp_path / "plans" / "train.plan.json"), review.setting(None, None)
    assert review._job_digest(plan, setting) == plan.inputs["job"]["digest"]
    (tmp_path / "task.yaml").write_text(SKY.replace("train.py", "other.py"))
    assert review._job_digest(plan, setting) != plan.inputs["job"]["digest"]
    assert "older than task.yaml" in run("audit", "--fail-on", "none")[2]


def test_a_skypilot_file_that_cannot_be_planned_says_why_at_its_line(run, tmp_path: Path):
    (tmp_path / "task.yaml").write_text(SKY.replace("H100:8, A100-80GB:8", "tpu-v4-8"))
    code, out, err = run("plan", "task.yaml", "--offline")
    assert (code, out) == (1, "")
    assert "task.yaml:4: `tpu-v4-8` is a TPU: skyplan plans for GPUs only" in err


def test_json_of_a_failure_names_every_problem(run, tmp_path: Path):
    (tmp_path / "task.yaml").write_text(SKY + "service: {a: b}\nnum_nodes: x\n")
    code, out, _ = run("import", "task.yaml", "tune.dstack.yml", "gone.yaml", "--json", "--out", "jobs")
    assert code == 1
    found = {(d["file"], d["line"], d["code"]) for d in json.loads(out)["diagnostics"]}
    assert ("task.yaml", 9, "SKY-SPEC-105") in found
    assert any(file == "gone.yaml" and code == "SKY-SPEC-101" for file, _, code in found)
    assert not (tmp_path / "jobs").exists()
