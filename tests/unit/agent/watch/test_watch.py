"""What the clouds announce, on emulated metadata services."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from modules.agent import watch
from modules.agent.proofs import NoAnswer
from modules.agent.watch import nebius, times
from modules.agent.watch.gcp import GcpWatcher
from modules.agent.watch.nebius import NebiusWatcher
from tests.emulators.imds import Metadata


@pytest.fixture
def imds(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    with Metadata() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


def test_aws_tells_of_the_end_before_a_recommendation(imds: Metadata) -> None:
    watcher = watch.watcher("aws")
    assert watcher.poll() is None
    imds.rebalance = {"noticeTime": "2026-11-30T11:50:00Z"}
    assert watcher.poll() == {"what": "rebalance", "deadline": None}
    imds.spot = {"action": "terminate", "time": "2026-11-30T12:02:00Z"}
    for _ in range(2):
        assert watcher.poll() == {"what": "spot", "deadline": "2026-11-30T12:02:00Z"}


def test_aws_begins_a_new_session_when_the_old_one_has_ended(imds: Metadata) -> None:
    watcher = watch.watcher("aws")
    for _ in range(3):
        assert watcher.poll() is None
    assert len(imds.sessions) == 1, "one session for many questions"
    imds.sessions.clear()
    imds.spot = {"action": "stop", "time": "2026-11-30T12:02:00Z"}
    assert watcher.poll()["what"] == "spot"
    assert len(imds.sessions) == 1


def test_aws_words_that_are_new_are_a_notice_all_the_same(imds: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    imds.spot = "soon"  # type: ignore[assignment]
    assert watch.watcher("aws").poll() == {"what": "spot", "deadline": None}


@pytest.mark.parametrize("cloud", ["aws", "gcp", "azure"])
def test_no_service_is_no_notice_and_said_so(cloud: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("GCE_METADATA_HOST", "127.0.0.1:9")
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:9")
    with pytest.raises(NoAnswer):
        watch.watcher(cloud).poll()


def test_gcp_preemption_comes_with_the_change_and_keeps_its_deadline(imds: Metadata) -> None:
    now = 1_793_000_000.0
    watcher = GcpWatcher(lambda: now, wait_seconds=30)
    assert watcher.poll() is None, "the first question does not wait"
    found: list[object] = []
    waiting = threading.Thread(target=lambda: found.append(watcher.poll()))
    began = time.monotonic()
    waiting.start()
    while not any("wait_for_change" in path for path in list(imds.paths)):
        assert time.monotonic() - began < 10
        threading.Event().wait(0.01)
    imds.preempt()
    waiting.join(10)
    assert time.monotonic() - began < 10, "long before the 30 s of waiting"
    notice = {"what": "spot", "deadline": times.iso(now + 30)}
    assert found == [notice]
    now += 5
    assert watcher.poll() == notice


def test_gcp_preempted_before_the_first_question(imds: Metadata) -> None:
    imds.preempted = "TRUE"
    assert GcpWatcher(lambda: 0.0).poll() == {"what": "spot", "deadline": "1970-01-01T00:00:30Z"}


def test_gcp_maintenance_that_ends_the_machine_and_that_moves_it(imds: Metadata) -> None:
    watcher = GcpWatcher(wait_seconds=0)
    for said, expected in (
        ("MIGRATE_ON_HOST_MAINTENANCE", None),
        ("TERMINATE_ON_HOST_MAINTENANCE", {"what": "maintenance", "deadline": None}),
        ("NONE", None),
    ):
        imds.maintenance = said
        assert watcher.poll() == expected


def event(kind: str, *, status: str = "Scheduled", at: str = "Mon, 30 Nov 2026 12:00:30 GMT", vm: str = "train-g3-r0"):
    return {
        "EventId": "602d9444",
        "EventType": kind,
        "EventStatus": status,
        "ResourceType": "VirtualMachine",
        "Resources": [vm],
        "NotBefore": at,
        "Description": "",
        "EventSource": "Platform",
        "DurationInSeconds": -1,
    }


@pytest.mark.parametrize(
    ("kind", "what"),
    [("Preempt", "spot"), ("Terminate", "maintenance"), ("Reboot", "maintenance"), ("Redeploy", "maintenance")],
)
def test_azure_events(imds: Metadata, kind: str, what: str) -> None:
    watcher = watch.watcher("azure")
    assert watcher.poll() is None
    imds.events = [event(kind)]
    assert watcher.poll() == {"what": what, "deadline": "2026-11-30T12:00:30Z"}
    imds.events = [event(kind, status="Started", at="")]
    assert watcher.poll() == {"what": what, "deadline": None}
    imds.events = [event(kind, status="Completed")]
    assert watcher.poll() is None


def test_azure_looks_at_its_own_machine_and_the_most_urgent(imds: Metadata) -> None:
    watcher = watch.watcher("azure")
    imds.events = [event("Preempt", vm="another"), event("Freeze")]
    assert watcher.poll() is None
    imds.events = [event("Reboot", at="Mon, 30 Nov 2026 11:00:00 GMT"), event("Preempt", vm="TRAIN-G3-R0")]
    assert watcher.poll()["what"] == "spot"
    assert not [path for path in imds.paths if path.startswith("POST")], "nothing is acknowledged"


def test_azure_words_that_are_none(imds: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(imds, "events", ["soon"])
    with pytest.raises(NoAnswer):
        watch.watcher("azure").poll()


def test_nebius_sees_a_machine_that_is_being_stopped() -> None:
    now, state = 0.0, "running"
    watcher = NebiusWatcher(lambda: now, state=lambda: state)
    assert watcher.poll() is None
    state = "stopping"
    notice = watcher.poll()
    assert notice == {"what": "spot", "deadline": "1970-01-01T00:01:00Z"}
    now, state = 10.0, ""
    assert watcher.poll() == notice


def test_nebius_without_systemd(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    monkeypatch.setattr(nebius, "_SYSTEMD", str(tmp_path / "none"))
    assert watch.watcher("nebius").poll() is None
    monkeypatch.setattr(nebius, "_SYSTEMD", str(tmp_path))
    program = tmp_path / "systemctl"
    program.write_text("#!/bin/sh\necho stopping\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert watch.watcher("nebius").poll()["what"] == "spot"


def test_no_cloud_of_ours() -> None:
    with pytest.raises(KeyError):
        watch.watcher("elsewhere")
