"""What a command does with words, files and places it cannot use: exit 1, a sentence on stderr, no traceback, nothing half written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from planner.cli.entry import COMMANDS

ROOT = Path(__file__).parents[3]
RUN = [sys.executable, "-c", "from planner.cli.entry import run; run()"]
JOB = """
name: train
resources: {accelerators: "A100-80GB:8", capacity: [spot, on_demand]}
work: {hours: 24, on: "A100-80GB:8"}
run: python train.py
checkpoint: {uri: s3://acme-ckpt/x/, region: us-east-1, size: 10GB, every: 30m}
"""


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "job.yaml").write_text(JOB)
    return tmp_path


def run(folder: Path, *arguments: str | bytes, stdout: int | None = None, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr, with this tree's code."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    out = subprocess.PIPE if stdout is None else stdout
    done = subprocess.run(
        [*RUN, *arguments], cwd=folder, env=env, stdout=out, stderr=subprocess.PIPE, timeout=60, check=False
    )
    return done.returncode, (done.stdout or b"").decode(), done.stderr.decode(errors="replace")


def refused(folder: Path, *arguments: str | bytes, **more: str) -> str:
    """What is said where a command must refuse."""
    code, _, said = run(folder, *arguments, **more)
    assert "Traceback" not in said, said
    assert code == 1
    assert "error" in said.lower()
    return said


# words


@pytest.mark.parametrize(
    "when",
    [
        "yesterday",
        "",
        "2026-13-01",
        "2026-02-30",
        "12:00",
        "0001-01-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
        "2026-09-25T10:00:00+99:00",
        "1e9",
    ],
)
def test_a_moment_that_is_none_is_refused(repo: Path, when: str) -> None:
    assert "date" in refused(repo, "plan", "job.yaml", "--as-of", when)


@pytest.mark.parametrize(
    "when", ["2026-09-25", "2026-09-25T12:00:00Z", "2026-09-25T12:00:00", "2026-09-25T14:00+02:00"]
)
def test_moments_are_taken_in_utc(repo: Path, when: str) -> None:
    code, out, _ = run(repo, "plan", "job.yaml", "--json", "--as-of", when, TZ="Asia/Tokyo")
    want = "2026-09-25T00:00:00Z" if len(when) == 10 else "2026-09-25T12:00:00Z"
    assert (code, json.loads(out)["plans"][0]["inputs"]["as_of"]) == (0, want)


@pytest.mark.parametrize(
    ("arguments", "needle"),
    [
        (["plan"], "Missing argument"),
        (["plan", "job.yaml", "--top", "0"], "--top"),
        (["plan", "job.yaml", "--top", "many"], "--top"),
        (["plan", "job.yaml", "--frobnicate"], "--frobnicate"),
        (["pln", "job.yaml"], "did you mean `plan`"),
        (["aply"], "did you mean `apply`"),
        (["zzzzzz"], "no such command"),
        (["explain"], "Missing argument"),
        (["explain", "SKY-REJ-299"], "near: SKY-REJ-2"),
        (["explain", "nowhere.yaml"], "nowhere.yaml"),
        (["explain", "job.yaml", "p99*"], "no offer matches `p99*`"),
        (["offers"], "name accelerators"),
        (["offers", "H100:8", "--job", "job.yaml"], "one of the two"),
        (["offers", "H1OO:8"], "SKY-SPEC-106"),
        (["offers", "H100:0"], "SKY-SPEC-10"),
        (["offers", "A100-8:8"], "SKY-SPEC-106"),
        (["offers", "H100:8", "--cloud", "oracle"], "oracle"),
        (["offers", "H100:8", "--region", "mars-*"], "mars-*"),
        (["offers", "H100:8", "--hours", "0"], "--hours"),
        (["catalog", "show", "p5.48xlrge"], "near: p5.48xlarge"),
        (["catalog", "check", "--code", "SKY-CAT-999"], "SKY-CAT-999"),
        (["catalog", "chek"], "chek"),
        (["schema", "jobs"], "jobs"),
        (["plan", "job.yaml", "--catalog", "nowhere"], "nowhere"),
        (["plan", "job.yaml", "--project", "nowhere.yaml"], "nowhere.yaml"),
        (["synth", "nowhere.plan.json"], "nowhere.plan.json"),
        (["synth", "job.yaml"], "SKY-APPLY-301"),
    ],
)
def test_what_is_wrong_is_named(repo: Path, arguments: list[str], needle: str) -> None:
    assert needle in refused(repo, *arguments)


@pytest.mark.parametrize("command", [*([c] for c in COMMANDS), ["catalog", "check"], ["catalog", "show"], []])
def test_every_command_has_help_with_each_option_explained(repo: Path, command: list[str]) -> None:
    code, out, said = run(repo, *command, "--help")
    assert (code, said) == (0, "")
    assert out.startswith("Usage: skyplan")
    assert run(repo, *command, "-h")[1] == out


@pytest.mark.parametrize("arguments", [["plan"], ["catalog", "check"], ["offers", "H100:8"]])
def test_an_empty_folder_is_no_catalog(repo: Path, arguments: list[str]) -> None:
    (repo / "market").mkdir()
    extra = ["job.yaml"] if arguments == ["plan"] else []
    assert "SKY-CAT-101" in refused(repo, *arguments, *extra, "--catalog", "market")


def test_a_broken_catalog_row_is_told_at_its_line(repo: Path) -> None:
    shutil.copytree(ROOT / "catalog" / "data", repo / "market")
    prices = repo / "market" / "prices.csv"
    prices.write_text(prices.read_text() + "aws,us-east-1\n")
    line = len(prices.read_text().splitlines())
    assert f"prices.csv:{line}" in refused(repo, "plan", "job.yaml", "--catalog", "market")


# files


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"---\n",
        b"\x00\x01\x02",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"a: [\n",
        b"a: b: c\n",
        b"\t- x\n",
        b"&a [*a]\n",
        b"name: x\nname: y\n",
        b"[" * 3000,
        b"name: !!python/object/apply:os.system [ls]\n",
        b"42\n",
        "name: \u202etrain\n".encode(),
    ],
    ids=lambda c: repr(c[:12]),
)
def test_no_job_file_breaks_it(repo: Path, content: bytes) -> None:
    (repo / "bad.yaml").write_bytes(content)
    assert "bad.yaml" in refused(repo, "plan", "bad.yaml", "--out", "plans")
    assert not (repo / "plans").exists()


def test_errors_of_all_files_come_at_once_as_json_and_as_text(repo: Path) -> None:
    (repo / "one.yaml").write_text("name: one\n")
    (repo / "skyplan.yaml").write_text("projct: acme\n")
    code, out, said = run(repo, "plan", "one.yaml", "nowhere.yaml", "job.yaml", "--json")
    found = json.loads(out)
    assert (code, found["format_version"]) == (1, "1.0")
    assert {d["file"] for d in found["diagnostics"]} == {"one.yaml", "nowhere.yaml", "skyplan.yaml"}
    assert set(found["diagnostics"][0]) == {"code", "severity", "summary", "hint", "file", "line", "column"}
    assert all(d["file"] in said and d["code"] in said for d in found["diagnostics"])


def test_a_file_name_that_is_no_utf8_breaks_nothing(repo: Path) -> None:
    name = b"caf\xe9.yaml"
    try:
        shutil.copy(repo / "job.yaml", os.fsdecode(bytes(repo) + b"/" + name))
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    for options in ([], ["--json"], ["--out", "plans"]):
        code, _, said = run(repo, "plan", name, *options)
        assert "Traceback" not in said
        assert code in {0, 1}


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
def test_a_terminal_without_utf8_breaks_nothing(repo: Path, environment: dict[str, str]) -> None:
    for options in ([], ["--json"], ["--explain"]):
        env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        done = subprocess.run(
            [*RUN, "plan", "job.yaml", *options], cwd=repo, env=env, capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr


# standing plans


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "jobs/*.yaml"], "no file matches"),
        (["plan", "nope.yaml"], "which folder you are in"),
        (["plan", "."], "name the files in it, such as ./*.yaml"),
        (["plan", "latin.yaml"], "save it as UTF-8"),
        (["synth", "job.yaml"], "`skyplan plan job.yaml --out plans` writes"),
        (["plan", "skyplan.yaml"], "the project's settings, not a job file"),
        (["report", "skyplan.yaml", "--out", "x.html"], "the project's settings, not a job file"),
        (["plan", "x.plan.json"], "a plan file, not a job file"),
        (["diff", "--base", "HEAD"], "compare two folders of plans"),
    ],
)
def test_a_name_that_is_no_such_file_is_told_with_what_to_give_instead(
    repo: Path, arguments: list[str], says: str
) -> None:
    (repo / "latin.yaml").write_bytes("name: \u00e9\n".encode("latin-1"))
    (repo / "skyplan.yaml").write_text("project: acme\n")
    (repo / "x.plan.json").write_text("{}\n")
    said = refused(repo, *arguments)
    assert says in said
    assert said.count("error: ") == 1


def test_settings_further_up_in_the_repository_are_not_passed_over_without_a_word(repo: Path) -> None:
    (repo / "jobs" / "more").mkdir(parents=True)
    shutil.copy(repo / "job.yaml", repo / "jobs" / "more" / "job.yaml")
    (repo / "skyplan.yaml").write_text("project: acme\n")
    code, _, said = run(repo / "jobs" / "more", "plan", "job.yaml")
    assert code == 0
    assert "../../skyplan.yaml is not read" in said
    assert "--project ../../skyplan.yaml" in said
    for folder, options in ((repo, []), (repo / "jobs" / "more", ["--project", "../../skyplan.yaml"])):
        assert "SKY-SPEC-115" not in run(folder, "plan", "job.yaml", *options)[2]
    (repo / "jobs" / ".git").mkdir()  # another repository's settings are none of its business
    assert "SKY-SPEC-115" not in run(repo / "jobs" / "more", "plan", "job.yaml")[2]


def test_a_job_file_may_have_the_projects_name(repo: Path) -> None:
    (repo / "jobs").mkdir()
    shutil.copy(repo / "job.yaml", repo / "jobs" / "skyplan.yaml")
    assert run(repo, "plan", "jobs/skyplan.yaml")[0] == 0


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format_version": "9.0"}', '{"format_version": "1.0"}'])
def test_a_standing_plan_that_is_none_is_refused(repo: Path, content: str) -> None:
    (repo / "plans").mkdir()
    (repo / "plans" / "other.plan.json").write_text(content)
    assert "other.plan.json" in refused(repo, "plan", "job.yaml")


def test_a_file_where_the_folder_of_plans_should_be_is_refused(repo: Path) -> None:
    """Taking it for an empty folder would lose the ledger without a word."""
    (repo / "held").write_text("")
    assert "held" in refused(repo, "plan", "job.yaml", "--plans", "held")


# places to write to


@pytest.mark.parametrize("out", ["taken", "taken/below", "/dev/null/x"])
def test_a_place_one_cannot_write_to_is_told(repo: Path, out: str) -> None:
    (repo / "taken").write_text("mine")
    refused(repo, "plan", "job.yaml", "--out", out)
    assert (repo / "taken").read_text() == "mine"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_stdout_is_an_error_without_a_traceback(repo: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        code, _, said = run(repo, "plan", "job.yaml", stdout=full.fileno())
    assert "Traceback" not in said
    assert code == 1


def test_plan_files_are_whole_and_nothing_else_is_left(repo: Path) -> None:
    code, _, said = run(repo, "plan", "job.yaml", "--out", "plans")
    assert code == 0
    assert "wrote plans/train.plan.json" in said
    assert [p.name for p in (repo / "plans").iterdir()] == ["train.plan.json"]
    plan = json.loads((repo / "plans" / "train.plan.json").read_text())
    assert json.loads(run(repo, "plan", "job.yaml", "--json")[1])["plans"] == [plan]


def test_without_out_a_plan_writes_nothing_at_all(repo: Path) -> None:
    before = sorted(p.name for p in repo.rglob("*"))
    for options in ([], ["--json"], ["--explain"], ["--detailed-exitcode"]):
        run(repo, "plan", "job.yaml", *options)
    assert sorted(p.name for p in repo.rglob("*")) == before


def test_a_job_without_a_placement_writes_no_plan_and_leaves_the_old_one(repo: Path) -> None:
    run(repo, "plan", "job.yaml", "--out", "plans")
    old = (repo / "plans" / "train.plan.json").read_bytes()
    (repo / "job.yaml").write_text(JOB + "constraints: {max_usd_total: 1}\n")
    code, out, said = run(repo, "plan", "job.yaml", "--out", "plans", "--detailed-exitcode", "--json")
    assert (code, json.loads(out)["plans"][0]["status"]["complete"]) == (1, False)
    assert (
        "no feasible placement for train\n  hint: `skyplan explain JOB.yaml 'p5*'` tells them of each offer that the pattern names\n"
        in said
    )
    assert (repo / "plans" / "train.plan.json").read_bytes() == old
    assert "nothing is feasible\n  hint: add a pattern to see why not" in refused(repo, "explain", "job.yaml")
    assert "SKY-REJ-2" in run(repo, "explain", "job.yaml", "p4de*")[1]


@pytest.mark.parametrize("command", [["plan", "job.yaml"], ["offers", "H100:8"], ["schema"], ["catalog", "check"]])
def test_a_reader_that_leaves_early_is_told_nothing(repo: Path, command: list[str]) -> None:
    script = 'set -o pipefail; "$@" | head -c 1 >/dev/null'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "-c", script, "x", *RUN, *command],
        cwd=repo,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert "roken" not in done.stderr
    assert "Exception ignored" not in done.stderr
