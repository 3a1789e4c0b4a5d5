"""R25, R22: the files that pipelines take from here (GitHub Action, GitLab template, Atlantis, Terraform, pre-commit) are valid by their vendors' schemas, hold no injection,
and every script in them runs: in a git repository, by bash, with the real program, against forges on loopback (peers 10, 11, 12, 14, 17).

What is not proven: that GitHub, GitLab and Atlantis run them as we do here.  Atlantis' and pre-commit's own schemas are vendored by nobody: their keys are held to the documented ones.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.render.comment import read_hidden
from tests.emulators import forges
from tests.emulators import terraform as machine
from tests.unit.forges.desk import NUMBER, REPO, TOKEN

ROOT = Path(__file__).parents[2]
ACTION = ROOT / "action.yml"
WORKFLOW = ROOT / "ci" / "github" / "skyplan.yml"
FORKS = ROOT / "ci" / "github" / "skyplan-forks.yml"
GITLAB = ROOT / "ci" / "gitlab" / "skyplan.gitlab-ci.yml"
ATLANTIS = ROOT / "ci" / "atlantis" / "atlantis.yaml"
REVIEW = ROOT / "ci" / "terraform" / "review.sh"
HOOKS = ROOT / ".pre-commit-hooks.yaml"
PROJECT = """\
project: acme
targets:
  - {name: prod, cloud: aws}
