"""Packets and counters of the probe, and files of the agent, without a network."""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
from pathlib import Path

import pytest

from modules.agent import files, key, probe, wireguard
from modules.agent.config import Peer, TunnelConfig
from modules.agent.errors import SYSTEM, TOO_LARGE, UNAVAILABLE, AgentError

PEER = Peer(name="r00", public_key="k", endpoint="203.0.113.7:51820", tunnel_address="10.251.0.1")


@pytest.mark.parametrize("size", [84, 576, 1419, 1420, 8921])
def test_an_echo_has_the_size_that_was_asked_for_and_a_right_checksum(size: int) -> None:
    packet = probe.echo_request(b"0123456789abcdef", 7, size)
    assert len(packet) + 20 == size
    assert probe.checksum(packet) == 0
    assert struct.unpack("!BB", packet[:2]) == (8, 0)


def test_two_echoes_differ() -> None:
    assert probe.echo_request(b"a" * 16, 0, 84)[8:] != probe.echo_request(b"a" * 16, 1, 84)[8:]


def test_the_counters_of_this_kernel_can_be_read() -> None:
    assert all(count >= 0 for count in probe.fragments())


@pytest.mark.parametrize(("carries", "says"), [(1500, None), (1460, 1392), (1420, 1360), (636, 576), (600, 0)])
def test_what_fits_is_found(
    tunnel_config: TunnelConfig, monkeypatch: pytest.MonkeyPatch, carries: int, says: int | None
) -> None:
    """Where packets are just lost: a path that carries so much, and WireGuard's padding to 16 bytes."""
    monkeypatch.setattr(probe, "path_mtu", lambda _: 1500)
    monkeypatch.setattr(probe, "fragments", lambda: probe.Fragments(made=0, got=0))
    monkeypatch.setattr(
        probe,
        "echo",
        lambda config, peer, size, _: size == 84 or -(-size // 16) * 16 + 60 <= carries,
    )
    if says is None:
        probe._full_size(tunnel_config, PEER)
        return
    with pytest.raises(AgentError) as refused:
        probe._full_size(tunnel_config, PEER)
    assert refused.value.code == TOO_LARGE
    assert "MTU 1420 is too large for the path to r00" in str(refused.value)
    assert (f"at most {says} would fit" if says else "not even 576 passes") in str(refused.value)


def test_pieces_count_only_when_they_come_every_time(
    tunnel_config: TunnelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter([0, 1, 1, 1])
    monkeypatch.setattr(probe, "path_mtu", lambda _: 1500)
    monkeypatch.setattr(probe, "echo", lambda *_: True)
    monkeypatch.setattr(probe.time, "sleep", lambda _: None)
    monkeypatch.setattr(probe, "fragments", lambda: probe.Fragments(made=0, got=next(counts)))
    probe._full_size(tunnel_config, PEER)


def test_a_path_that_cuts_every_packet_is_refused(tunnel_config: TunnelConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter(range(10_000))
    monkeypatch.setattr(probe, "path_mtu", lambda _: 1500)
    monkeypatch.setattr(probe, "echo", lambda *_: True)
    monkeypatch.setattr(probe.time, "sleep", lambda _: None)
    monkeypatch.setattr(probe, "fragments", lambda: probe.Fragments(made=next(counts), got=0))
    with pytest.raises(AgentError, match="cut in pieces"):
        probe._full_size(tunnel_config, PEER)


def test_a_peer_that_falls_silent_is_not_called_a_small_path(
    tunnel_config: TunnelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "path_mtu", lambda _: 1500)
    monkeypatch.setattr(probe, "echo", lambda *_: False)
    with pytest.raises(AgentError) as refused:
        probe._full_size(tunnel_config, PEER)
    assert refused.value.code == UNAVAILABLE


def test_of_two_nodes_one_begins(tunnel_config: TunnelConfig) -> None:
    assert not probe._begins(tunnel_config, PEER)
    assert probe._begins(
        tunnel_config, Peer(name="r09", public_key="k", endpoint="203.0.113.8:1", tunnel_address="10.251.0.10")
    )


def test_files_are_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "state"
    files.write(path, '{"a": 1}')
    files.write(path, '{"a": 2}')
    assert files.recall(path) == {"a": 2}
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
    path.write_text("[")
    assert files.recall(path) == {}


def test_a_link_of_somebody_elses_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    link = tmp_path / "run" / "wg0.env"
    files.folder(str(link.parent))
    link.symlink_to(victim)
    files.write(link, "theirs")
    assert victim.read_text() == "mine"


def test_a_folder_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    with pytest.raises(AgentError) as refused:
        files.folder(str(tmp_path / "run"))
    assert refused.value.code == SYSTEM


@pytest.mark.skipif(not shutil.which("wg"), reason="`wg` is not installed")
def test_a_key_is_made_once_and_is_for_root_only(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    first = key.public_key(run, "wg0")
    assert key.public_key(run, "wg0") == first
    private = key.key_file(run, "wg0")
    assert private.stat().st_mode & 0o777 == 0o600
    derived = subprocess.run(["wg", "pubkey"], input=private.read_bytes(), capture_output=True, check=True).stdout
    assert derived.decode().strip() == first
    private.chmod(0o644)
    with pytest.raises(AgentError, match="only this user may read"):
        key.public_key(run, "wg0")


def test_an_interface_that_is_not_wireguards_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        wireguard, "attempt", lambda *command: ran.append(command) or subprocess.CompletedProcess(command, 1, "", "")
    )
    with pytest.raises(AgentError, match="lo is not WireGuard's"):
        wireguard.remove("lo", str(tmp_path))
    assert not any("delete" in command for command in ran)


def test_a_process_of_the_same_id_is_not_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    killed: list[int] = []
    monkeypatch.setattr(wireguard.os, "kill", lambda pid, _: killed.append(pid))
    monkeypatch.setattr(wireguard, "_started", lambda _: "200")
    wireguard._end({"pid": 1, "started": "100"})
    assert killed == []


def test_wireguard_go_is_asked_only_once_it_listens(tmp_path: Path) -> None:
    """`wg` removes a socket that is bound and does not listen yet."""
    name = f"wg{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as control:
        assert not wireguard._answers(name)
        control.bind(str(tmp_path / f"{name}.sock"))
        assert not wireguard._answers(name)
        control.listen()
        assert wireguard._answers(name)
    assert not wireguard._answers(name)
