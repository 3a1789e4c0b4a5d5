"""What reaches a job through its agent: the cloud's notice with the seconds that are left, and where to go on from; and what leaves it: checkpoints before its end."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.unit.agent.plane import Plane, until
from tests.unit.agent.test_agent_process import Node, done, node, plane

__all__ = ["node", "plane"]
SAVES = """
import json, os, sys, time
import skyplan_job
state, found = {"step": 0}, skyplan_job.resume_from()
if found:
    state = json.loads((found / "state.json").read_text())
    print("resumed", state["step"], flush=True)
for _ in range(int(sys.argv[1])):
    state["step"] += 1
    skyplan_job.report(state["step"])
    with skyplan_job.checkpoint(state["step"], framework="json") as folder:
        (folder / "state.json").write_text(json.dumps(state))
"""
WAITS = """
import time
import skyplan_job
got = []
skyplan_job.ask_for_signal(then=got.append)
skyplan_job.report(1)
while not got:
    time.sleep(0.01)
print(got[0].reason, skyplan_job.remaining_seconds(), flush=True)
"""


class Metadata:
    """EC2's, of a spot machine."""

    def __init__(self) -> None:
        self.action: dict[str, Any] | None = None
        metadata = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_PUT(self) -> None:
                self.say(200, "session")

            def do_GET(self) -> None:
                if self.path.endswith("spot/instance-action") and metadata.action:
                    self.say(200, json.dumps(metadata.action))
                else:
                    self.say(404, "")

            def say(self, status: int, text: str) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def metadata(socket_enabled: None) -> Iterator[Metadata]:
    made = Metadata()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_notice_reaches_the_job_as_a_signal_with_the_time_that_is_left(
    node: Node, plane: Plane, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
    agent = node.start(sys.executable, "-c", WAITS, cloud="aws")
    until(plane.steps)
    taken = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 120))
    metadata.action = {"action": "terminate", "time": taken}
    code, told = done(agent)
    assert code == 0
    assert "SKY-RUN-518" in told
    assert [(i["what"], i["deadline"]) for i in plane.kinds("notice")] == [("spot", taken)]
    words = "".join(i["text"] for i in plane.kinds("log"))
    reason, _, left = words.strip().rpartition(" ")
    assert reason.startswith("the cloud takes this node in 1")
    assert 60 < float(left) <= 120


def with_checkpoints(node: Node) -> dict[str, Any]:
    root = node.folder
    return {"checkpoint": {"uri": (root / "store").as_uri() + "/", "folder": str(root / "checkpoints")}}


def test_checkpoints_are_told_before_the_end(node: Node, plane: Plane) -> None:
    code, told = done(node.start(sys.executable, "-c", SAVES, "3", **with_checkpoints(node)))
    assert code == 0, told
    assert sorted(i["step"] for i in plane.kinds("checkpoint")) == [1, 2, 3]
    assert plane.order[-1]["kind"] == "exit"
    for item in plane.kinds("checkpoint"):
        assert item["uri"].endswith(f"/store/g3/step-{item['step']:012d}/")
        assert (Path(node.folder, "store", "g3", f"step-{item['step']:012d}", "skyplan-checkpoint.json")).exists()
    phases = [body["phase"] for body in plane.paths("/v1/cut")]
    assert phases == ["begin"], "the cut was made already, says this control plane"


def test_a_checkpoint_that_cannot_be_put_away_is_waited_for_until_the_hard_end(node: Node, plane: Plane) -> None:
    (node.folder / "store").write_text("no folder")
    hours = 6 / 3600
    began = time.monotonic()
    agent = node.start(
        sys.executable, "-c", SAVES, "1", stop_after_hours=hours, wait_seconds=1, **with_checkpoints(node)
    )
    code, told = done(agent)
    assert time.monotonic() - began < 60
    assert code in {0, 75}, told
    assert node.ended
    assert plane.kinds("checkpoint") == []


def test_a_reboot_goes_on_from_the_newest_checkpoint(node: Node, plane: Plane) -> None:
    more = with_checkpoints(node)
    first = node.start(sys.executable, "-c", SAVES + "\ntime.sleep(60)\n", "4", **more)
    until(lambda: {i["step"] for i in plane.kinds("checkpoint")} == {1, 2, 3, 4})
    first.kill()
    first.communicate()
    os.killpg(node.job_pid(), signal.SIGKILL)
    (node.base / "jobs/1/boot").write_text("another boot")
    code, told = done(node.start(sys.executable, "-c", SAVES, "2", **more))
    assert code == 0, told
    assert [i["text"] for i in plane.kinds("log")] == ["resumed 4\n"]
    assert sorted({i["step"] for i in plane.kinds("checkpoint")}) == [1, 2, 3, 4, 5, 6]
    assert [i["text"].partition(":")[0] for i in plane.kinds("event") if i["word"] == "resumed"] == ["from step 4"]


STOPS = """
import json, signal, sys, time
import skyplan_job
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))  # asked first, and only then this
skyplan_job.report(1)
while not (asked := skyplan_job.should_checkpoint()):
    time.sleep(0.01)
print("asked, with", int(skyplan_job.remaining_seconds()), flush=True)
with skyplan_job.checkpoint(2, framework="json") as folder:
    (folder / "state.json").write_text("{}")
"""


@pytest.mark.parametrize("cloud", ["nebius", "azure"])
def test_a_shutdown_gives_the_job_a_last_checkpoint(
    node: Node, plane: Plane, metadata: Metadata, monkeypatch: pytest.MonkeyPatch, cloud: str
) -> None:
    """Only Nebius has no other notice than the signal."""
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", metadata.url)
    agent = node.start(sys.executable, "-c", STOPS, cloud=cloud, **with_checkpoints(node))
    until(plane.steps)
    agent.send_signal(signal.SIGTERM)
    code, told = done(agent)
    assert code == 0, told
    assert [i["step"] for i in plane.kinds("checkpoint")] == [2], "put away before the end"
    assert plane.order[-1]["kind"] == "exit"
    assert [i["what"] for i in plane.kinds("notice")] == (["spot"] if cloud == "nebius" else [])
    assert node.ended
    words = "".join(i["text"] for i in plane.kinds("log"))
    assert 20 <= int(words.split()[-1]) <= 30


def test_a_second_signal_does_not_wait_for_the_job(node: Node, plane: Plane) -> None:
    agent = node.start(
        sys.executable, "-c", "import skyplan_job, time; skyplan_job.report(1); time.sleep(60)", cloud="nebius"
    )
    until(plane.steps)
    began = time.monotonic()
    agent.send_signal(signal.SIGTERM)
    until(lambda: plane.kinds("notice"))
    agent.send_signal(signal.SIGTERM)
    code, told = done(agent)
    assert time.monotonic() - began < 20, told
    assert code == 128 + signal.SIGTERM