clouds: [aws]
stop_after: 21d
"""
JOB = """\
name: train
resources: {accelerators: "A100-80GB:8", capacity: [spot, on_demand]}
work: {hours: 10, on: "A100-80GB:8"}
image: {ref: "ghcr.io/acme/train:1", size: 18GB}
run: python train.py
checkpoint: {uri: s3://acme-ckpt/train/, size: 10GB, region: us-east-1, every: 30m}
"""
PLAN = {
    "format_version": "1.2",
    "planned_values": {},
    "resource_changes": [
        {
            "address": "module.access.aws_s3_bucket.old",
            "type": "aws_s3_bucket",
            "change": {"actions": ["delete"], "before": {"password": "hunter2"}, "after": None, "after_unknown": {}},
        }
    ],
}


class Strict(yaml.SafeLoader):
    """As Go's and Ruby's readers do: a key twice in one mapping is an error."""


def once(loader: Strict, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [k.value for k, _ in node.value]
    assert len(keys) == len(set(keys)), f"{node.start_mark}: a key stands there twice: {keys}"
    return dict(loader.construct_pairs(node, deep=True))


Strict.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, once)


def document(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=Strict)


# the files as they are


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        (ACTION, "vendor.github-actions"),
        (WORKFLOW, "vendor.github-workflows"),
        (FORKS, "vendor.github-workflows"),
        (GITLAB, "vendor.gitlab-ci"),
    ],
    ids=lambda v: getattr(v, "name", v),
)
def test_a_file_is_valid_by_its_vendors_schema(path: Path, schema: str) -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_hooks_have_the_keys_that_pre_commit_documents() -> None:
    known = {
        "id", "name", "description", "entry", "language", "files", "exclude", "types", "pass_filenames", "require_serial",
    }  # fmt: skip
    hooks = document(HOOKS)
    assert [h["id"] for h in hooks] == ["skyplan-validate", "skyplan-plan-check", "skyplan-audit"]
    for hook in hooks:
        assert {"id", "name", "entry", "language"} <= set(hook) <= known
        re.compile(hook["files"])


def test_atlantis_keys_are_those_that_it_documents() -> None:
    found = document(ATLANTIS)
    assert set(found) <= {"version", "automerge", "projects", "workflows"}
    assert found["version"] == 3
    # the root modules that `synth --format hcl --root` writes
    assert [(p["name"], p["dir"]) for p in found["projects"]] == [
        ("train", "terraform/job-train"),
        ("eval", "terraform/job-eval"),
    ]
    for project in found["projects"]:
        assert set(project) <= {"name", "dir", "workflow", "autoplan", "execution_order_group"}
        assert project["workflow"] in found["workflows"]
    for stages in found["workflows"].values():
        for stage in stages.values():
            for step in stage["steps"]:
                assert step in ("init", "plan", "show", "apply") or set(step["run"]) == {"command", "output"}


def scripts() -> list[Any]:
    found = [(f"action {s['id']}", "bash", s["run"]) for s in document(ACTION)["runs"]["steps"]]
    found += [(f"forks {s['name']}", "bash", s["run"]) for s in fork_steps()]
    for name, job in document(GITLAB).items():
        lines = [*job.get("before_script", []), *job.get("script", [])]
        if lines:
            found.append((f"gitlab {name}", "sh", "\n".join(lines)))
    found.append(("atlantis", "sh", atlantis_script()))
    found.append(("terraform", "bash", REVIEW.read_text()))
    for hook in document(HOOKS):
        words = shlex.split(hook["entry"])
        if words[:2] == ["bash", "-c"]:
            found.append((hook["id"], "bash", words[2]))
    return [pytest.param(shell, text, id=name) for name, shell, text in found]


def fork_steps() -> list[dict[str, Any]]:
    return [s for s in document(FORKS)["jobs"]["review"]["steps"] if "run" in s]


def atlantis_script() -> str:
    steps = document(ATLANTIS)["workflows"]["skyplan"]["plan"]["steps"]
    return next(s["run"]["command"] for s in steps if isinstance(s, dict))


@pytest.mark.parametrize(("shell", "text"), scripts())
def test_no_script_has_anything_that_shellcheck_minds(shell: str, text: str) -> None:
    command = [str(Path(sys.executable).with_name("shellcheck")), "--shell", shell, "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(("shell", "text"), scripts())
def test_python_takes_no_module_from_the_folder_it_is_started_in(shell: str, text: str) -> None:
    """`python -m venv` would run a venv.py of the pull request, or a harmless random.py would break it: -I is isolated."""
    del shell
    assert re.findall(r"python[\d.]*\"? -m|PYTHON\"? -m", text) == []


@pytest.mark.parametrize(("shell", "text"), scripts())
def test_no_script_takes_one_exit_code_alone_for_an_error(shell: str, text: str) -> None:
    """137 is no review: what was killed must not pass for what found nothing."""
    del shell
    assert re.findall(r"-eq 1 \]", text) == []


@pytest.mark.parametrize("path", [ACTION, WORKFLOW, FORKS], ids=lambda p: p.name)
def test_no_expression_stands_in_a_script(path: Path) -> None:
    """What a stranger may choose (branches, titles, inputs) reaches a script by its environment alone."""
    found = document(path)
    steps = found["runs"]["steps"] if "runs" in found else [s for j in found["jobs"].values() for s in j["steps"]]
    for step in steps:
        assert "${{" not in step.get("run", "")


def test_actions_of_others_are_pinned_where_a_commit_is_known_and_the_rest_is_said() -> None:
    uses = re.findall(r"uses: (\S+)", WORKFLOW.read_text() + FORKS.read_text())
    loose = [u for u in uses if not re.search(r"@[0-9a-f]{40}$", u)]
    assert loose == ["github/codeql-action/upload-sarif@v4"]
    assert "pin upload-sarif by a commit of yours" in WORKFLOW.read_text()
    assert not any("uses" in s for s in document(ACTION)["runs"]["steps"])


# a repository, a program, forges


@dataclass
class Repository:
    """One job on main, and a branch on which it changes; `bin` holds the real program."""

    folder: Path
    bin: Path
    env: dict[str, str] = field(default_factory=dict)

    def git(self, *arguments: str) -> str:
        setting = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        command = ["git", *setting, *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def run(self, script: str, *, shell: str = "bash", **environment: str) -> subprocess.CompletedProcess[str]:
        command = {
            "bash": ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            "sh": ["sh", "-c", script],
        }[shell]
        return self.start(command, **environment)

    def start(self, command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "CI_", "GH_", "GITLAB_", "GIT_"))}
        env = {**kept, **self.env, "PATH": f"{self.bin}{os.pathsep}{os.environ['PATH']}", **environment}
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert TOKEN not in done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """Made once, copied for each test."""
    made = tmp_path_factory.mktemp("planned")
    folder, programs = made / "repository", made / "bin"
    (folder / "jobs").mkdir(parents=True)
    programs.mkdir()
    text = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -c "from planner.cli.entry import run; run()" "$@"\n'
    (programs / "skyplan").write_text(text)
    (programs / "skyplan").chmod(0o755)
    found = Repository(folder, programs)
    found.git("init", "-q", "-b", "main")
    (folder / "skyplan.yaml").write_text(PROJECT)
    (folder / "jobs" / "train.yaml").write_text(JOB)
    found.start(["skyplan", "plan", "--offline", "--out", "plans", "jobs/train.yaml"])
    found.git("add", "-A")
    found.git("commit", "-q", "-m", "one")
    found.git("checkout", "-q", "-b", "change")
    return found


@pytest.fixture
def repository(planned: Repository, tmp_path: Path) -> Repository:
    for name in ("repository", "bin"):
        shutil.copytree(planned.folder.parent / name, tmp_path / name)
    return Repository(tmp_path / "repository", tmp_path / "bin")


def change(repository: Repository) -> None:
    path = repository.folder / "jobs" / "train.yaml"
    path.write_text(path.read_text().replace("train.py", "other.py"))
    repository.start(["skyplan", "plan", "--offline", "--out", "plans", "jobs/train.yaml"])
    repository.git("commit", "-q", "-a", "-m", "two")


@pytest.fixture
def github() -> Iterator[forges.Forge]:
    forge = forges.GitHub()
    forge.user(TOKEN, "github-actions[bot]", kind="Bot")
    forge.place(REPO, NUMBER)
    with forges.served(forge):
        yield forge


@pytest.fixture
def gitlab() -> Iterator[forges.Forge]:
    forge = forges.GitLab()
    forge.user(TOKEN, "project_42_bot")
    forge.place("42", NUMBER)
    with forges.served(forge):
        yield forge


# GitHub


@dataclass
class Runner:
    """Runs the action's steps as GitHub documents: inputs and outputs filled into `env`, nothing into scripts."""

    repository: Repository
    forge: forges.Forge
    temp: Path
    inputs: dict[str, str]
    fork: bool = False
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    codes: dict[str, int] = field(default_factory=dict)
    said: str = ""

    def all(self) -> int:
        action = document(ACTION)
        given = {k: str(v.get("default", "")) for k, v in action["inputs"].items()} | self.inputs
        self.temp.mkdir(exist_ok=True)
        event = {
            "pull_request": {
                "number": NUMBER,
                "updated_at": "2026-11-29T10:00:00Z",
                "base": {"sha": self.repository.git("rev-parse", "main")},
            }
        }
        (self.temp / "event.json").write_text(json.dumps(event))
        self.inputs = {k: self.filled(v) for k, v in given.items()}
        (self.temp / "summary.md").touch()
        for step in action["runs"]["steps"]:
            if "if" in step and (self.fork or self.inputs["comment"] != "true"):
                continue
            if code := self.step(step):
                return code
        return 0

    def step(self, step: dict[str, Any]) -> int:
        output = self.temp / f"output-{step['id']}"
        output.touch()
        env = {
            "GITHUB_REPOSITORY": REPO, "GITHUB_EVENT_NAME": "pull_request", "GITHUB_API_URL": self.forge.url,
            "GITHUB_EVENT_PATH": str(self.temp / "event.json"), "GITHUB_STEP_SUMMARY": str(self.temp / "summary.md"),
            "GITHUB_OUTPUT": str(output), "RUNNER_TEMP": str(self.temp),
        }  # fmt: skip
        env |= {k: self.filled(v) for k, v in step["env"].items()}
        done = self.repository.run(step["run"], **env)
        self.said += done.stdout + done.stderr
        self.codes[step["id"]] = done.returncode
        self.outputs[step["id"]] = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return done.returncode

    def filled(self, text: str) -> str:
        def value(found: re.Match[str]) -> str:
            name = found[1].strip()
            if name.startswith("inputs."):
                return self.inputs[name.removeprefix("inputs.")]
            if part := re.fullmatch(r"steps\.(\w+)\.outputs\.(\w+)", name):
                return self.outputs[part[1]].get(part[2], "")
            known = {
                "github.event.pull_request.base.sha": self.repository.git("rev-parse", "main"),
                "github.token": TOKEN,
                "github.action_path": str(ROOT),
            }
            return known[name]

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)


