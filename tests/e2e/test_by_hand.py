"""A node set up by hand, as docs/runtime.md says it: a token from the command, that agent.json, a real server and a real agent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.e2e.test_serve import PROJECT, ROOT, serving
from tests.unit.server.server_bed import launch

SKYPLAN = [sys.executable, "-c", "from planner.cli.entry import run; run()"]
TRAIN = """
import skyplan_job
step = skyplan_job.resume_step()
while step < 3:
    step += 1
    skyplan_job.report(step)
    with skyplan_job.checkpoint(step) as folder:
        (folder / "state").write_text(str(step))
"""


def documented() -> dict[str, Any]:
    text = (ROOT / "docs" / "runtime.md").read_text().partition("## A node set up by hand")[2]
    found = re.search(r"```json\n(.*?)```", text, re.DOTALL)
    assert found
    return json.loads(found[1])


def settings(folder: Path, url: str) -> dict[str, Any]:
    """As documented, with this machine's places for those of a cloud."""
    made, store = documented(), (folder / "store").as_uri() + "/"
    made["control_plane"] = {"url": url}
    made["checkpoint"] = {"uri": store, "folder": str(folder / "checkpoints")}
    made["stores"] = [{**made["stores"][0], "uri": store}]
    del made["cloud"]
    made |= {
        "rank": 0,
        "nodes": 1,
        "instance_id": "i-train-0",
    }  # rank 1 would wait for rank 0, which lists the store for all
    names = {"token_file": "r00.token", "state_folder": "state", "run_folder": "run"}
    return {**made, **{name: str(folder / value) for name, value in names.items()}}


@pytest.mark.parametrize("shared", [False, True])
def test_a_node_set_up_by_hand(tmp_path: Path, shared: bool) -> None:
    database = f"sqlite:///{tmp_path / 'record.sqlite'}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SKYPLAN_DATABASE_URL": database, "NO_COLOR": "1"}

    def skyplan(*words: str, wait: float = 60) -> subprocess.CompletedProcess[str]:
        given: dict[str, Any] = {"cwd": tmp_path, "env": env, "capture_output": True, "text": True}
        return subprocess.run([*SKYPLAN, *words], check=False, timeout=wait, **given)

    record, told = Record.open(database, PROJECT), Runtime.open(database, PROJECT)
    launch(record, nodes=1)
    laptop = "url: http://127.0.0.1:8443\nlisten: 127.0.0.1:8443\nidentity: {one_time: true}\n"
    with serving(tmp_path, database, settings=laptop) as served:
        made = skyplan("agent", "token", "train", "--rank", "0", "--out", "r00.token")
        assert made.returncode == 0, made.stderr
        (tmp_path / "agent.json").write_text(json.dumps(settings(tmp_path, served.url)))
        run = ("agent", "run", "--config", "agent.json", "--", sys.executable, "-c", TRAIN)
        if shared:
            (tmp_path / "r00.token").chmod(0o644)
            with pytest.raises(subprocess.TimeoutExpired) as waiting:
                skyplan(*run, wait=8)
            assert b"others may read the one-time token" in (waiting.value.stderr or b"")
            assert not told.progress("train", rank=0)
            return
        done = skyplan(*run)
        assert done.returncode == 0, done.stderr
        again = skyplan(*run)
        assert "this seat's work has ended" in again.stderr
    assert [p.step for p in told.progress("train", rank=0)] == [1, 2, 3]
    assert told.checkpoints("train")[0].step
    told.close()
    record.close()
