"""The command line as a person and a pipeline see it: exit codes, streams, whole files or none, no traceback ever."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def skyplan(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run(
        [*RUN, *arguments], cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def test_data_on_stdout_everything_else_on_stderr(repo: Path) -> None:
    done = skyplan(repo, "plan", "job.yaml", "--json")
    body = json.loads(done.stdout)
    assert (done.returncode, body["format_version"], len(body["plans"])) == (0, "1.1", 1)
    assert "SKY-CAT-109" in done.stderr


def test_detailed_exitcode_tells_new_same_and_changed(repo: Path) -> None:
    assert skyplan(repo, "plan", "job.yaml", "--detailed-exitcode").returncode == 2
    assert skyplan(repo, "plan", "job.yaml", "--out", "plans", "--detailed-exitcode").returncode == 2
    same = skyplan(repo, "plan", "job.yaml", "--detailed-exitcode")
    assert (same.returncode, "(keep)" in same.stdout) == (0, True)
    (repo / "job.yaml").write_text(JOB.replace("train.py", "other.py"))
    changed = skyplan(repo, "plan", "job.yaml", "--detailed-exitcode")
    assert (changed.returncode, "(change)" in changed.stdout) == (2, True)
    assert skyplan(repo, "plan", "job.yaml").returncode == 0


def test_a_change_of_price_alone_is_no_change(repo: Path) -> None:
    skyplan(repo, "plan", "job.yaml", "--out", "plans")
    before = json.loads((repo / "plans" / "train.plan.json").read_text())
    shutil.copytree(ROOT / "catalog" / "data", repo / "market")
    prices = repo / "market" / "prices.csv"
    best = before["ranked"][0]
    lines = prices.read_text().splitlines()
    at = next(
        k for k, line in enumerate(lines) if f",{best['zone']},{best['instance_type']},{best['capacity']}," in line
    )
    cells = lines[at].split(",")
    cells[5] = str(float(cells[5]) * 0.9)
    lines[at] = ",".join(cells)
    prices.write_text("\n".join(lines) + "\n")
    done = skyplan(repo, "plan", "job.yaml", "--catalog", "market", "--detailed-exitcode", "--json")
    after = json.loads(done.stdout)["plans"][0]
    assert done.returncode == 0
    assert after["digest"] != before["digest"]
    assert after["choice"]["placement_id"] == before["choice"]["placement_id"]


def test_the_same_inputs_give_the_same_bytes(repo: Path) -> None:
    worlds = [
        {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C"},
        {"PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu", "LC_ALL": "C.UTF-8"},
    ]
    out = []
    for k, world in enumerate(worlds):
        folder = repo / f"place-{k}" / ("deep" * k or "x")
        folder.mkdir(parents=True)
        shutil.copy(repo / "job.yaml", folder)
        assert skyplan(folder, "plan", "job.yaml", "--out", "plans", **world).returncode == 0
        out.append((folder / "plans" / "train.plan.json").read_bytes())
    assert out[0] == out[1]
    assert str(repo).encode() not in out[0]


def test_the_order_of_jobs_changes_nothing(repo: Path) -> None:
    (repo / "b.yaml").write_text(JOB.replace("name: train", "name: alpha"))
    one, other = (
        skyplan(repo, "plan", *order, "--json").stdout for order in (("job.yaml", "b.yaml"), ("b.yaml", "job.yaml"))
    )
    assert one == other


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "SKY-SPEC-1"),
        (b"\xff\xfe\x00binary", "SKY-SPEC-101"),
        (b"name: [", "SKY-SPEC-101"),
        (b"just words", "SKY-SPEC-1"),
        (b"- a\n- list\n", "SKY-SPEC-1"),
        (b"name: x\nresources: {accelerators: 'A100-8:8'}\nwork: {hours: 1, on: 'H100:8'}\nrun: x\n", "SKY-SPEC-106"),
    ],
)
def test_bad_files_are_told_with_place_and_nothing_is_written(repo: Path, content: bytes, code: str) -> None:
    (repo / "bad.yaml").write_bytes(content)
    done = skyplan(repo, "plan", "bad.yaml", "job.yaml", "--out", "plans", "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)["diagnostics"]
    assert any(d["code"].startswith(code) and d["file"] == "bad.yaml" for d in found)
    assert code in done.stderr
    assert not (repo / "plans").exists()


def test_every_mistake_of_a_file_at_once(repo: Path) -> None:
    (repo / "bad.yaml").write_text(
        "name: Bad_Name\nresources: {acelerators: 'H100:8', nodes: 0}\nwork: {hours: -1}\nrunn: x\ndata: [{uri: ftp://x, size: 5}]\n"
    )
    done = skyplan(repo, "plan", "bad.yaml")
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: bad.yaml:")]
    assert len(lines) >= 6
    assert "accelerators" in done.stderr  # the near miss


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "nowhere.yaml"],
        ["plan", "."],
        ["plan"],
        ["plam", "job.yaml"],
        ["plan", "job.yaml", "--as-of", "soon"],
        ["explain", "SKY-NO-1"],
        ["offers"],
        ["offers", "X900:8"],
        ["apply", "nowhere.plan.json"],
        ["apply", "job.yaml.plan.json"],
        ["catalog", "show", "p9"],
        ["synth"],
        ["destroy", "nobody", "--auto-approve"],
    ],
)
def test_wrong_words_exit_1_and_say_why(repo: Path, arguments: list[str]) -> None:
    done = skyplan(repo, *arguments)
    assert done.returncode == 1
    assert done.stderr.strip()


def test_jobs_that_nobody_knows_are_told_before_anybody_is_asked(repo: Path) -> None:
    done = skyplan(repo, "destroy", "nobody", "noone")
    assert done.returncode == 1
    assert done.stderr.count("SKY-APPLY-323") == 2
    assert "approval" not in done.stderr


def test_a_mistyped_command_names_its_near_miss(repo: Path) -> None:
    assert "did you mean `plan`" in skyplan(repo, "plam").stderr


def test_no_feasible_placement_exits_1_and_counts_reasons(repo: Path) -> None:
    (repo / "job.yaml").write_text(JOB + "constraints: {max_usd_total: 1}\n")
    done = skyplan(repo, "plan", "job.yaml", "--out", "plans")
    assert done.returncode == 1
    assert "SKY-REJ-208" in done.stdout
    assert not list((repo / "plans").glob("*.json")) if (repo / "plans").exists() else True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, False),
    ],
)
def test_colour_only_where_it_is_wanted(repo: Path, environment: dict[str, str], coloured: bool) -> None:
    assert ("\033[" in skyplan(repo, "plan", "job.yaml", **environment).stdout) == coloured


def test_a_reader_that_goes_away_is_no_error(repo: Path) -> None:
    command = " ".join(f"'{part}'" for part in [*RUN, "plan", "job.yaml", "--json"]) + " | head -c 10"
    done = subprocess.run(["bash", "-c", command], cwd=repo, capture_output=True, text=True, timeout=60, check=False)
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_an_edited_plan_file_is_refused(repo: Path) -> None:
    skyplan(repo, "plan", "job.yaml", "--out", "plans")
    path = repo / "plans" / "train.plan.json"
    path.write_text(path.read_text().replace('"nodes": 1', '"nodes": 2'))
    done = skyplan(repo, "synth", "plans/train.plan.json")
    assert done.returncode == 1
    assert "SKY-APPLY-301" in done.stderr


def test_explain_answers_why_and_why_not(repo: Path) -> None:
    assert "below the need" in skyplan(repo, "explain", "sky-rej-205").stdout
    rule = skyplan(repo, "explain", "sky-iam-216").stdout
    assert rule.startswith("SKY-IAM-216 (critical): ")
    assert all(f"\n{word}: " in rule for word in ("why", "fix", "elsewhere"))
    assert {"level", "why", "fix", "maps"} <= set(json.loads(skyplan(repo, "explain", "SKY-IAM-216", "--json").stdout))
    why_not = skyplan(repo, "explain", "job.yaml", "p4d.24xlarge", "--json")
    offers = json.loads(why_not.stdout)["jobs"][0]["offers"]
    assert all("SKY-REJ-202" in {r["code"] for r in o["rejections"]} for o in offers)
    best = json.loads(skyplan(repo, "explain", "job.yaml", "--json").stdout)["jobs"][0]["offers"][0]
    assert (best["rank"], best["rejections"]) == (0, [])
    assert skyplan(repo, "explain", "job.yaml", "no-such-thing").returncode == 1


def test_offers_lists_the_market(repo: Path) -> None:
    found = json.loads(skyplan(repo, "offers", "H100:8", "--capacity", "spot", "--cloud", "gcp", "--json").stdout)
    assert {(o["cloud"], o["capacity"]) for o in found["offers"]} == {("gcp", "spot")}
    assert {o["gpu"] for o in found["offers"]} == {"H100"}


def test_catalog_check_and_show(repo: Path) -> None:
    report = json.loads(skyplan(repo, "catalog", "check", "--json").stdout)
    assert report["counts"]["SKY-CAT-104"] > 0
    assert skyplan(repo, "catalog", "check", "--fail-on", "finding").returncode == 2
    assert "A100-80GB" in skyplan(repo, "catalog", "show", "p4de.24xlarge").stdout


@pytest.mark.parametrize("which", ["job", "project"])
def test_schema_is_a_json_schema(repo: Path, which: str) -> None:
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(json.loads(skyplan(repo, "schema", which).stdout))


def test_standing_plans_hold_their_pools_so_spreading_works_in_plain_git(repo: Path) -> None:
    pools = []
    for k in range(6):
        (repo / f"j{k}.yaml").write_text(JOB.replace("name: train", f"name: job-{k}"))
        skyplan(repo, "plan", f"j{k}.yaml", "--out", "plans")
        pools.append(json.loads((repo / "plans" / f"job-{k}.plan.json").read_text())["ranked"][0]["pool"])
    together = json.loads(
        skyplan(repo, "plan", *(f"j{k}.yaml" for k in range(6)), "--plans", "elsewhere", "--json").stdout
    )
    assert [p["ranked"][0]["pool"] for p in together["plans"]] == pools
    assert pools.count(pools[0]) == 4


def test_twenty_identical_spot_jobs_cost_within_2_percent_of_the_cheapest_assignment(repo: Path) -> None:
    job = JOB.replace("A100-80GB:8", "H100:8").replace("[spot, on_demand]", "spot")
    (repo / "fleet.yaml").write_text("---".join(job.replace("name: train", f"name: job-{k:02d}") for k in range(20)))
    plans = json.loads(skyplan(repo, "plan", "fleet.yaml", "--json").stdout)["plans"]
    (repo / "one.yaml").write_text(job)
    ranked = json.loads(skyplan(repo, "plan", "one.yaml", "--top", "1000", "--json").stdout)["plans"][0]["ranked"]
    cheapest: dict[str, float] = {}
    for p in ranked:
        cheapest.setdefault(p["pool"], float(p["total_usd"]))
    bound = sum(sorted(usd for usd in cheapest.values() for _ in range(4))[:20])
    assert sum(float(p["ranked"][0]["total_usd"]) for p in plans) <= 1.02 * bound
    pools = [p["ranked"][0]["pool"] for p in plans]
    assert max(pools.count(pool) for pool in pools) <= 4