@pytest.fixture
def runner(repository: Repository, github: forges.Forge, tmp_path: Path) -> Runner:
    return Runner(repository, github, tmp_path / "temp", {"program": "skyplan"})


def test_the_action_comments_summarises_and_writes_sarif(runner: Runner) -> None:
    change(runner.repository)
    assert runner.all() == 0, runner.said
    first = runner.forge.bodies(REPO, NUMBER)[-1]
    found = read_hidden(first)
    assert found is not None
    assert (found.kind, found.tag, found.valid_at) == ("diff", "skyplan", "2026-11-29T10:00:00Z")
    assert "train" in first
    assert runner.outputs["diff"]["exitcode"] == "2"
    assert runner.outputs["plan"]["exitcode"] == "0"
    assert runner.outputs["comment"]["url"].startswith("https://github.example/acme/jobs/pull/7#")
    summary = (runner.temp / "summary.md").read_text()
    assert "## skyplan diff" in summary
    assert "## skyplan audit" in summary
    assert json.loads(Path(runner.outputs["audit"]["sarif"]).read_text())["version"] == "2.1.0"
    assert json.loads(Path(runner.outputs["diff"]["json"]).read_text())
    outputs = document(ACTION)["outputs"]
    assert {runner.filled(o["value"]) for o in outputs.values()} >= {"2", "0", runner.outputs["diff"]["markdown"]}


def test_run_again_the_action_writes_nothing(runner: Runner) -> None:
    """Case 13."""
    change(runner.repository)
    assert runner.all() == 0
    writes = len(runner.forge.writes())
    assert runner.all() == 0
    assert len(runner.forge.writes()) == writes


