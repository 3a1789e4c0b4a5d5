"""The real command line, Terraform, AWS provider and CDK against an emulated AWS.  What is there is asked of its API, never of Terraform (R22, R24).

Each step holds only its own identity of the foundation, and every call is judged (`tests/e2e/identities.py`).
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.identities import Identities
from tests.e2e.judges import record
from tests.e2e.workspace import Workspace, terraform_pid
from tests.emulators.aws import Aws
from tests.emulators.terraform import Terraform

pytestmark = pytest.mark.terraform
Check = Callable[[Workspace, str], None]


@pytest.fixture
def workspace(tmp_path: Path, aws: Aws, terraform: Terraform) -> Workspace:
    return Workspace(tmp_path / "repo", aws, terraform, identities=Identities(aws))


def test_apply_status_lost_node_destroy(tmp_path: Path, aws: Aws, terraform: Terraform, as_written: Check) -> None:
    identities = Identities(aws, installed=False)
    workspace = Workspace(tmp_path / "repo", aws, terraform, identities=identities)
    workspace.found(terraform)
    assert identities.standing() == identities.expected()  # what the other tests are run with
    plan = workspace.plan()
    done = workspace.apply()
    assert done["run"]["status"] == "running"
    assert done["run"]["placement_id"] == plan["choice"]["placement_id"]
    assert {n["instance_id"] for n in done["run"]["nodes"]} == workspace.nodes()
    assert len(workspace.nodes()) == 2
    assert workspace.apply()["changed"] is False
    status = workspace.json("status")["jobs"][0]
    assert (status["run"]["id"], status["unfinished"]) == ("train-g1", False)

    lost = done["run"]["nodes"][1]
    workspace.aws.reclaim(lost["instance_id"])
    learnt = workspace.run("sync", "--detailed-exitcode", code=2)
    assert "lost r01 of train-g1" in learnt.stdout
    assert "1/2 (1 lost)" in workspace.run("status").stdout
    refused = workspace.json("apply", "plans/train.plan.json", "--again", code=1)
    assert [d["code"] for d in refused["diagnostics"]] == ["SKY-APPLY-318"]
    assert workspace.nodes() == {done["run"]["nodes"][0]["instance_id"]}

    workspace.run("destroy", "train", "--auto-approve")
    assert workspace.aws.leftovers() == []
    assert "nothing was left" in workspace.run("destroy", "train", "--auto-approve").stdout
    assert [d["code"] for d in workspace.json("apply", "plans/train.plan.json", code=1)["diagnostics"]] == [
        "SKY-APPLY-303"
    ]
    as_written(workspace, "two nodes on spot, one lost")


def test_two_refused_candidates_the_third_runs_and_both_are_remembered(workspace: Workspace, as_written: Check) -> None:
    ranked = workspace.plan()["ranked"]
    proxy = workspace.aws.proxy
    # the first candidate's second node only: its first one is launched, and must not stay
    proxy.fail(code="InsufficientInstanceCapacity", zone_id=ranked[0]["zone"], body=r"r01")
    proxy.fail(code="MaxSpotInstanceCountExceeded", zone_id=ranked[1]["zone"])
    applying = workspace.start("apply", "plans/train.plan.json", "--prepare", "0", "--json")
    lease = _lease_taken(workspace)
    second = workspace.json("apply", "plans/train.plan.json", code=1)
    out, err = applying.communicate(timeout=300)
    assert applying.returncode == 0, err
    assert lease
    assert [d["code"] for d in second["diagnostics"]] == ["SKY-APPLY-305"]
    done = json.loads(out)["jobs"][0]
    assert (done["run"]["rank"], done["run"]["zone"], done["run"]["generation"]) == (
        ranked[2]["rank"],
        ranked[2]["zone"],
        3,
    )
    assert [(a["outcome"], a["code"]) for a in done["attempts"]] == [
        ("refused", "InsufficientInstanceCapacity"),
        ("refused", "MaxSpotInstanceCountExceeded"),
        ("done", ""),
    ]
    assert workspace.nodes() == {n["instance_id"] for n in done["run"]["nodes"]}
    assert len(workspace.nodes()) == 2

    replanned = workspace.json("plan", "jobs/train.yaml", "--explain")["plans"][0]
    zones = [p["zone"] for p in replanned["ranked"]]
    assert not {ranked[0]["zone"], ranked[1]["zone"]} & set(zones)
    assert "SKY-REJ-206" in {r["code"] for r in replanned["rejected"]}
    workspace.run("destroy", "train", "--auto-approve")
    assert workspace.aws.leftovers() == []
    as_written(workspace, "two launches refused, the third runs")


def _lease_taken(workspace: Workspace) -> bool:
    """Wait until an apply works on the job: its first Terraform runs."""
    for _ in range(400):
        if list((workspace.folder / ".skyplan").glob("work/net-*/terraform.pid")):
            return True
        time.sleep(0.05)
    return False


@pytest.fixture
def remote(tmp_path: Path, aws: Aws, terraform: Terraform) -> Iterator[Workspace]:
    yield Workspace(tmp_path / "repo", aws, terraform, identities=Identities(aws, state=True))
    aws.proxy.clear()


@pytest.mark.parametrize("who", ["skyplan and Terraform", "skyplan alone"])
def test_killed_while_a_launch_was_executed_and_its_reply_never_came(
    remote: Workspace, who: str, as_written: Check
) -> None:
    remote.plan()
    hold = remote.aws.proxy.hold("RunInstances", times=1)
    applying = remote.start("apply", "plans/train.plan.json", "--prepare", "0", "--quiet")
    try:
        hold.wait(120)
        _both_asked_for(remote)
        if who != "skyplan alone":
            os.killpg(terraform_pid(remote.folder), signal.SIGKILL)
        os.killpg(applying.pid, signal.SIGKILL)
    finally:
        applying.kill()
        applying.communicate(timeout=60)
    before = remote.nodes()
    assert before
    if who == "skyplan alone":
        # Terraform lives on, and hears of its launch only while the next apply waits for it
        again = remote.start("apply", "plans/train.plan.json", "--prepare", "0", "--json")
        time.sleep(3)
        assert again.poll() is None
        hold.release()
        out, err = again.communicate(timeout=300)
        assert again.returncode == 0, err
        done = json.loads(out)["jobs"][0]
    else:
        hold.release()
        done = remote.apply()
    assert remote.nodes() == {n["instance_id"] for n in done["run"]["nodes"]}
    assert len(remote.nodes()) == 2
    assert done["run"]["id"] == "train-g1"
    assert before <= remote.nodes()  # what was launched is kept, not launched anew
    remote.run("destroy", "train", "--auto-approve")
    assert remote.nodes() == set()
    assert remote.aws.leftovers() == []
    if who == "skyplan alone":
        as_written(remote, "state in S3, an apply killed and finished by the next")
    denied = record.refused(remote.aws.judged())
    assert not denied, denied


def _both_asked_for(workspace: Workspace) -> None:
    """Until the emulator was asked for both nodes: the worst moment."""
    for _ in range(200):
        if len(workspace.aws.proxy.calls("RunInstances")) >= 2:
            break
        time.sleep(0.05)
    time.sleep(0.5)
