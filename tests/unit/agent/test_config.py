"""The tunnel's configuration: defaults, bounds, every problem at once."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from modules.agent import config, environment, proof
from modules.agent.config import Peer, TunnelConfig
from modules.agent.errors import CONFIG, AgentError

KEY = "tPJ0lMnkKaLd03ERFZN6lFGJanArdkJ9Nlcw3Ogin1Q="
PEER = {"name": "r00", "public_key": KEY, "endpoint": "203.0.113.7:51820", "tunnel_address": "10.251.0.1"}


def test_defaults(tunnel_config: TunnelConfig) -> None:
    c = tunnel_config
    assert (c.interface, c.mtu, c.mss, c.listen_port, c.master) == ("wg0", 1420, 1380, 51820, "r00")
    assert (c.run_folder, c.env_file, c.verify_seconds) == ("/run/skyplan", "/run/skyplan/wg0.env", 60)
    assert c.meeting
    assert (c.meeting.timeout_seconds, c.meeting.ca_file, c.peers) == (1800, None, None)


@pytest.mark.parametrize(
    ("change", "mtu"),
    [({"underlay_mtu": 1460}, 1380), ({"underlay_mtu": 9001}, 8921), ({"mtu": 1280, "underlay_mtu": 1460}, 1280)],
)
def test_the_mtu_follows_the_underlay_unless_it_is_said(
    document: dict[str, Any], change: dict[str, int], mtu: int
) -> None:
    assert config.parse({**document, **change}).mtu == mtu


def test_a_list_of_the_operators_instead_of_a_service(document: dict[str, Any]) -> None:
    found = config.parse({**document, "rendezvous": None, "peers": [PEER]})
    assert found.meeting is None
    assert found.peers == (Peer(**PEER),)


@pytest.mark.parametrize(
    "change",
    [
        {"job": "Train"},
        {"job": None},
        {"generation": "3"},
        {"generation": 0},
        {"generation": True},
        {"name": "r00; reboot"},
        {"tunnel_address": "10.251.0.300"},
        {"tunnel_address": "127.0.0.1"},
        {"endpoint": "host:51820"},
        {"endpoint": "203.0.113.9:99999"},
        {"endpoint": "203.0.113.9"},
        {"interface": "wg0-and-much-more"},
        {"interface": "../wg0"},
        {"interface": ""},
        {"listen_port": 0},
        {"mtu": 575},
        {"mtu": 9000},
        {"mtu": "1420"},
        {"underlay_mtu": 100},
        {"run_folder": "run"},
        {"env_file": "env"},
        {"verify_seconds": 0},
        {"verify_seconds": float("nan")},
        {"verify_seconds": True},
        {"secret": "x"},
        {"peers": [PEER]},
        {"rendezvous": None},
        {"rendezvous": "http://x"},
        {"rendezvous": {"url": "ftp://x", "secret_file": "/s"}},
        {"rendezvous": {"url": "http://user:pw@x", "secret_file": "/s"}},
        {"rendezvous": {"url": "http://x/path", "secret_file": "/s"}},
        {"rendezvous": {"url": "http://x:70000", "secret_file": "/s"}},
        {"rendezvous": {"url": "http://x", "secret_file": "s"}},
        {"rendezvous": {"url": "http://x", "secret_file": "/s", "secret": "x"}},
        {"rendezvous": None, "peers": []},
        {"rendezvous": None, "peers": [7]},
        {"rendezvous": None, "peers": [{**PEER, "public_key": KEY[:-2] + "R="}]},
        {"rendezvous": None, "peers": [{**PEER, "private_key": KEY}]},
    ],
)
def test_what_is_wrong_is_refused(document: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(AgentError) as refused:
        config.parse({**document, **change})
    assert refused.value.code == CONFIG


def test_every_problem_at_once(document: dict[str, Any]) -> None:
    with pytest.raises(AgentError) as refused:
        config.parse({**document, "job": 1, "mtu": 1, "more": 1, "endpoint": ""})
    for words in ("`job`", "`mtu`", "`more` is no field", "`endpoint`"):
        assert words in str(refused.value)


@pytest.mark.parametrize("text", ["", "[]", "{", "7"])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(AgentError) as refused:
        config.read(str(path))
    assert refused.value.code == CONFIG


def test_a_good_file(tmp_path: Path, document: dict[str, Any]) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(document))
    assert config.read(str(path)) == config.parse(document)


def test_a_secret_that_others_may_read_or_that_is_short_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "join.secret"
    path.write_text("a-long-enough-secret\n")
    path.chmod(0o640)
    with pytest.raises(AgentError, match="chmod 600"):
        proof.read_key(str(path))
    path.chmod(0o600)
    assert len(proof.read_key(str(path))) == 32
    path.write_text("short\n")
    with pytest.raises(AgentError, match="shorter than 16") as refused:
        proof.read_key(str(path))
    assert "short\n" not in str(refused.value)


def test_the_jobs_environment(tunnel_config: TunnelConfig) -> None:
    values = environment.variables(tunnel_config, (Peer(**PEER),))
    assert values["MASTER_ADDR"] == "10.251.0.1"
    text = environment.text(values)
    for line in (
        "GLOO_SOCKET_IFNAME=wg0",
        "NCCL_SOCKET_IFNAME==wg0",
        "NCCL_IB_DISABLE=1",
        "NCCL_NET=Socket",
        "NCCL_SOCKET_FAMILY=AF_INET",
        "NCCL_SOCKET_NTHREADS=4",
        "NCCL_NSOCKS_PERTHREAD=4",
    ):
        assert line in text.splitlines()


def test_a_shell_reads_the_environment_as_it_is(tmp_path: Path, tunnel_config: TunnelConfig) -> None:
    values = environment.variables(tunnel_config, (Peer(**PEER),))
    path = tmp_path / "wg0.env"
    path.write_text(environment.text(values))
    command = ["sh", "-c", f"set -a; . {path}; env"]
    told = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": os.environ["PATH"]}).stdout
    assert set(path.read_text().splitlines()) <= set(told.splitlines())


def test_rank_0_must_be_among_the_nodes(tunnel_config: TunnelConfig) -> None:
    with pytest.raises(AgentError, match="rank 0's node r00 is none of r01, r02"):
        environment.variables(tunnel_config, (Peer(**{**PEER, "name": "r02"}),))