def test_exit_code_2_survives_the_action_and_only_where_it_is_asked_for(runner: Runner) -> None:
    """Case 12."""
    change(runner.repository)
    runner.inputs["fail-on-change"] = "true"
    assert runner.all() == 2
    assert runner.codes["result"] == 2
    assert len(runner.forge.writes()) >= 1  # what fails is commented all the same


def test_a_finding_fails_the_action_after_the_comment(runner: Runner) -> None:
    """Case 12."""
    change(runner.repository)
    real = runner.repository.bin / "skyplan"
    finding = real.with_name("with-a-finding")
    finding.write_text(f'#!/bin/sh\n{real} "$@"\ncode=$?\nif [ "$1" = audit ]; then exit 2; fi\nexit $code\n')
    finding.chmod(0o755)
    runner.inputs["program"] = str(finding)
    assert runner.all() == 2
    assert runner.outputs["audit"]["exitcode"] == "2"
    assert "::error title=skyplan audit" in runner.said
    assert any("skyplan-diff" in str(a.body) for a in runner.forge.writes())


def test_a_change_that_changes_nothing_is_one_line_and_with_only_on_change_none(runner: Runner) -> None:
    """Case 17."""
    runner.inputs["only-on-change"] = "true"
    assert runner.all() == 0, runner.said
    assert [b for b in runner.forge.bodies(REPO, NUMBER) if "skyplan-diff" in b] == []
    runner.inputs["only-on-change"] = "false"
    assert runner.all() == 0
    quiet = [b for b in runner.forge.bodies(REPO, NUMBER) if "skyplan-diff" in b]
    assert len(quiet) == 1
    assert quiet[0].strip().count("\n") == 1


@pytest.mark.parametrize("killed", ["plan", "diff", "audit"])
def test_what_was_killed_fails_the_action(runner: Runner, killed: str) -> None:
    """As the kernel does where memory ends: neither 1 nor 2, and no file."""
    change(runner.repository)
    real = runner.repository.bin / "skyplan"
    program = real.with_name("killed")
    program.write_text(f'#!/bin/sh\nif [ "$1" = {killed} ]; then kill -9 $$; fi\nexec {real} "$@"\n')
    program.chmod(0o755)
    runner.inputs["program"] = str(program)
    assert runner.all() == 1
    assert runner.forge.asked == []


def test_the_action_runs_no_module_of_the_pull_request(runner: Runner, tmp_path: Path) -> None:
    """With the real Python; what it would install is nowhere, and so it ends there."""
    for name in ("venv.py", "pip.py", "random.py", "ensurepip.py"):
        (runner.repository.folder / name).write_text("open('pwned', 'w')\nraise SystemExit(0)\n")
    runner.inputs = {"python": sys.executable, "source": f"file://{tmp_path}/nowhere", "comment": "false"}
    assert runner.all() != 0
    assert "nowhere" in runner.said
    assert not (runner.repository.folder / "pwned").exists()


def test_plans_that_were_not_written_again_are_told(runner: Runner) -> None:
    path = runner.repository.folder / "jobs" / "train.yaml"
    path.write_text(path.read_text().replace("train.py", "other.py"))
    assert runner.all() == 0
    assert runner.outputs["plan"]["exitcode"] == "2"
    assert "::notice" in runner.said


def test_a_fork_gets_its_review_in_the_summary_and_no_comment(runner: Runner) -> None:
    change(runner.repository)
    runner.fork = True
    condition = next(s["if"] for s in document(ACTION)["runs"]["steps"] if s["id"] == "comment")
    assert "head.repo.full_name == github.repository" in condition
    assert "github.event_name == 'pull_request'" in condition
    assert runner.all() == 0
    assert runner.forge.asked == []
    assert "## skyplan diff" in (runner.temp / "summary.md").read_text()


def test_a_broken_job_fails_the_action_with_its_line_and_posts_nothing(runner: Runner) -> None:
    (runner.repository.folder / "jobs" / "train.yaml").write_text(JOB.replace("run:", "rum:"))
    assert runner.all() == 1
    assert "jobs/train.yaml:5" in runner.said
    assert runner.forge.asked == []


#: notes what it is asked, one argument a line, and writes what it is to write
NOTING = """\
#!/bin/sh
printf '%s\\n' "$@" "--" >>"$ASKED"
last=
for one in "$@"; do if [ "$last" = --output ] && [ "$one" != - ]; then : >"$one"; fi; last=$one; done
"""


def test_no_input_is_taken_for_a_command(runner: Runner, tmp_path: Path) -> None:
    """It reaches the program as one argument, whatever stands in it."""
    hostile = "x$(touch pwned)`touch pwned`;touch pwned '\" -- *"
    program = tmp_path / "noting"
    program.write_text(NOTING)
    program.chmod(0o755)
    runner.repository.env["ASKED"] = str(tmp_path / "asked")
    names = ("jobs", "tag", "base", "behavior", "fail-on", "terraform-plans")
    runner.inputs = {"program": str(program), **{n: f"{hostile}{n}" for n in names}}
    assert runner.all() == 0, runner.said
    asked = (tmp_path / "asked").read_text().split("\n")
    assert {f"{hostile}{n}" for n in names} <= set(asked)
    assert not (runner.repository.folder / "pwned").exists()


