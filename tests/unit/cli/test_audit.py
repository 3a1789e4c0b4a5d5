"""`skyplan audit` as a person and a pipeline see it: exit codes, streams, several outputs at once, no traceback ever."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator, Draft202012Validator

from planner.cli import bar as bars
from planner.cli.entry import call
from planner.clouds import choose
from planner.model.diagnostic import Diagnostic
from planner.model.digest import digest, pretty
from planner.model.errors import CloudError
from planner.model.policy import Audited

ROOT = Path(__file__).parents[3]
RUN = [sys.executable, "-c", "from planner.cli.entry import run; run()"]
SARIF = json.loads((ROOT / "tests" / "schemas" / "sarif-2.1.0.json").read_text())
ADMIN = {"Version": "2012-10-17", "Statement": [{"Sid": "All", "Effect": "Allow", "Action": "*", "Resource": "*"}]}
READS = {
    "Version": "2012-10-17",
    "Statement": [{"Sid": "Zones", "Effect": "Allow", "Action": "ec2:DescribeAvailabilityZones", "Resource": "*"}],
}
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}],
}


def role(policy: dict[str, Any], name: str = "ci") -> dict[str, Any]:
    return {
        "resource": {
            "aws_iam_role": {name: {"name": name, "assume_role_policy": json.dumps(TRUST)}},
            "aws_iam_role_policy": {
                name: {"name": "own", "role": f"${{aws_iam_role.{name}.name}}", "policy": json.dumps(policy)}
            },
        }
    }


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "iam").mkdir()
    (tmp_path / "iam" / "admin.tf.json").write_text(json.dumps(role(ADMIN), indent=2))
    (tmp_path / "clean.tf.json").write_text(json.dumps(role(READS)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


Skyplan = Callable[..., Done]


@pytest.fixture
def skyplan(repo: Path, capsys: pytest.CaptureFixture[str]) -> Skyplan:
    """The command in this process, in `repo`: what is not a SkyplanError leaves as a traceback and fails the test."""

    def run(*arguments: str) -> Done:
        capsys.readouterr()
        code = call(["audit", *arguments])
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


def test_clean_is_0_findings_are_2_and_errors_are_1(repo: Path, skyplan: Skyplan) -> None:
    assert skyplan("clean.tf.json").returncode == 0
    assert skyplan("iam").returncode == 2
    assert skyplan("gone").returncode == 1
    assert skyplan().returncode == 1  # nothing named, and no plans/


@pytest.mark.parametrize(("level", "code"), [("critical", 2), ("info", 2), ("none", 0)])
def test_fail_on_sets_where_findings_begin_to_fail(repo: Path, skyplan: Skyplan, level: str, code: int) -> None:
    assert skyplan("iam", "--fail-on", level).returncode == code


def test_the_table_is_on_stdout_without_colour_and_names_the_rule(
    skyplan: Skyplan, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = skyplan("iam")
    assert "SKY-IAM-216" in done.stdout
    assert "iam/admin.tf.json" in done.stdout
    assert "\x1b" not in done.stdout
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" in skyplan("iam").stdout


def test_several_outputs_at_once_say_the_same(repo: Path, skyplan: Skyplan) -> None:
    names = {"table": "a.txt", "json": "a.json", "sarif": "a.sarif", "markdown": "a.md", "junit": "out/a.xml"}
    given = [word for name, file in names.items() for word in ("--format", name, "--output", file)]
    done = skyplan("iam", *given)
    assert (done.returncode, done.stdout) == (2, "")
    report = json.loads((repo / "a.json").read_text())
    found = len(report["findings"])
    assert found == len(json.loads((repo / "a.sarif").read_text())["runs"][0]["results"]) >= 1
    assert (repo / "a.md").read_text().count("</details>") == found
    assert int(ET.parse(repo / "out" / "a.xml").getroot().get("failures", "0")) >= 1
    assert "SKY-IAM-216" in (repo / "a.txt").read_text()


def test_json_and_sarif_are_valid_by_their_schemas_without_absolute_paths(
    repo: Path, skyplan: Skyplan, capsys: pytest.CaptureFixture[str]
) -> None:
    done = skyplan("iam", "--json", "--format", "sarif", "--output", "a.sarif")
    schema = subprocess.run(
        [*RUN, "schema", "audit"],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=True,
    ).stdout
    Draft202012Validator(json.loads(schema)).validate(json.loads(done.stdout))
    text = (repo / "a.sarif").read_text()
    Draft4Validator(SARIF).validate(json.loads(text))
    assert str(repo) not in text + done.stdout


@pytest.mark.parametrize(
    "given",
    [
        ["--format", "json", "--format", "sarif"],
        ["--output", "x"],
        ["--format", "json", "--output", "x", "--output", "y"],
        ["--format", "json", "--output", "x", "--format", "sarif", "--output", "x"],
        ["--json", "--format", "sarif", "--output", "-"],
        ["--explain", "ci", "--format", "json"],
        ["--explain", "ci", "--base", "HEAD"],
        ["--explain", "ci", "--live"],
        ["--format", "yaml"],
        ["--fail-on", "bad"],
    ],
)
def test_options_that_do_not_pair_are_refused_and_nothing_written(
    repo: Path, skyplan: Skyplan, given: list[str]
) -> None:
    done = skyplan("iam", *given)
    assert (done.returncode, done.stdout) == (1, "")
    assert not (repo / "x").exists()


def test_of_several_files_none_is_written_where_one_cannot_be(repo: Path, skyplan: Skyplan) -> None:
    (repo / "file").write_text("")
    (repo / "old.json").write_text("old")
    done = skyplan("iam", "--format", "sarif", "--output", "a.sarif", "--format", "json", "--output", "old.json",
                   "--format", "junit", "--output", "file/x.xml")  # fmt: skip
    assert done.returncode == 1
    assert "file/x.xml: cannot be written" in done.stderr
    assert (repo / "old.json").read_text() == "old"
    assert sorted(one.name for one in repo.iterdir()) == ["clean.tf.json", "file", "iam", "old.json"]


def test_errors_come_as_json_where_asked_for(repo: Path, skyplan: Skyplan) -> None:
    done = skyplan("gone", "--json")
    assert done.returncode == 1
    assert [d["code"] for d in json.loads(done.stdout)["diagnostics"]] == ["SKY-IAM-902"]


SUPPRESSED = """project: acme
iam:
  suppressions:
    - {rule: SKY-IAM-216, reason: break-glass role (ML-12), expires: %s}
