"""R22 (one command to begin, nothing asked that can be found out) and R23 (in CI from the first day): `skyplan init` in repositories as they are."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from planner.app import inputs
from planner.cli.entry import call
from planner.model.offer import Cloud
from planner.model.words import words_of
from planner.spec.project import parse_project
from stacks.hcl import HEADER

ROOT = Path(__file__).parents[3]
MAIN = """
terraform {
  backend "s3" {
    bucket         = "acme-tfstate"
    key            = "infra/prod.tfstate"
    region         = "eu-west-1"
    dynamodb_table = "locks"
    secret_key     = "do-not-copy"
  }
}
variable "region" { default = "eu-west-1" }
provider "aws" {
  region              = var.region
  allowed_account_ids = ["123456789012"]
}
"""
Run = Callable[..., tuple[int, str, str]]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "home"
    found.mkdir()
    for name in [n for n in os.environ if n.startswith(("AWS_", "CLOUDSDK_", "AZURE_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(found))
    (found / ".gitconfig").write_text("[user]\nname = A\nemail = a@example.com\n[init]\ndefaultBranch = main\n")
    return found


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An infrastructure repository as a team has one."""
    folder = tmp_path / "infra-live"
    (folder / "live").mkdir(parents=True)
    git(folder, "init", "-q")
    git(folder, "remote", "add", "origin", "git@github.com:acme/Infra_Live.git")
    (folder / "live" / "main.tf").write_text(MAIN)
    (folder / ".gitignore").write_text(".terraform/\n")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def runs(*words: str) -> tuple[int, str, str]:
        code = call(list(words))
        out, err = capfd.readouterr()
        return code, out, " ".join(err.split())

    return runs


def tree(folder: Path) -> dict[str, bytes]:
    return {
        p.relative_to(folder).as_posix(): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and ".git" not in p.relative_to(folder).parts
    }


def project(folder: Path):
    found, problems = parse_project(
        (folder / "skyplan.yaml").read_text(), "skyplan.yaml", words_of(inputs.load_market())
    )
    assert problems == ()
    return found


def test_backend_account_and_names_come_from_what_is_there(repo: Path, run: Run) -> None:
    code, out, _ = run("init")
    assert code == 0
    found = project(repo)
    assert found.name == "infra-live"
    assert (found.backend.kind, dict(found.backend.settings)) == (
        "s3",
        {"bucket": "acme-tfstate", "region": "eu-west-1", "dynamodb_table": "locks"},
    )
    (target,) = found.targets
    assert (target.cloud, target.account) == (Cloud.AWS, "123456789012")
    assert found.ci is None, "who may become what is for people to say"
    text = (repo / "skyplan.yaml").read_text()
    assert "live/main.tf:3" in text
    (repo / "skyplan.yaml").write_text(text.replace("# foundation:", "foundation:"))
    told = project(repo).ci
    assert told is not None
    assert (told.provider, told.repository, told.branch) == ("github", "acme/Infra_Live", "main")
    assert not any(b"do-not-copy" in text for name, text in tree(repo).items() if not name.endswith(".tf"))
    assert "written   skyplan.yaml" in out


def test_a_second_run_changes_nothing_and_says_so(repo: Path, run: Run) -> None:
    run("init")
    before = tree(repo)
    code, out, _ = run("init")
    assert (code, tree(repo)) == (0, before)
    assert "nothing to do" in out
    assert json.loads(run("init", "--json")[1])["changed"] is False


def test_a_dry_run_writes_nothing(repo: Path, run: Run) -> None:
    before = tree(repo)
    code, out, _ = run("init", "--dry-run", "--json")
    said = json.loads(out)
    assert (code, tree(repo), said["dry_run"], said["changed"]) == (0, before, True, False)
    assert {f["path"]: f["action"] for f in said["files"]} == {
        "skyplan.yaml": "created",
        "jobs/example.yaml": "created",
        "schemas/job.schema.json": "created",
        "schemas/project.schema.json": "created",
        ".gitignore": "appended",
        ".github/workflows/skyplan.yml": "created",
    }


