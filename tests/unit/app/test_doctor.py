"""R22, R23: each row of `skyplan doctor`: what it says when things are well, and what when they are not.  Clouds are fakes here; emulators are elsewhere."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from planner.app import doctor, doctor_checks, doctor_clouds, doctor_files, doctor_record, doctor_services, doctor_tools
from planner.app.doctor import Check, Row, State
from planner.cli.entry import call
from planner.clouds import errors_map
from planner.clouds.checkup.port import Caller, Right, Seen
from planner.clouds.feeds.port import Fed
from planner.model.errors import SkyplanError
from planner.model.project import Backend, ControlPlane, Project
from planner.model.readings import QuotaReading
from planner.render import doctor_text
from planner.render.text import Paint
from planner.state.engine import HEAD, open_engine, sqlite_url

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
ACCOUNT = "123456789012"
JOB = """
name: train
resources: {accelerators: "L40S:1", capacity: [on_demand]}
work: {hours: 2, on: "L40S:1"}
run: python train.py
constraints: {regions: [us-east-1], stop_after: 8h}
"""
PROJECT = f"""
project: acme
targets: [{{name: prod, cloud: aws, account: "{ACCOUNT}", deployer_role: "arn:aws:iam::{ACCOUNT}:role/x/deployer"}}]
backend: {{s3: {{bucket: acme-tfstate, region: us-east-1}}}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [n for n in os.environ if n.startswith(("SKYPLAN_", "TF_", "AWS_", "GIT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "repo" / "jobs").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "repo")
    return tmp_path / "repo"


@pytest.fixture
def repo(here: Path) -> Path:
    (here / "skyplan.yaml").write_text(PROJECT)
    (here / "jobs" / "train.yaml").write_text(JOB)
    return here


def only(rows: list[Row]) -> Row:
    (row,) = rows
    return row


# how checks are run


def test_rows_come_in_the_order_of_their_checks_and_none_hides_another() -> None:
    began, over = threading.Event(), threading.Event()
    seen: list[str] = []

    def waits() -> list[Row]:
        began.set()
        over.wait(60)
        return []

    def falls() -> list[Row]:
        began.wait(60)
        raise ZeroDivisionError("by\nnought")

    def refuses() -> list[Row]:
        raise errors_map.no_credentials("none")

    rows = doctor.examine(
        [
            Check("slow", waits),
            Check("falls", falls),
            Check("refuses", refuses),
            Check("two", lambda: [doctor.ok("a", "x"), doctor.warn("b", "y", "z")]),
            Check("none", list),
        ],
        seconds=30,
        advance=seen.append,
        clock=lambda: 100.0 if len(seen) >= 4 else 0.0,  # time passes when all others are done
    )
    over.set()
    assert [(r.check, r.state.value, r.code) for r in rows] == [
        ("slow", "fail", "SKY-APPLY-346"),
        ("falls", "fail", ""),
        ("refuses", "fail", "SKY-APPLY-317"),
        ("a", "ok", ""),
        ("b", "warn", ""),
    ]
    assert rows[0].fact == "no answer in 30 s"
    assert "ZeroDivisionError: by nought" in rows[1].fact
    assert sorted(seen) == ["falls", "none", "refuses", "slow", "two"]


def test_more_checks_than_threads_all_end_even_where_some_hang() -> None:
    over = threading.Event()
    hanging: list[int] = []

    def waits() -> list[Row]:
        hanging.append(1)
        over.wait(60)
        return []

    checks = [Check(f"w{n}", waits) for n in range(doctor.MOST_AT_ONCE)]
    checks += [Check(f"c{n}", lambda: [doctor.ok("c", "x")]) for n in range(30)]
    rows = doctor.examine(checks, seconds=30, clock=lambda: 100.0 if len(hanging) == doctor.MOST_AT_ONCE else 0.0)
    over.set()
    assert [r.state.value for r in rows] == ["fail"] * doctor.MOST_AT_ONCE + ["ok"] * 30


@pytest.mark.parametrize(
    ("states", "worst"), [([], "ok"), (["skipped"], "ok"), (["ok", "warn"], "warn"), (["fail", "warn"], "fail")]
)
def test_the_worst_of_all(states: list[str], worst: str) -> None:
    assert doctor.worst(Row(check="", state=State(s), fact="") for s in states).value == worst


def test_what_people_read_and_what_machines_read() -> None:
    rows = [
        doctor.ok("git", "is there"),
        doctor.fail("clock", "is wrong", "set it", "SKY-APPLY-348"),
        doctor.warn("prices", "are old", "refresh"),
        doctor.fail("clock 2", "is wrong", "set it", "SKY-APPLY-348"),
        doctor.skipped("agent", "none"),
    ]
    text = doctor_text.lines(rows, Paint(on=False))
    assert text[0] == "ok       git      is there"
    assert text[1] == "fail     clock    is wrong [SKY-APPLY-348]"
    assert text[2].strip() == "mend: set it"
    assert text[-1] == "1 ok, 1 warn, 2 fail, 1 skipped"
    assert doctor_text.hints(rows) == ["set it   # clock: is wrong", "refresh   # prices: are old"]
    said = doctor.document(rows)
    assert said["counts"] == {"ok": 1, "warn": 1, "fail": 2, "skipped": 1}
    assert said["checks"][0] == {"check": "git", "state": "ok", "fact": "is there", "mend": None, "code": None}


# programs


def program(folder: Path, name: str, script: str) -> dict[str, str]:
    """An environment whose PATH has that program alone."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def says(version: str) -> str:
    return f"""echo '{{"terraform_version": "{version}", "provider_selections": {{}}}}'"""


@pytest.mark.parametrize(
    ("name", "script", "state", "words"),
    [
        ("terraform", says("1.11.4"), "ok", "terraform 1.11.4"),
        ("terraform", says("1.9.8"), "fail", "cannot lock states in S3"),
        ("terraform", says("2.0.0-beta1"), "warn", "was not tried"),
        ("terraform", "echo Terraform v1.11.4", "ok", "1.11.4"),
        ("terraform", "echo segmentation fault >&2; exit 139", "fail", "segmentation fault"),
        ("terraform", "exit 1", "fail", "no answer"),
        ("tofu", says("1.10.6"), "warn", "tofu 1.10.6"),
    ],
)
def test_terraform_of_every_age(tmp_path: Path, name: str, script: str, state: str, words: str) -> None:
    backend = Backend(kind="s3", settings=(("bucket", "b"), ("region", "r")))
    row = only(doctor_tools.terraform(program(tmp_path, name, script), backend))
    assert (row.state.value, words in row.fact) == (state, True), row
    assert (row.mend != "") == (state != "ok")


def test_an_old_terraform_with_a_table_is_old_all_the_same(tmp_path: Path) -> None:
    table = Backend(kind="s3", settings=(("bucket", "b"), ("dynamodb_table", "locks"), ("region", "r")))
    row = only(doctor_tools.terraform(program(tmp_path, "terraform", says("1.9.8")), table))
    assert (row.state, "too old" in row.fact) == (State.FAIL, True)


def test_no_terraform_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stacks.binary.importlib.util.find_spec", lambda name: None)
    row = only(doctor_tools.terraform({"PATH": str(tmp_path)}, Backend()))
    assert (row.state, row.code) == (State.FAIL, "SKY-APPLY-307")
    row = only(doctor_tools.terraform({"PATH": str(tmp_path), "SKYPLAN_TERRAFORM": "nowhere"}, Backend()))
    assert "SKYPLAN_TERRAFORM names nowhere" in row.fact


def test_terraform_is_asked_for_its_version_and_nothing_else(tmp_path: Path) -> None:
    log = tmp_path / "asked"
    script = f'echo "$@ $CHECKPOINT_DISABLE $(ls)" >> {log}; {says("1.11.4")}'
    environment = {**program(tmp_path, "terraform", script), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    doctor_tools.terraform(environment, Backend())
    assert log.read_text().split() == ["version", "-json", "1"], "in an empty folder"


def test_where_providers_come_from(tmp_path: Path) -> None:
    home = tmp_path / "home"
    row = only(doctor_tools.providers(("aws", "gcp"), {}, home))
    assert (row.state, "fetched from registry.terraform.io" in row.fact) == (State.OK, True)
    mirror = tmp_path / "mirror" / "registry.terraform.io" / "hashicorp" / "aws" / "5.100.0"
    mirror.mkdir(parents=True)
    rc = f'provider_installation {{\n filesystem_mirror {{\n path = "{tmp_path}/mirror"\n }}\n}}\n'
    (home / ".terraformrc").write_text(rc)
    row = only(doctor_tools.providers(("aws",), {}, home))
    assert row.fact == "on this machine: hashicorp/aws"
    row = only(doctor_tools.providers(("aws", "nebius"), {}, home))
    assert (row.state, "nebius/nebius is in no mirror" in row.fact) == (State.FAIL, True)
    (home / ".terraformrc").write_text(rc.replace("}\n}", "}\n direct {}\n}"))
    assert only(doctor_tools.providers(("aws", "nebius"), {}, home)).state is State.OK
    (home / ".terraformrc").write_text("provider_installation {")
    assert only(doctor_tools.providers(("aws",), {}, home)).state is State.WARN
    row = only(doctor_tools.providers(("aws",), {"TF_CLI_CONFIG_FILE": str(tmp_path / "none.rc")}, home))
    assert "which is not there" in row.fact
    cache = {"TF_PLUGIN_CACHE_DIR": str(tmp_path / "mirror")}
    (home / ".terraformrc").unlink()
    assert "on this machine" in only(doctor_tools.providers(("aws",), cache, home)).fact


def test_extras_that_are_absent_are_named_in_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_tools, "installed", lambda extra: extra == "record")
    python, extras = doctor_tools.python(("record", "cdk", "aws"))
    assert (python.state, extras.state, extras.code) == (State.OK, State.WARN, "SKY-APPLY-316")
    assert extras.mend.endswith("[cdk,aws]'")


def test_an_extra_counts_by_what_it_brings() -> None:
    assert doctor_tools.installed("aws")
    doctor_tools.EXTRAS["none"] = ("no_such_package.inner",)
    try:
        assert not doctor_tools.installed("none")
    finally:
        del doctor_tools.EXTRAS["none"]


def test_node_is_new_enough_or_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path, "node", "echo v18.20.0")
    monkeypatch.setenv("SKYPLAN_NODE", str(tmp_path / "node"))
    assert only(doctor_tools.node()).state is State.FAIL
    program(tmp_path, "node", "echo v24.1.0")
    assert only(doctor_tools.node()).fact == "Node 24.1.0"
    monkeypatch.setattr(doctor_tools, "installed", lambda extra: False)
    assert only(doctor_tools.node()).state is State.SKIPPED


def test_git_that_would_commit_the_record(here: Path) -> None:
    assert only(doctor_tools.git(here)).mend == "git init"
    subprocess.run(["git", "init", "-q", str(here)], check=True)
    assert only(doctor_tools.git(here)).mend == "skyplan init"
    (here / ".gitignore").write_text(".skyplan/\n")
    assert only(doctor_tools.git(here)).state is State.OK


def test_git_that_does_not_read_anothers_repository(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    says = (
        "case $1 in --version) echo git version 2.39.5;; *) echo fatal: detected dubious ownership >&2; exit 128;; esac"
    )
    monkeypatch.setenv("PATH", program(tmp_path, "git", says)["PATH"])
    row = only(doctor_tools.git(here))
    assert (row.state, row.mend) == (State.FAIL, f"git config --global --add safe.directory {here}")
    (tmp_path / "git").unlink()
    assert "there is no git" in only(doctor_tools.git(here)).fact


# files


def read() -> doctor_files.Repository:
    return doctor_files.read(None, None, doctor_checks.JOBS)


def test_files_as_they_should_be(repo: Path) -> None:
    found = read()
    assert only(doctor_files.project(found)).fact == "skyplan.yaml: project acme, 1 target, state in s3"
    assert only(doctor_files.jobs(found)).fact == "1 job in 1 file"
    assert only(doctor_files.plans(found, Path("plans"))).state is State.SKIPPED


def test_an_empty_folder(here: Path) -> None:
    found = read()
    assert [only(doctor_files.project(found)).mend, only(doctor_files.jobs(found)).mend] == ["skyplan init"] * 2


def test_a_project_and_a_job_that_are_wrong(repo: Path) -> None:
    (repo / "skyplan.yaml").write_text("project: Acme\nwhat: 1\n")
    (repo / "jobs" / "bad.yaml").write_text("name: bad\n")
    found = read()
    row = only(doctor_files.project(found))
    assert (row.state, row.code[:9]) == (State.FAIL, "SKY-SPEC-")
    assert row.fact.startswith("skyplan.yaml:1: ")
    assert "(and 1 more)" in row.fact
    row = only(doctor_files.jobs(found))
    assert (row.state, row.mend) == (State.FAIL, "skyplan plan jobs/bad.yaml")


def planned(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["plan", "jobs/train.yaml", "--out", "plans"]) == 0
    capsys.readouterr()


def test_plans_fresh_stale_and_edited(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    planned(capsys)
    row = only(doctor_files.plans(read(), Path("plans")))
    assert (row.state, row.fact) == (State.OK, "1 plan, of the files as they are")
    (repo / "jobs" / "train.yaml").write_text(JOB.replace("hours: 2", "hours: 3"))
    row = only(doctor_files.plans(read(), Path("plans")))
    assert (row.state, row.code) == (State.WARN, "SKY-APPLY-302")
    assert "train.plan.json (its job changed)" in row.fact
    (repo / "jobs" / "train.yaml").write_text(JOB)
    (repo / "skyplan.yaml").write_text(PROJECT + "max_usd_total: 7000\n")
    assert "changed" in only(doctor_files.plans(read(), Path("plans"))).fact
    (repo / "jobs" / "train.yaml").unlink()
    assert "its job is in no file here" in only(doctor_files.plans(read(), Path("plans"))).fact
    path = repo / "plans" / "train.plan.json"
    path.write_text(path.read_text().replace("g6e.xlarge", "g6e.2xlarge", 1))
    row = only(doctor_files.plans(read(), Path("plans")))
    assert (row.state, row.code) == (State.FAIL, "SKY-APPLY-301")


@pytest.mark.parametrize(
    ("as_of", "state", "code"),
    [
        ("2026-11-29", "ok", ""),
        ("2026-09-25", "warn", "SKY-CAT-109"),
        ("2026-11-30T12:00:30Z", "ok", ""),
        ("2026-12-01", "fail", "SKY-CAT-117"),
    ],
)
def test_prices_of_every_age(repo: Path, as_of: str, state: str, code: str) -> None:
    found = read()
    found = replace(found, market=replace(found.market, as_of=as_of))
    row = only(doctor_files.prices(found, NOW, project_file=None, offline=True))
    assert (row.state.value, row.code) == (state, code)


# the record


def test_a_record_that_is_not_there_is_not_made(here: Path) -> None:
    assert only(doctor_record.record()).state is State.SKIPPED
    assert not (here / ".skyplan").exists()


def made(here: Path) -> Path:
    path = here / ".skyplan" / "record.sqlite"
    open_engine(sqlite_url(path)).dispose()
    return path


def test_a_record_of_this_version(here: Path) -> None:
    path = made(here)
    before = path.read_bytes()
    row = only(doctor_record.record())
    assert (row.state, HEAD in row.fact) == (State.OK, True)
    assert path.read_bytes() == before


@pytest.mark.parametrize(("version", "state"), [("0001", "warn"), ("9999", "fail")])
def test_a_record_of_another_version_stays_so(here: Path, version: str, state: str) -> None:
    path = made(here)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = ?", (version,))
    database.close()
    assert only(doctor_record.record()).state.value == state
    assert not doctor_record.is_current()
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchone() == (version,)
    database.close()


@pytest.mark.parametrize("damage", ["no database", "cut", "torn page", "somebody else's"])
def test_a_record_that_is_broken(here: Path, damage: str) -> None:
    path = made(here)
    whole = path.read_bytes()
    match damage:
        case "no database":
            path.write_bytes(b"this is no database at all, " * 200)
        case "cut":
            path.write_bytes(whole[: len(whole) // 2])
        case "torn page":
            path.write_bytes(whole[:4096] + bytes(4096 * 3) + whole[4096 * 4 :])
        case _:
            path.unlink()
            with sqlite3.connect(path) as database:
                database.execute("CREATE TABLE mine (a)")
            database.close()
    for beside in path.parent.glob("record.sqlite-*"):
        beside.unlink()
    row = doctor_record.record()[-1]
    assert (row.state, row.code, row.mend != "") == (State.FAIL, "SKY-APPLY-319", True), row


def test_a_record_on_a_network_file_system(here: Path, tmp_path: Path) -> None:
    made(here)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"x / ext4 rw 0 0\nserver:/home {here} nfs4 rw 0 0\nother /else nfs rw 0 0\n")
    warned, well = doctor_record.record(mounts)
    assert (warned.state, "lies on nfs4" in warned.fact, well.state) == (State.WARN, True, State.OK)
    mounts.write_text("x / ext4 rw 0 0\nother /else nfs rw 0 0\n")
    assert [row.state for row in doctor_record.record(mounts)] == [State.OK]


@pytest.mark.parametrize("url", ["nonsense", "mysql://me:hush@db.example/x", "postgresql://me:hush@127.0.0.1:1/x"])
def test_a_database_that_cannot_be_used(here: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("SKYPLAN_DATABASE_URL", url)
    row = only(doctor_record.record())
    assert (row.state, row.code) == (State.FAIL, "SKY-APPLY-319")
    assert "hush" not in row.fact + row.mend


# services


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.usefixtures("socket_enabled")
def test_services_that_answer_and_that_do_not() -> None:
    assert only(doctor_services.services(Project())).state is State.SKIPPED
    with answering(200, b'{"ok": true}') as well, answering(503, b"no") as ill:
        both = doctor_services.services(Project(control_plane=ControlPlane(url=well, broker=ill)))
    assert [(r.check, r.state.value) for r in both] == [("control plane", "ok"), ("broker", "fail")]
    assert "says 503" in both[1].fact
    gone = only(doctor_services.services(Project(control_plane=ControlPlane(url="http://127.0.0.1:1"))))
    assert (gone.state, gone.code) == (State.FAIL, "SKY-RUN-510")


@pytest.mark.usefixtures("socket_enabled")
def test_the_agent_is_the_reviewed_one_or_another(monkeypatch: pytest.MonkeyPatch) -> None:
    assert only(doctor_services.agent(Project())).state is State.SKIPPED
    assert (
        only(doctor_services.agent(Project(agent_url="s3://a/agent.pyz", agent_sha256="0" * 64))).state is State.SKIPPED
    )
    body = b"#!/usr/bin/env python3\n"
    digest = hashlib.sha256(body).hexdigest()
    with answering(200, body) as url:
        plain = doctor_services.urllib.request.urlopen
        monkeypatch.setattr(
            doctor_services.urllib.request,
            "urlopen",
            lambda u, **k: plain(u.replace("https://agent.example", url), **k),
        )
        there = Project(agent_url="https://agent.example/agent.pyz", agent_sha256=digest)
        assert only(doctor_services.agent(there)).state is State.OK
        row = only(doctor_services.agent(replace(there, agent_sha256="0" * 64)))
        assert (row.state, digest in row.fact) == (State.FAIL, True)
    assert only(doctor_services.agent(there)).state is State.FAIL


# clouds


class Cloud:
    """Checkup, checkups and feeds of one account, as a test wants them."""

    def __init__(self) -> None:
        who = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/ada"
        self.seen = Seen(caller=Caller(who=who, account=ACCOUNT), skew_seconds=0.2)
        self.refused: SkyplanError | None = None
        self.may: tuple[Right, ...] = (Right(operation="ListServiceQuotas"),)
        self.listing: SkyplanError | None = None
        self.limit, self.used = 64.0, None
        self.capacity = "on_demand"
        self.closed = 0

    def checkup(self, where: object) -> Cloud:
        if self.refused:
            raise self.refused
        return self

    def feed(self, where: object) -> Cloud:
        return self.checkup(where)

    def caller(self) -> Seen:
        return self.seen

    def rights(self, region: str, instance_type: str) -> tuple[Right, ...]:
        return self.may

    def backend(self, backend: Backend, prefix: str) -> None:
        assert prefix == "skyplan/acme/"
        if self.listing:
            raise self.listing

    def quotas(self, wanted) -> Iterator[Fed]:
        for region in wanted.regions:
            quota = QuotaReading(
                cloud="aws",
                region=region,
                name="L-DB2E81BA",
                capacity=self.capacity,
                unit="vcpus",
                limit=self.limit,
                used=self.used,
                observed_at="2026-11-30T12:00:00Z",
                source="test",
                instance_types=wanted.instance_types[region],
            )
            yield Fed(region=region, quotas=(quota,))

    def close(self) -> None:
        self.closed += 1


def rows(cloud: Cloud) -> dict[str, Row]:
    ports = doctor_checks.Ports(checkups=cloud, feeds=cloud, environment={"PATH": os.environ["PATH"]})
    found = doctor.examine(doctor_checks.checks(doctor_checks.Asked(now=NOW), ports), seconds=60)
    return {row.check: row for row in found}


def test_a_cloud_as_it_should_be(repo: Path) -> None:
    cloud = Cloud()
    found = rows(cloud)
    mine = {k: v for k, v in found.items() if "aws:" in k or k == "backend"}
    assert {row.state.value for row in mine.values()} == {"ok"}, mine
    assert "(the target's deployer)" in found["credentials aws:prod"].fact
    assert cloud.closed == 2, "of the account and of the backend"


def test_another_account_fails_unless_roles_lead_into_the_target(repo: Path) -> None:
    cloud = Cloud()
    cloud.seen = Seen(caller=Caller(who="arn:aws:iam::999999999999:user/ada", account="999999999999"), skew_seconds=0)
    assert rows(cloud)["credentials aws:prod"].state is State.WARN
    (repo / "skyplan.yaml").write_text(
        PROJECT.replace(f', deployer_role: "arn:aws:iam::{ACCOUNT}:role/x/deployer"', "")
    )
    assert rows(cloud)["credentials aws:prod"].code == "SKY-APPLY-347"


@pytest.mark.parametrize(
    ("skew", "state"),
    [(None, "skipped"), (0.4, "ok"), (59, "ok"), (61, "warn"), (-299, "warn"), (300, "fail"), (-4000, "fail")],
)
def test_clocks(repo: Path, skew: float | None, state: str) -> None:
    cloud = Cloud()
    cloud.seen = replace(cloud.seen, skew_seconds=skew)
    assert rows(cloud)["clock aws:prod"].state.value == state


def test_refused_by_a_wrong_clock_is_mended_by_the_clock(repo: Path) -> None:
    cloud = Cloud()
    cloud.seen = Seen(error=errors_map.aws_error("GetCallerIdentity", "SignatureDoesNotMatch", "x"), skew_seconds=900)
    found = rows(cloud)
    assert found["credentials aws:prod"].mend == found["clock aws:prod"].mend == "sudo timedatectl set-ntp true"


def test_rights(repo: Path) -> None:
    cloud = Cloud()
    cloud.may = (Right(operation="A"), Right(operation="B", error=errors_map.aws_error("B", "AccessDenied", "no")))
    assert "may not call B" in rows(cloud)["rights aws:prod"].fact
    cloud.may = (Right(operation="A", error=errors_map.unreachable("A", "silence")),)
    row = rows(cloud)["rights aws:prod"]
    assert (row.state, row.code) == (State.WARN, "SKY-APPLY-326")


def test_no_credentials_fail_a_target_and_are_skipped_where_nobody_named_one(repo: Path) -> None:
    cloud = Cloud()
    cloud.refused = errors_map.no_credentials("none found")
    found = rows(cloud)
    assert found["credentials aws:prod"].state is found["quotas aws:prod"].state is State.FAIL
    assert found["backend"].mend.startswith("aws sso login")
    (repo / "skyplan.yaml").write_text("project: acme\n")
    found = rows(cloud)
    assert found["credentials aws:default"].state is State.SKIPPED
    assert not [name for name, row in found.items() if "default" in name and row.state in {State.FAIL, State.WARN}]
    cloud.refused = errors_map.missing("AWS", "boto3", "aws")
    (repo / "skyplan.yaml").write_text(PROJECT)
    found = rows(cloud)
    assert found["credentials aws:prod"].state is State.WARN
    asked = {found[name].mend for name in ("backend", "credentials aws:prod", "quotas aws:prod")}
    assert asked == {"pip install 'CHECKOUT_OF_SKYPLAN[aws]'"}, "one line of --fix-hints, as the row of extras says it"


@pytest.mark.parametrize(
    ("limit", "used", "state"),
    [(64.0, None, "ok"), (4.0, None, "ok"), (3.0, None, "fail"), (64.0, 62.0, "fail"), (0.0, 0.0, "fail")],
)
def test_quotas_against_what_jobs_need(repo: Path, limit: float, used: float | None, state: str) -> None:
    cloud = Cloud()
    cloud.limit, cloud.used = limit, used
    row = rows(cloud)["quotas aws:prod"]
    assert row.state.value == state, row
    if state == "fail":
        assert "train needs 4 for 1 x g6e.xlarge on-demand" in row.fact
        assert f"--desired-value {int((used or 0) + 4)} " in row.mend


def test_a_quota_of_another_kind_of_capacity_is_none(repo: Path) -> None:
    cloud = Cloud()
    cloud.capacity = "spot"
    assert "no quota is told" in rows(cloud)["quotas aws:prod"].fact


def test_where_another_of_a_jobs_first_places_has_room_a_short_quota_warns() -> None:
    need = doctor_clouds.Need(
        job="a", region="r", instance_type="g6e.xlarge", capacity="on_demand", nodes=1, first=True
    )
    other = replace(need, region="s", first=False)
    quota = next(iter(Cloud().quotas(_wanted("r")))).quotas[0]
    from planner.app.inputs import load_market
    from planner.model.offer import Cloud as Kind
    from planner.model.project import Target

    account = doctor_clouds.Account(target=Target(name="prod", cloud=Kind.AWS), wanted=_wanted("r", "s"))
    types = {t.name: t for t in load_market().types}
    found = doctor_clouds._judged(
        account, [need, other], [replace(quota, limit=0.0), replace(quota, region="s")], types
    )
    assert [row.state for row in found] == [State.WARN]
    found = doctor_clouds._judged(account, [need, other], [replace(quota, limit=0.0)], types)
    assert [row.state for row in found] == [State.FAIL]


def _wanted(*regions: str):
    from planner.clouds.feeds.port import Wanted

    return Wanted(regions=regions, instance_types=dict.fromkeys(regions, ("g6e.xlarge",)), now=NOW)


def test_the_store_of_states(repo: Path) -> None:
    cloud = Cloud()
    cloud.listing = errors_map.aws_error("ListObjectsV2", "AccessDenied", "no")
    assert rows(cloud)["backend"].mend == "let this caller list and write skyplan/acme/ in acme-tfstate"
    cloud.listing = errors_map.aws_error("ListObjectsV2", "NoSuchBucket", "no")
    assert rows(cloud)["backend"].mend == "make acme-tfstate, or correct `backend` in skyplan.yaml"
    project = Project(
        name="acme",
        backend=Backend(kind="azurerm", settings=(("container_name", "c"), ("storage_account_name", "s"))),
    )
    cloud.listing = errors_map.http_error("Azure", "container list", 403, "AuthorizationPermissionMismatch", "no")
    assert only(doctor_clouds.backend(project, cloud)).state is State.WARN
    assert only(doctor_clouds.backend(Project(), cloud)).state is State.SKIPPED


def test_a_job_without_a_place(repo: Path) -> None:
    (repo / "jobs" / "train.yaml").write_text(JOB.replace("stop_after: 8h", "max_usd_total: 0.01, stop_after: 8h"))
    row = rows(Cloud())["placement"]
    assert (row.state, "no place for train" in row.fact) == (State.FAIL, True)


def test_a_fault_while_planning_is_one_row(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.app import plan

    monkeypatch.setattr(plan, "run", lambda *_: 1 / 0)
    found = rows(Cloud())
    assert "ZeroDivisionError" in found["placement"].fact
    assert found["credentials aws:prod"].state is State.OK
    assert found["quotas aws:prod"].state is State.SKIPPED


# the command


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = call(["doctor", "--offline", *words])
    return code, capsys.readouterr().out


def test_offline_asks_nothing_and_exits_by_the_worst(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    (repo / ".gitignore").write_text(".skyplan/\n")
    code, out = run(capsys, "--json")
    said = json.loads(out)
    assert code == (1 if said["state"] == "fail" else 0)
    assert [c["state"] for c in said["checks"] if c["check"] == "clouds"] == ["skipped"]
    (repo / "skyplan.yaml").write_text("what: 1\n")
    code, out = run(capsys)
    assert code == 1
    assert "fail     skyplan.yaml" in out


def test_only_what_to_do(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, "--fix-hints")
    assert "skyplan init   # " in out
    assert all("   # " in line for line in out.splitlines())


def test_warnings_fail_where_that_is_asked_for(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--fail-on", "warn")[0] == 1


def test_nothing_is_written_anywhere(repo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {p: p.read_bytes() for p in repo.rglob("*") if p.is_file()}
    run(capsys)
    assert {p: p.read_bytes() for p in repo.rglob("*") if p.is_file()} == before