def test_the_action_installs_its_own_commit_with_the_versions_that_were_tested(runner: Runner, tmp_path: Path) -> None:
    log = tmp_path / "asked"
    fake = tmp_path / "python"
    fake.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >>{log}\n'
        'if [ "$3" = venv ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; cp "$SKYPLAN_REAL" "$4/bin/skyplan"; fi\n'
    )
    fake.chmod(0o755)
    runner.repository.env["SKYPLAN_REAL"] = str(runner.repository.bin / "skyplan")
    runner.inputs = {"python": str(fake), "comment": "false"}
    assert runner.all() == 0, runner.said
    asked = log.read_text()
    assert f"skyplan[comment] @ file://{ROOT}" in asked
    found = re.search(r"--constraint (\S+)", asked)
    assert found
    pins = Path(found[1]).read_text().splitlines()
    assert any(p.startswith("httpx==") for p in pins)
    assert all(re.match(r"[A-Za-z0-9._-]+==[^\\]*$", p) for p in pins)
    assert len(pins) > 50


def test_every_input_of_the_example_workflow_is_one_of_the_action() -> None:
    steps = document(WORKFLOW)["jobs"]["review"]["steps"]
    used = next(s for s in steps if s.get("id") == "skyplan")["with"]
    assert set(used) <= set(document(ACTION)["inputs"])


def test_the_workflow_for_forks_checks_out_the_base_alone() -> None:
    found = document(FORKS)
    assert set(found[True]) == {"pull_request_target"}  # `on`, as YAML 1.1 reads it
    steps = found["jobs"]["review"]["steps"]
    assert [s.get("with", {}).keys() for s in steps if "uses" in s] == [{"fetch-depth", "persist-credentials"}]
    assert "checkout" not in "".join(s["run"] for s in fork_steps())