@pytest.mark.parametrize("commit", [True, False])
def test_the_commands_it_ends_with_run_as_they_are(repo: Path, run: Run, commit: bool) -> None:
    if commit:
        git(repo, "add", ".")
        git(repo, "commit", "-qm", "before")
    commands = json.loads(run("init", "--json")[1])["next"]
    bin_folder = repo.parent / "bin"
    bin_folder.mkdir()
    program = bin_folder / "skyplan"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom planner.cli.entry import run\nrun()\n"
    )
    program.chmod(0o755)
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    assert len(commands) == 3
    said = []
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=repo, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        said.append(done.stdout)
    assert (repo / "plans" / "example.plan.json").is_file()
    assert "+ example" in said[1], said[1]
    assert len(said[1].splitlines()) < 60, "nobody reads a first diff of pages"
    assert "no findings" in said[2]


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure", "nebius"])
def test_the_example_plans_on_each_cloud(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, cloud: str) -> None:
    folder = tmp_path / "bare"
    folder.mkdir()
    monkeypatch.chdir(folder)
    given = {
        "aws": "123456789012",
        "gcp": "acme-ml-prod",
        "azure": "00000000-0000-0000-0000-000000000001",
        "nebius": "project-e00example",
    }[cloud]
    assert run("init", "--cloud", cloud, "--account", f"{cloud}={given}")[0] == 0
    code, out, err = run("plan", "jobs/example.yaml", "--json")
    assert code == 0, err
    (plan,) = json.loads(out)["plans"]
    assert {place["cloud"] for place in plan["ranked"]} == {cloud}
    assert "SKY-SPEC" not in err


def test_what_is_there_is_left_and_what_it_lacks_is_shown(repo: Path, run: Run) -> None:
    (repo / "skyplan.yaml").write_text("project: mine\nmax_usd_total: 7\n")
    (repo / "CODEOWNERS").write_text("* @acme/platform\n")
    (repo / ".github" / "workflows").mkdir(parents=True)
    (repo / ".github" / "workflows" / "skyplan.yml").write_text("name: mine\n")
    before = tree(repo)
    code, out, _ = run("init", "--json")
    said = {f["path"]: f for f in json.loads(out)["files"]}
    after = tree(repo)
    assert code == 0
    assert all(after[name] == text for name, text in before.items() if name != ".gitignore")
    lacking = said["skyplan.yaml"]
    assert lacking["action"] == "proposed"
    added = "".join(line[1:] + "\n" for line in lacking["diff"].splitlines() if line[:1] == "+" and line[:3] != "+++")
    assert "acme-tfstate" in added
    assert "skyplan/mine/" in added
    assert "-max_usd_total" not in lacking["diff"]
    assert "+/skyplan.yaml @acme/platform" in said["CODEOWNERS"]["diff"]
    assert said[".github/workflows/skyplan.yml"]["action"] == "proposed"
    # the proposal holds: with it, nothing is left to say
    (repo / "skyplan.yaml").write_text("project: mine\nmax_usd_total: 7\n" + added)
    project(repo)
    assert {f["path"]: f for f in json.loads(run("init", "--json")[1])["files"]}["skyplan.yaml"]["action"] == "kept"


def test_a_wrong_project_file_comes_first(repo: Path, run: Run) -> None:
    (repo / "skyplan.yaml").write_text("project: Acme\nbackendd: local\n")
    before = tree(repo)
    code, out, err = run("init")
    assert (code, out, tree(repo)) == (1, "", before)
    assert "skyplan.yaml:1" in err
    assert "skyplan.yaml:2" in err


def test_lines_of_gitignore_keep_the_files_own_ends(repo: Path, run: Run) -> None:
    (repo / ".gitignore").write_bytes(b"*.log\r\n/.skyplan\r\nlast")
    run("init")
    assert (repo / ".gitignore").read_bytes() == b"*.log\r\n/.skyplan\r\nlast\r\ncdktf.out/\r\n"
    (repo / ".gitignore").write_bytes(b"\xff\xfe odd\n")
    assert run("init")[0] == 0
    assert (repo / ".gitignore").read_bytes() == b"\xff\xfe odd\n.skyplan/\ncdktf.out/\n"


def test_nothing_is_written_through_a_link_or_over_a_folder(repo: Path, run: Run) -> None:
    outside = repo.parent / "outside"
    outside.mkdir()
    (repo / ".github").symlink_to(outside)
    (repo / "jobs").write_text("a file")
    (repo / "schemas" / "job.schema.json").mkdir(parents=True)
    before = tree(repo)
    code, out, err = run("init")
    assert (code, out, tree(repo), list(outside.iterdir())) == (1, "", before, [])
    assert err.count("SKY-APPLY-345") == 3