"""


def accept_all(repo: Path, skyplan: Skyplan, expires: str) -> None:
    """The one that is under test, and every other rule that an administrator breaks."""
    rules = {f["rule"] for f in json.loads(skyplan("iam", "--json").stdout)["findings"]} - {"SKY-IAM-216"}
    others = "".join(f"    - {{rule: {r}, reason: the same, expires: 2099-01-01}}\n" for r in sorted(rules))
    (repo / "skyplan.yaml").write_text(SUPPRESSED % expires + others)


def test_what_the_platform_team_accepts_is_shown_and_does_not_count(repo: Path, skyplan: Skyplan) -> None:
    accept_all(repo, skyplan, "2099-01-01")
    done = skyplan("iam")
    assert done.returncode == 0
    assert "accepted: break-glass role (ML-12)" in done.stdout


def test_an_expired_suppression_fails_at_its_line_and_the_report_is_still_written(repo: Path, skyplan: Skyplan) -> None:
    accept_all(repo, skyplan, "2020-01-01")
    done = skyplan("iam", "--fail-on", "none")
    assert done.returncode == 1
    assert "skyplan.yaml:4" in done.stderr
    assert "SKY-IAM-901" in done.stderr
    assert "SKY-IAM-216" in done.stdout


def test_a_suppression_that_matches_nothing_is_a_warning(repo: Path, skyplan: Skyplan) -> None:
    (repo / "skyplan.yaml").write_text(SUPPRESSED % "2099-01-01")
    done = skyplan("clean.tf.json")
    assert done.returncode == 0
    assert "SKY-IAM-904" in done.stderr


def test_a_job_file_cannot_suppress(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = "name: t\nresources: {accelerators: 'A100-80GB:8'}\nwork: {hours: 1, on: 'A100-80GB:8'}\nrun: x\n"
    (repo / "job.yaml").write_text(job + "iam: {suppressions: [{rule: SKY-IAM-216, reason: x, expires: 2099-01-01}]}\n")
    assert call(["plan", "job.yaml"]) == 1
    assert "SKY-SPEC-102" in capsys.readouterr().err


def test_beyond_a_base_only_the_change_is_told(repo: Path, skyplan: Skyplan) -> None:
    (repo / "iam" / "admin.tf.json").rename(repo / "iam" / "z.tf.json")
    same = skyplan("iam", "--base", "iam")
    assert same.returncode == 0
    assert "Nothing is granted beyond iam" in same.stdout
    (repo / "more").mkdir()
    (repo / "more" / "z.tf.json").write_text(json.dumps(role(READS)))
    wider = skyplan("iam", "--base", "more")
    assert wider.returncode == 2
    assert "SKY-IAM-605" in wider.stdout


def test_explain_says_who_may_what(repo: Path, skyplan: Skyplan) -> None:
    done = skyplan("iam", "--explain", "ci")
    assert done.returncode == 0
    assert "own/All" in done.stdout
    assert json.loads(skyplan("iam", "--explain", "ci", "--json").stdout)["rights"][0]["action"] == "*"
    assert skyplan("iam", "--explain", "nobody").returncode == 1


def test_a_graph_is_well_formed_and_the_same_each_time(repo: Path, skyplan: Skyplan) -> None:
    skyplan("iam", "--graph", "a.svg")
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    subprocess.run([*RUN, "audit", "iam", "--graph", "b.svg"], cwd=repo, env=env, capture_output=True, check=False)
    assert (repo / "a.svg").read_bytes() == (repo / "b.svg").read_bytes()
    root = ET.parse(repo / "a.svg").getroot()
    assert root.get("role") == "img"
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


def test_a_graph_is_svg_and_nothing_else(repo: Path, skyplan: Skyplan) -> None:
    done = skyplan("iam", "--graph", "x.png")
    assert done.returncode == 1
    assert "draws SVG" in done.stderr
    assert not (repo / "x.png").exists()


def test_auditing_imports_no_sdk_no_cdk_and_no_record(repo: Path, skyplan: Skyplan) -> None:
    watch = (
        "import sys; from planner.cli.entry import call; call(['audit', 'clean.tf.json']); "
        "bad = {'boto3', 'botocore', 'cdktf', 'jsii', 'sqlalchemy', 'google.auth', 'azure.identity', 'rich'} & set(sys.modules); "
        "sys.exit(str(bad) if bad else 0)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", watch], cwd=repo, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("account", "code"), [(None, 1), ("111122223333", 0)])
def test_live_ends_with_1_only_where_nothing_could_be_read(
    repo: Path, skyplan: Skyplan, monkeypatch: pytest.MonkeyPatch, account: str | None, code: int
) -> None:
    class Empty:
        def audited(self, *, project: str, buckets: tuple[str, ...] = ()) -> Audited:
            assert project == "acme"
            return Audited()

    monkeypatch.setattr(choose, "rights_reader", lambda where: Empty())
    target = f'targets: [{{name: prod, cloud: aws, account: "{account}"}}]' if account else ""
    (repo / "skyplan.yaml").write_text(f"project: acme\n{target}\n")
    done = skyplan("clean.tf.json", "--live")
    assert done.returncode == code
    assert "SKY-IAM-902" in done.stderr


def test_live_that_was_refused_is_not_called_clean(
    repo: Path, skyplan: Skyplan, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refuses:
        def audited(self, *, project: str, buckets: tuple[str, ...] = ()) -> Audited:
            raise CloudError([Diagnostic(code="SKY-IAM-902", summary="no credentials")])

    monkeypatch.setattr(choose, "rights_reader", lambda where: Refuses())
    (repo / "skyplan.yaml").write_text('project: acme\ntargets: [{name: p, cloud: aws, account: "111122223333"}]\n')
    done = skyplan("clean.tf.json", "--live")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1].startswith("no findings in what was read; 1 account or region not compared; ")
    assert json.loads(skyplan("clean.tf.json", "--live", "--json").stdout)["summary"]["refused"] == 1


def test_what_was_not_read_stands_in_every_summary(repo: Path, skyplan: Skyplan) -> None:
    document = role(READS)
    document["resource"]["aws_iam_role"]["ci"]["assume_role_policy"] = "${var.trust}"
    (repo / "unread.tf.json").write_text(json.dumps(document))
    done = skyplan("unread.tf.json", "--format", "table", "--output", "-", "--format", "markdown", "--output", "x.md")
    assert done.stdout.splitlines()[-1].startswith("no findings in what was read; 1 document not read; ")
    assert "1 document not read" in (repo / "x.md").read_text()
    assert json.loads(skyplan("unread.tf.json", "--json").stdout)["summary"]["unread"] == 1


def test_a_plan_is_audited_without_node_and_its_secret_stands_at_the_job_files_line(
    repo: Path, skyplan: Skyplan
) -> None:
    (repo / "jobs").mkdir()
    job = """# what runs