def test_a_forks_files_are_read_as_data_and_commented_on(
    repository: Repository, github: forges.Forge, tmp_path: Path
) -> None:
    origin = tmp_path / "origin.git"
    change(repository)
    (repository.folder / "sitecustomize.py").write_text("open('pwned', 'w')")
    (repository.folder / ".gitattributes").write_text("* filter=pwn\n")
    repository.git("add", "-A")
    repository.git("commit", "-q", "-m", "three")
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(repository.folder), str(origin)], check=True, capture_output=True
    )
    subprocess.run(["git", "update-ref", "refs/pull/7/head", "change"], cwd=origin, check=True)
    head = repository.git("rev-parse", "change")
    repository.git("checkout", "-q", "main")
    repository.git("remote", "add", "origin", str(origin))
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": NUMBER, "updated_at": "2026-11-29T10:00:00Z"}}))
    asked = tmp_path / "asked"
    (repository.bin / "python3").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >>{asked}\nif [ "$3" = venv ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; fi\n'
    )
    (repository.bin / "python3").chmod(0o755)
    env = {
        "NUMBER": str(NUMBER), "BASE": repository.git("rev-parse", "main"), "HEAD": head, "GITHUB_TOKEN": TOKEN, "TOKEN": TOKEN,
        "GITHUB_SERVER_URL": "https://github.example", "SEEN": str(tmp_path / "seen"),
        "RUNNER_TEMP": str(tmp_path), "GITHUB_PATH": str(tmp_path / "path"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_REPOSITORY": REPO, "GITHUB_EVENT_PATH": str(event), "GITHUB_API_URL": github.url, "SKYPLAN_SOURCE": "git+https://x.example/s@1",
    }  # fmt: skip
    # what git is told for its fetch, and whether skyplan is told of it while it reads the fork's files
    git = shutil.which("git")
    (repository.bin / "git").write_text(
        f'#!/bin/sh\nif [ "$1" = fetch ]; then printf "%s %s\\n" "$GIT_CONFIG_KEY_0" "$GIT_CONFIG_VALUE_0" >"$SEEN"; fi\nexec {git} "$@"\n'
    )
    (repository.bin / "git").chmod(0o755)
    real = (repository.bin / "skyplan").rename(repository.bin / "skyplan.real")
    (repository.bin / "skyplan").write_text(
        f'#!/bin/sh\nif [ "$1" = diff ] && env | grep -q -e "^TOKEN=" -e "^GIT_CONFIG"; then exit 9; fi\nexec {real} "$@"\n'
    )
    (repository.bin / "skyplan").chmod(0o755)
    for step in fork_steps():
        done = repository.run(step["run"], **env)
        assert done.returncode == 0, done.stderr
    assert "skyplan[comment] @ git+https://x.example/s@1" in asked.read_text()
    assert "train" in github.bodies(REPO, NUMBER)[0]
    assert not (repository.folder / "pwned").exists()
    header = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    told = (tmp_path / "seen").read_text()
    assert told == f"http.https://github.example/.extraheader AUTHORIZATION: basic {header}\n"
    (tmp_path / "diff.md").unlink()
    for step in fork_steps()[1:]:
        assert repository.run(step["run"], **{**env, "HEAD": "0" * 40}).returncode == 0
    assert len(github.writes()) == 1


# GitLab


def gitlab_job(repository: Repository, forge: forges.Forge, **environment: str) -> subprocess.CompletedProcess[str]:
    template = document(GITLAB)
    job = template[template["skyplan-review"]["extends"]]
    env = {
        **{k: str(v) for k, v in job["variables"].items()},
        "CI_API_V4_URL": forge.url, "CI_PROJECT_ID": "42", "CI_MERGE_REQUEST_IID": str(NUMBER),
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.git("rev-parse", "main"), "CI_PIPELINE_CREATED_AT": "2026-11-29T10:00:00Z",
        "GITLAB_TOKEN": TOKEN,
    }  # fmt: skip
    lines = "\n".join([*job["before_script"], *job["script"]])
    return repository.run(lines, **{**env, **environment})


def test_gitlabs_job_notes_and_leaves_artifacts(repository: Repository, gitlab: forges.Forge) -> None:
    change(repository)
    done = gitlab_job(repository, gitlab)
    assert done.returncode == 0, done.stderr
    found = [read_hidden(b) for b in gitlab.bodies("42", NUMBER)]
    assert ("diff", "skyplan") in [h.key for h in found if h]
    artifacts = document(GITLAB)[".skyplan"]["artifacts"]
    assert (repository.folder / artifacts["reports"]["junit"]).read_text().startswith("<?xml")
    assert {p.name for p in (repository.folder / artifacts["paths"][0]).iterdir()} == {
        "diff.md",
        "diff.json",
        "audit.md",
        "audit.xml",
    }


def test_gitlabs_job_without_a_token_says_where_the_review_is(repository: Repository, gitlab: forges.Forge) -> None:
    change(repository)
    done = gitlab_job(repository, gitlab, GITLAB_TOKEN="")
    assert done.returncode == 0
    assert "artifacts" in done.stdout
    assert gitlab.asked == []


def test_gitlabs_job_installs_where_there_is_no_skyplan(
    repository: Repository, gitlab: forges.Forge, tmp_path: Path
) -> None:
    real = (repository.bin / "skyplan").rename(tmp_path / "skyplan.real")
    log = tmp_path / "asked"
    (repository.bin / "python").write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$*" >>{log}\n'
        f'if [ "$3" = venv ]; then mkdir -p "$4/bin"; cp "$0" "$4/bin/python"; cp {real} "$4/bin/skyplan"; fi\n'
    )
    (repository.bin / "python").chmod(0o755)
    hidden = os.pathsep.join(p for p in os.environ["PATH"].split(os.pathsep) if not (Path(p) / "skyplan").exists())
    env = {"CI_BUILDS_DIR": str(tmp_path), "SKYPLAN_SOURCE": "git+https://git.example/skyplan.git@abc"}
    done = gitlab_job(repository, gitlab, **env, PATH=f"{repository.bin}{os.pathsep}{hidden}")
    assert done.returncode == 0, done.stderr
    assert "skyplan[comment] @ git+https://git.example/skyplan.git@abc" in log.read_text()


def test_a_finding_fails_gitlabs_job_with_2_and_an_error_with_1(repository: Repository, gitlab: forges.Forge) -> None:
    """Case 12."""
    fake = repository.bin / "skyplan"
    real = fake.read_text()
    fake.write_text(real.replace("#!/bin/sh\n", '#!/bin/sh\nif [ "$1" = "$FAILS" ]; then exit "$CODE"; fi\n'))
    assert gitlab_job(repository, gitlab, FAILS="audit", CODE="2").returncode == 2
    assert gitlab_job(repository, gitlab, FAILS="audit", CODE="1").returncode == 1
    assert gitlab_job(repository, gitlab, FAILS="diff", CODE="1").returncode == 1
    for killed in ("audit", "diff"):
        assert gitlab_job(repository, gitlab, FAILS=killed, CODE="137", GITLAB_TOKEN="").returncode == 1


# Atlantis and plain Terraform