def test_a_dangling_link_is_no_empty_place(repo: Path, run: Run) -> None:
    (repo / "skyplan.yaml").symlink_to(repo.parent / "nowhere.yaml")
    code, _, err = run("init")
    assert code == 1
    assert "skyplan.yaml: is a symbolic link to" in err
    assert not (repo.parent / "nowhere.yaml").exists()


@pytest.mark.parametrize("shut", ["schemas", "."])
def test_a_folder_that_cannot_be_written_leaves_nothing_behind(repo: Path, shut: str) -> None:
    plainly = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] if os.geteuid() == 0 else []
    if plainly and not shutil.which("setpriv"):
        pytest.skip("root may write anywhere, and there is no setpriv")
    (repo / "schemas").mkdir()
    (repo / shut).chmod(stat.S_IRUSR | stat.S_IXUSR)
    before = sorted(p.relative_to(repo).as_posix() for p in repo.rglob("*"))
    words = [*plainly, sys.executable, "-c", "from planner.cli.entry import run; run()", "init"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=repo, env=env, capture_output=True, text=True, check=False)
    (repo / shut).chmod(stat.S_IRWXU)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Permission denied" in done.stderr
    assert sorted(p.relative_to(repo).as_posix() for p in repo.rglob("*")) == before


def test_where_one_file_fails_no_folder_stays(repo: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.app import files

    whole = files._put_beside

    def full(path: Path, data: bytes, beside: dict[Path, Path]) -> None:
        if path.name == "skyplan.yml":
            raise files._unwritable(path, OSError(28, "No space left on device"))
        whole(path, data, beside)

    monkeypatch.setattr(files, "_put_beside", full)
    before = tree(repo)
    code, _, err = run("init")
    assert code == 1
    assert "No space left" in err
    assert tree(repo) == before
    assert not (repo / "jobs").exists()
    assert not (repo / ".github").exists()


@pytest.mark.parametrize(
    "words", [("nowhere",), ("live/main.tf",), ("--cloud", "gpc"), ("--account", "aws"), ("--backend", "s4")]
)
def test_flags_that_are_none(repo: Path, run: Run, words: tuple[str, ...]) -> None:
    before = tree(repo)
    code, out, err = run("init", *words)
    assert (code, out, tree(repo)) == (1, "", before)
    assert err


def test_a_flag_of_backend_is_read_as_skyplan_yaml_is(repo: Path, run: Run) -> None:
    code, _, err = run("init", "--backend", "s3:bucket=acme,access_key=AKIA")
    assert code == 1
    assert "SKY-SPEC-111" in err
    assert "SKY-SPEC-103" in err
    assert run("init", "--backend", "gcs:bucket=acme-states")[0] == 0
    assert project(repo).backend.settings == (("bucket", "acme-states"),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('terraform {\n backend "http" { address = "https://x" }\n}', "none that skyplan writes"),
        ('terraform {\n backend "s3" {}\n}', "does not say bucket, region"),
        ('terraform {\n cloud { organization = "acme" }\n}', "no backend was found"),
        ('terraform {\n backend "s3" {', "cannot be read"),
    ],
)
def test_a_backend_that_cannot_be_taken_over_is_said(repo: Path, run: Run, text: str, says: str) -> None:
    (repo / "live" / "main.tf").write_text(text)
    code, _, err = run("init")
    assert code == 0
    assert says in err
    assert "backend" not in yaml.safe_load((repo / "skyplan.yaml").read_text())


def test_what_a_partial_backend_lacks_is_in_its_one_file(repo: Path, run: Run) -> None:
    (repo / "live" / "main.tf").write_text('terraform {\n backend "gcs" {}\n}\n')
    (repo / "live" / "prod.tfbackend").write_text('bucket = "acme-states"\nprefix = "x"\n')
    run("init")
    assert project(repo).backend.settings == (("bucket", "acme-states"),)