name: train
resources: {accelerators: "A100-80GB:8"}
work: {hours: 24, on: "A100-80GB:8"}
setup: pip install x
run: python train.py
"""
    (repo / "jobs" / "train.yaml").write_text(job)
    assert call(["plan", "jobs/train.yaml", "--out", "plans"]) == 0
    assert skyplan().returncode == 0
    file = repo / "plans" / "train.plan.json"
    plan = json.loads(file.read_text())
    del plan["digest"]
    plan["job"]["setup"] = "huggingface-cli login --token " + "hf_" + "aBcD3fGh1jKlMn0pQrStUvWxYz2468AcEg"
    file.write_bytes(pretty(plan | {"digest": digest(plan)}))
    done = skyplan("--format", "sarif")
    assert done.returncode == 2
    (result,) = json.loads(done.stdout)["runs"][0]["results"]
    assert result["ruleId"] == "SKY-IAM-504"
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("jobs/train.yaml", 5)
    assert "aBcD3fGh1jKl" not in done.stdout


class Terminal:
    def __init__(self) -> None:
        self.text = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.text += text
        return len(text)

    def flush(self) -> None:
        pass


def test_a_bar_shows_after_two_seconds_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, times = Terminal(), iter([0.0, 1.9, 2.1, 9.0])
    monkeypatch.setattr(sys, "stderr", terminal)
    with bars.bar(4, now=lambda: next(times)) as advance:
        advance("one")
        assert terminal.text == ""
        advance("two")
        assert terminal.text == "\r[######------------------] two"
        advance("three")
    assert terminal.text.endswith("\r" + " " * len("[############------------] three") + "\r")


def test_no_bar_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 9.0, 9.0])
    with bars.bar(1, now=lambda: next(times)) as advance:
        advance("one")
    assert capsys.readouterr().err == ""