def test_atlantis_step_comments_what_terraform_would_destroy(
    repository: Repository, github: forges.Forge, tmp_path: Path
) -> None:
    """Case 11: of Terraform's plan addresses are shown, values never."""
    change(repository)
    origin = tmp_path / "origin.git"
    subprocess.run(
        ["git", "clone", "-q", "--bare", str(repository.folder), str(origin)], check=True, capture_output=True
    )
    repository.git("remote", "add", "origin", str(origin))
    shown = tmp_path / "show.json"
    shown.write_text(json.dumps(PLAN))
    done = repository.run(
        atlantis_script(), shell="sh", SHOWFILE=str(shown), PROJECT_NAME="train", PULL_NUM=str(NUMBER), BASE_BRANCH_NAME="main",
        BASE_REPO_OWNER="acme", BASE_REPO_NAME="jobs", ATLANTIS_GH_TOKEN=TOKEN, GITHUB_API_URL=github.url,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    text = github.bodies(REPO, NUMBER)[0]
    found = read_hidden(text)
    assert found is not None
    assert found.tag == "atlantis/train"
    assert "Terraform deletes or replaces" in text
    assert "hunter2" not in text


FAKE_TERRAFORM = """\
#!/bin/sh
# stands in for Terraform: what it plans is the test's, what it is asked is noted
printf '%s\\n' "$*" >>"$ASKED"
case $2 in
  init) ;;
  plan) echo "password = hunter2"; exit "${PLAN_CODE:-2}" ;;
  show) cat "$PLAN_JSON" ;;
esac
"""


def pipeline(repository: Repository, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    fake = repository.bin / "terraform"
    fake.write_text(FAKE_TERRAFORM)
    fake.chmod(0o755)
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    env = {
        "BASE": "main",
        "ASKED": str(tmp_path / "asked"),
        "PLAN_JSON": str(tmp_path / "plan.json"),
        "SKYPLAN_TERRAFORM": "terraform",
    }
    return repository.start(["bash", str(REVIEW)], **{**env, **environment})


def test_a_plain_pipeline_shows_terraforms_plan_and_ends_with_2(repository: Repository, tmp_path: Path) -> None:
    """Case 12."""
    change(repository)
    done = pipeline(repository, tmp_path)
    assert done.returncode == 2, done.stderr
    asked = (tmp_path / "asked").read_text()
    assert (
        "-chdir=.skyplan/review/terraform/job-train plan -input=false -no-color -detailed-exitcode -out=tfplan" in asked
    )
    assert "aws_s3_bucket.old" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr
    assert "hunter2" not in (repository.folder / ".skyplan" / "review" / "diff.md").read_text()


def test_a_plain_pipeline_names_each_jobs_state(repository: Repository, tmp_path: Path) -> None:
    (repository.folder / "state.hcl").write_text('bucket = "acme-tfstate"\n')
    assert pipeline(repository, tmp_path, BACKEND_CONFIG="state.hcl", STATE_PREFIX="acme").returncode == 2
    asked = (tmp_path / "asked").read_text()
    config = repository.folder.resolve() / "state.hcl"
    assert f"init -input=false -no-color -backend-config={config} -backend-config=key=acme/job-train.tfstate\n" in asked


@pytest.mark.terraform
@pytest.mark.skipif(machine.missing(aws=False) is not None, reason=str(machine.missing(aws=False)))
def test_a_plain_pipeline_under_a_real_terraform(repository: Repository, tmp_path: Path) -> None:
    """With a provider that serves AWS' schema in the real one's place: what Terraform plans is real, what AWS would say is not asked."""
    change(repository)
    ready = machine.prepare(tmp_path / "terraform", stubs={"aws": machine.SCHEMAS / "aws.json.gz"})
    kept = {k: v for k, v in ready.environment.items() if k.startswith(("TF_", "SKYPLAN_TERRAFORM", "CHECKPOINT_"))}
    done = repository.start(["bash", str(REVIEW)], BASE="main", STUB_LOG=str(tmp_path / "cloud"), **kept)
    assert done.returncode == 2, done.stderr
    found = json.loads((repository.folder / ".skyplan" / "review" / "diff.json").read_text())
    planned = json.dumps(found["terraform"])
    assert "module.network" in planned
    assert "module.compute" in planned
    assert (repository.folder / ".skyplan" / "review" / "train.json").stat().st_mode & 0o077 == 0


def test_a_plain_pipeline_with_a_token_comments(repository: Repository, github: forges.Forge, tmp_path: Path) -> None:
    change(repository)
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": NUMBER, "updated_at": "2026-11-29T10:00:00Z"}}))
    env = {
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_API_URL": github.url,
        "GITHUB_TOKEN": TOKEN,
    }
    assert pipeline(repository, tmp_path, **env, TAG="plain").returncode == 2
    assert ("diff", "plain") in [h.key for h in map(read_hidden, github.bodies(REPO, NUMBER)) if h]


def test_terraforms_error_ends_a_plain_pipeline_with_1(repository: Repository, tmp_path: Path) -> None:
    done = pipeline(repository, tmp_path, PLAN_CODE="1")
    assert done.returncode == 1
    assert "show" not in (tmp_path / "asked").read_text()


def test_a_plain_pipeline_ends_where_terraform_was_killed(repository: Repository, tmp_path: Path) -> None:
    assert pipeline(repository, tmp_path, PLAN_CODE="137").returncode == 1
    assert "show" not in (tmp_path / "asked").read_text()


def test_a_plain_pipeline_writes_nothing_that_others_may_read(repository: Repository, tmp_path: Path) -> None:
    """Terraform's plan, its log and what it shows hold secret values in clear."""
    assert pipeline(repository, tmp_path).returncode in {0, 2}
    folder = repository.folder / ".skyplan" / "review"
    assert (folder / "train.plan.log").is_file()
    assert folder.stat().st_mode & 0o077 == 0


def test_a_plain_pipeline_without_a_base_says_so(repository: Repository, tmp_path: Path) -> None:
    done = pipeline(repository, tmp_path, BASE="")
    assert done.returncode == 1
    assert "origin/main" in done.stderr


# pre-commit


def hook(repository: Repository, name: str) -> int:
    """As pre-commit runs it: the entry with the files that match, and a failure too where it changes a file."""
    found = next(h for h in document(HOOKS) if h["id"] == name)
    repository.git("add", "-A")
    files = [f for f in repository.git("ls-files").splitlines() if re.search(found["files"], f)]
    if not files:
        return 0
    names = files if found.get("pass_filenames", True) else []
    done = repository.start([*shlex.split(found["entry"]), *names])
    changed = subprocess.run(["git", "diff", "--quiet"], cwd=repository.folder, check=False).returncode
    return done.returncode or changed


def test_hooks_pass_where_all_is_well(repository: Repository) -> None:
    assert [hook(repository, h["id"]) for h in document(HOOKS)] == [0, 0, 0]


def test_the_plan_hook_fails_once_on_a_job_that_was_changed_and_leaves_the_new_plan(repository: Repository) -> None:
    path = repository.folder / "jobs" / "train.yaml"
    path.write_text(JOB.replace("train.py", "other.py"))
    assert hook(repository, "skyplan-plan-check") != 0
    assert hook(repository, "skyplan-plan-check") == 0


def test_the_plan_hook_fails_where_only_what_apply_checks_has_changed(repository: Repository) -> None:
    """The same place, for another job: `apply` would refuse the old plan."""
    path = repository.folder / "jobs" / "train.yaml"
    path.write_text(JOB.replace("hours: 10,", "hours: 10.5,"))
    assert hook(repository, "skyplan-plan-check") != 0
    assert hook(repository, "skyplan-plan-check") == 0


def test_the_plan_hook_fails_on_a_new_job_without_a_plan(repository: Repository) -> None:
    (repository.folder / "jobs" / "eval.yml").write_text(JOB.replace("name: train", "name: eval"))
    assert hook(repository, "skyplan-plan-check") == 2
    assert (repository.folder / "plans" / "eval.plan.json").exists()


def test_the_plan_hook_has_nothing_to_do_without_jobs(repository: Repository) -> None:
    shutil.rmtree(repository.folder / "jobs")
    assert hook(repository, "skyplan-plan-check") == 0


def test_the_validate_hook_fails_on_a_broken_job(repository: Repository) -> None:
    (repository.folder / "jobs" / "eval.yaml").write_text("name: eval\nrum: x\n")
    assert hook(repository, "skyplan-validate") == 1


def test_the_audit_hook_fails_on_a_plan_that_was_edited(repository: Repository) -> None:
    path = repository.folder / "plans" / "train.plan.json"
    path.write_text(path.read_text().replace("s3://acme-ckpt/train/", "s3://acme-ckpt/"))
    assert hook(repository, "skyplan-audit") == 1


# the page


def test_the_page_tells_of_each_option_hook_and_output_and_of_no_other() -> None:
    from planner.cli.comment_cmd import command

    page = (ROOT / "docs" / "ci.md").read_text()
    table = page.split("| option | |")[1].split("Needs the extra")[0]
    told = set(
        re.findall(r"--[a-z-]+", "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    )
    assert told == {o for p in command.params for o in p.opts if o.startswith("--")}
    assert set(re.findall(r"- id: (skyplan-[a-z-]+)", page)) == {h["id"] for h in document(HOOKS)}
    outputs = re.search(r"Outputs: (.*?)\.", page, re.DOTALL)
    assert outputs
    assert set(re.findall(r"`([a-z-]+)`", outputs[1])) == set(document(ACTION)["outputs"])
    assert set(re.findall(r"`(ci/[\w./-]+\w)`", page)) <= {
        p.relative_to(ROOT).as_posix() for p in (ROOT / "ci").rglob("*.*")
    }
    assert "None of it was ever run on github.com, gitlab.com or a real Atlantis" in page