def test_of_several_backends_the_usual_one_is_taken_and_the_others_named(repo: Path, run: Run) -> None:
    for name, bucket in (("a", "seldom"), ("b", "often"), ("c", "often")):
        (repo / name).mkdir()
        (repo / name / "main.tf").write_text(MAIN.replace("acme-tfstate", bucket))
    (repo / "live" / "main.tf").write_text(MAIN.replace("acme-tfstate", "often"))
    _, _, err = run("init")
    assert dict(project(repo).backend.settings)["bucket"] == "often"
    assert "a/main.tf:3" in err


def test_stacks_that_synth_wrote_are_not_taken_for_the_repositorys_own(repo: Path, run: Run) -> None:
    for name in ("net", "acc", "cmp"):
        (repo / "terraform" / name).mkdir(parents=True)
        stack = (
            HEADER + 'terraform {\n backend "gcs" {}\n}\nprovider "aws" {\n allowed_account_ids = ["999999999999"]\n}\n'
        )
        (repo / "terraform" / name / "main.tf").write_text(stack)
    _, out, err = run("init")
    assert project(repo).backend.kind == "s3"
    assert "999999999999" not in out + err
    assert "terraform/" not in err


def test_accounts_come_from_tools_settings_where_terraform_says_none(repo: Path, run: Run, home: Path) -> None:
    (repo / "live" / "main.tf").write_text(
        'provider "aws" {\n profile = "prod"\n}\nprovider "google" {}\nprovider "azurerm" {\n features {}\n}\n'
    )
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text("[profile prod]\nsso_account_id = 210987654321\nregion = eu-north-1\n")
    (home / ".aws" / "credentials").write_text("[prod]\naws_secret_access_key = hush-hush\n")
    gcloud = home / ".config" / "gcloud" / "configurations"
    gcloud.mkdir(parents=True)
    (gcloud / "config_default").write_text("[core]\nproject = acme-ml-prod\naccount = me@example.com\n")
    (home / ".azure").mkdir()
    subscription = {"id": "00000000-0000-0000-0000-00000000000a", "isDefault": True, "user": {"name": "me@example.com"}}
    (home / ".azure" / "azureProfile.json").write_text("\ufeff" + json.dumps({"subscriptions": [subscription]}))
    assert run("init")[0] == 0
    assert {t.cloud.value: t.account for t in project(repo).targets} == {
        "aws": "210987654321",
        "gcp": "acme-ml-prod",
        "azure": "00000000-0000-0000-0000-00000000000a",
    }
    written = (repo / "skyplan.yaml").read_text()
    assert "hush" not in written
    assert "me@example.com" not in written
    assert str(home) not in written


def test_nebius_without_a_project_is_left_out_or_asked_for(repo: Path, run: Run) -> None:
    (repo / "live" / "main.tf").write_text(MAIN + 'provider "nebius" {}\n')
    code, _, err = run("init", "--dry-run")
    assert (code, "nebius was left out" in err) == (0, True)
    code, _, err = run("init", "--cloud", "nebius")
    assert code == 1
    assert "--account nebius=" in err


def test_gitlab_by_its_remote_and_its_file(repo: Path, run: Run) -> None:
    git(repo, "remote", "set-url", "origin", "https://gitlab.example.com/ml/infra.git")
    (repo / ".gitlab-ci.yml").write_text("include:\n  - local: other.yml\nstages: [test]\n")
    code, out, _ = run("init", "--json")
    said = {f["path"]: f for f in json.loads(out)["files"]}
    assert code == 0
    assert said[".gitlab/skyplan.yml"]["action"] == "created"
    assert "+  - local: .gitlab/skyplan.yml" in said[".gitlab-ci.yml"]["diff"]
    assert yaml.safe_load((repo / ".gitlab/skyplan.yml").read_text())["skyplan-review"]["extends"] == ".skyplan"
    assert "foundation" not in (repo / "skyplan.yaml").read_text(), "the issuer of a forge of one's own is not known"


