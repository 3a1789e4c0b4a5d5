"""A watch that carries moves out: real command line, feeds, Terraform, AWS provider, control plane, agents and training; an emulated AWS.

The price drops elsewhere, the watch hears of it from the cloud, begins the move, is killed in mid-launch, and whoever is started next ends it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess

import pytest

from tests.e2e.runtime_bed import JOB
from tests.e2e.test_migrate import EAST, WEST, Life, archive, life
from tests.emulators.aws_lists import product

#: minutes of real Terraform; what moves and what kills it is in test_migrate.py each time
pytestmark = [pytest.mark.terraform, pytest.mark.full]
__all__ = ["archive", "life"]
TYPE = "g4dn.xlarge"


def sell(life: Life, *, west_usd: str) -> None:
    """What AWS says from now on."""
    prices = {EAST: "0.526", WEST: west_usd}
    life.aws.sell(products=[product(TYPE, region, usd) for region, usd in prices.items()])


def watch(life: Life) -> subprocess.Popen[str]:
    """A round each two seconds: what it says in some minutes fits into a pipe that nobody reads."""
    return life.workspace.start("watch", "--apply", "--every", "2s")


def end(process: subprocess.Popen[str], number: int) -> str:
    """What it said."""
    if process.poll() is None:
        os.killpg(process.pid, number)
    return process.communicate(timeout=60)[1]


def test_a_watch_moves_a_job_when_the_price_drops_and_another_ends_what_it_began(life: Life) -> None:
    bed, folder = life.bed, life.workspace.folder
    project = json.loads((folder / "skyplan.yaml").read_text(encoding="utf-8"))
    (folder / "skyplan.yaml").write_text(json.dumps({**project, "migration": {"apply": "reviewed"}}), encoding="utf-8")
    sell(life, west_usd="0.526")
    life.workspace.plan()
    bed.start()
    life.workspace.json("apply", "plans/train.plan.json", "--prepare", "1")
    bed.wait(lambda: bed.told(1) >= 10)
    home = life.there(EAST) or life.there(WEST)
    assert set(home.values()) == {"1"}

    life.workspace.run("watch", "--apply", "--once")
    assert life.machines() == set(home), "it stays while nothing is to be saved"
    sell(life, west_usd="0.2500")
    hold = life.aws.proxy.hold("RunInstances", times=1)
    first = watch(life)
    try:
        bed.wait(lambda: hold.executed.is_set() or first.poll() is not None, 120)
        assert hold.executed.is_set(), first.communicate()
        pid = int((folder / ".skyplan/work/cmp-train-g2/terraform.pid").read_text(encoding="ascii"))
        os.killpg(pid, signal.SIGKILL)
    finally:
        end(first, signal.SIGKILL)
        hold.release()
    launched = life.there(WEST)
    assert set(launched.values()) == {"2"}

    second = watch(life)
    try:
        done = "SELECT 1 FROM migration WHERE status = 'retired'"
        bed.wait(lambda: bool(bed.rows(done)) or second.poll() is not None, 240)
    finally:
        said = end(second, signal.SIGTERM)
    assert bed.rows(done), said
    assert second.returncode == 0, said
    assert life.there(EAST) == {}
    assert life.there(WEST) == launched, "what was launched is kept, not launched anew"
    assert [s.name for s in bed.record.stacks(JOB) if s.kind == "compute"] == ["cmp-train-g2"]
    bed.wait(lambda: bed.told(2) > bed.cut(2).chosen.step + 5)
    assert bed.wrong() == [], bed.story()