def test_the_workflow_uses_the_action_with_inputs_that_it_has(repo: Path, run: Run) -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    theirs = yaml.safe_load((ROOT / "ci" / "github" / "skyplan.yml").read_text())["jobs"]["review"]["steps"]
    commit = "0123456789abcdef0123456789abcdef01234567"
    assert run("init", "--source", f"git+https://github.com/acme/skyplan.git@{commit}")[0] == 0
    steps = yaml.safe_load((repo / ".github/workflows/skyplan.yml").read_text())["jobs"]["review"]["steps"]
    assert steps[-1]["uses"] == f"acme/skyplan@{commit}"
    assert set(steps[-1]["with"]) <= set(action["inputs"])
    assert steps[0] == theirs[0]
    (repo / ".github/workflows/skyplan.yml").unlink()
    _, _, err = run("init")
    steps = yaml.safe_load((repo / ".github/workflows/skyplan.yml").read_text())["jobs"]["review"]["steps"]
    own, guard, *fetched = steps
    assert [s["uses"].partition("@")[0] for s in (own, *fetched)] == [
        "actions/checkout",
        "actions/checkout",
        "./.skyplan-action",
    ]
    for name in ("SKYPLAN_REPOSITORY", "SKYPLAN_COMMIT"):
        assert f"vars.{name} == ''" in guard["if"], "an absent one would fetch this repository, or an unreviewed commit"
        assert name in guard["run"]
    assert "SKYPLAN_REPOSITORY" in err


def test_gitlabs_job_is_the_templates(repo: Path, run: Run) -> None:
    assert run("init", "--forge", "gitlab", "--source", "git+https://git.example.com/skyplan@abc")[0] == 0
    ours = yaml.safe_load((repo / ".gitlab/skyplan.yml").read_text())
    theirs = yaml.safe_load((ROOT / "ci" / "gitlab" / "skyplan.gitlab-ci.yml").read_text())
    assert ours[".skyplan"].pop("variables") == theirs[".skyplan"].pop("variables") | {
        "SKYPLAN_TAG": "infra-live",
        "SKYPLAN_SOURCE": "git+https://git.example.com/skyplan@abc",
    }
    assert ours == theirs


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_what_is_written_for_ci_is_of_the_forges_own_schema(repo: Path, run: Run, forge: str) -> None:
    run("init", "--forge", forge)
    kind, file = {
        "github": ("github-workflows", ".github/workflows/skyplan.yml"),
        "gitlab": ("gitlab-ci", ".gitlab/skyplan.yml"),
    }[forge]
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{kind}", str(repo / file)]
    if forge == "gitlab":
        words[5:5] = ["--data-transform", "gitlab-ci"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_ci_where_none_is_wanted_or_known(repo: Path, run: Run) -> None:
    assert run("init", "--no-ci")[0] == 0
    assert not (repo / ".github").exists()
    git(repo, "remote", "set-url", "origin", "https://git.example.com/ml/infra.git")
    assert "--forge github or --forge gitlab" in run("init")[2]


def test_in_a_folder_of_a_larger_repository(repo: Path, run: Run) -> None:
    (repo / "ml").mkdir()
    assert run("init", "ml")[0] == 0
    assert dict(project(repo / "ml").backend.settings)["bucket"] == "acme-tfstate"
    assert "../live/main.tf:3" in (repo / "ml" / "skyplan.yaml").read_text()
    workflow = yaml.safe_load((repo / ".github/workflows/skyplan.yml").read_text())
    assert workflow["jobs"]["review"]["steps"][-1]["with"]["working-directory"] == "ml"
    git(repo, "rm", "-rq", "--cached", "--ignore-unmatch", ".github")
    assert run("init", "ml", "--forge", "gitlab")[0] == 0
    job = yaml.safe_load((repo / ".gitlab/skyplan.yml").read_text())[".skyplan"]
    assert job["script"][0] == "cd -- ml"
    assert job["artifacts"]["paths"] == ["ml/skyplan-review/"]


def test_outside_of_git(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "12 Odd_Näme"
    folder.mkdir()
    monkeypatch.chdir(folder)
    code, out, err = run("init")
    assert code == 0
    assert "no git repository" in err
    assert project(folder).name == "odd-n-me"
    assert "git init &&" in out


class AsEditorsRead(yaml.SafeLoader):
    """YAML 1.2, in which `on` is a word."""


AsEditorsRead.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in rows if tag != "tag:yaml.org,2002:bool" or first in "tfTF"]
    for first, rows in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@pytest.mark.parametrize("name", ["skyplan.yaml", "jobs/example.yaml"])
def test_editors_find_the_schemas_that_files_name(repo: Path, run: Run, name: str) -> None:
    run("init")
    text = (repo / name).read_text()
    schema = (repo / name).parent / text.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    jsonschema.validate(yaml.load(text, AsEditorsRead), json.loads(schema.read_text()))


def test_a_cdktf_json_only_where_it_is_wanted(repo: Path, run: Run) -> None:
    run("init", "--cdktf")
    assert json.loads((repo / "cdktf.json").read_text())["app"] == "skyplan synth"


@pytest.mark.parametrize("name", [b"d\xff", b"d\nmax_usd_total: 9", "d\u2028e".encode(), b"d\x1b[2J"])
def test_a_folders_name_ends_no_comment(repo: Path, run: Run, name: bytes) -> None:
    Path("live").rename(os.fsdecode(name))
    code, _, err = run("init")
    assert code == 0, err
    assert project(repo).backend.kind == "s3"
    assert (repo / "skyplan.yaml").read_text().isascii()


@pytest.mark.parametrize("name", ["a b", "-x", "$(touch pwned)", "it's: #1", 'a"b', "a\\b"])
def test_a_job_of_gitlab_goes_into_its_folder_whatever_its_name(repo: Path, run: Run, name: str) -> None:
    (repo / name).mkdir()
    assert run("init", "--forge", "gitlab", "--", name)[0] == 0
    job = yaml.safe_load((repo / ".gitlab/skyplan.yml").read_text())[".skyplan"]
    command = ["sh", "-c", f"{job['script'][0]} && pwd"]
    done = subprocess.run(command, cwd=repo, capture_output=True, text=True, check=True)
    assert done.stdout == f"{repo / name}\n"
    assert job["artifacts"]["paths"] == [f"{name}/skyplan-review/"]
    assert not list(repo.rglob("pwned"))


def test_files_that_are_only_looked_at_may_be_of_any_encoding(repo: Path, run: Run) -> None:
    owners, ours = "# J\xf6rg\n* @acme/all\n".encode("latin-1"), "# \xfcber\nstages: [test]\n".encode("latin-1")
    (repo / "CODEOWNERS").write_bytes(owners)
    (repo / ".gitlab-ci.yml").write_bytes(ours)
    code, out, err = run("init", "--forge", "gitlab")
    assert code == 0, err
    assert "+/skyplan.yaml @acme/all" in out
    assert "+  - local: .gitlab/skyplan.yml" in out
    assert (repo / "CODEOWNERS").read_bytes() == owners
    assert (repo / ".gitlab-ci.yml").read_bytes() == ours


def test_another_repository_in_gits_environment_is_not_written_to(
    repo: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a hook of git's."""
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    monkeypatch.setenv("GIT_DIR", str(repo / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(repo))
    before = tree(repo)
    assert run("init", "--forge", "github")[0] == 0
    assert tree(repo) == before
    assert (other / ".github" / "workflows" / "skyplan.yml").is_file()


@pytest.mark.parametrize("text", ["null", "[]", '{"subscriptions": null}', '{"subscriptions": [null]}', "{"])
def test_settings_of_a_tool_that_are_none_of_its_own_say_nothing(repo: Path, run: Run, home: Path, text: str) -> None:
    (home / ".azure").mkdir()
    (home / ".azure" / "azureProfile.json").write_text(text)
    (home / ".nebius").mkdir()
    (home / ".nebius" / "config.yaml").write_text(text)
    code, _, err = run("init", "--cloud", "azure")
    assert code == 0, err
    assert "nothing says which account of azure is meant" in err


@pytest.mark.parametrize("words", [("init", "--cloud", "aws,azure,gcp"), ("doctor", "--offline", "--cloud", "aws")])
def test_a_user_without_a_home_is_one_without_settings(
    repo: Path, run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """As in containers of CI that run under any number: nothing says where its home is."""

    def nowhere(path: str | Path) -> str:
        return os.fspath(path)

    monkeypatch.setattr(os.path, "expanduser", nowhere)  # as it answers then: the text as it is
    monkeypatch.setenv("AWS_CONFIG_FILE", "~nobody/config")
    monkeypatch.setenv("TF_PLUGIN_CACHE_DIR", "~/cache")
    code, out, err = run(*words)
    assert "Traceback" not in err
    assert "RuntimeError" not in out + err
    assert code == 0 or words[0] == "doctor"
    assert repo.is_dir()
