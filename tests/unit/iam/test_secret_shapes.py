"""Secrets by further shapes and further places, and twins that are none.

Made up, and put together from halves, so that no scanner of this repository takes them for real ones.
"""

from __future__ import annotations

import pytest

from planner.iam.secrets import scan_document, scan_text

MIXED = "kV9xQ2mZ7nLw4RtY8pBc"
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0"
UPPER = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"

FOUND = {
    "age key": "AGE-SECRET-KEY-1" + UPPER,
    "PuTTY key": "PuTTY-User-Key-File-3: ssh-ed25519",
    "Tailscale key": "tskey-auth-" + f"{MIXED}-{MIXED}",
    "NVIDIA key": "nvapi-" + MIXED * 3,
    "Replicate token": "r8_" + MIXED + MIXED[:17],
    "DigitalOcean token": "dop_v1_" + HEX * 2,
    "SendGrid key": "SG." + f"{MIXED}ab.{MIXED}{MIXED}abc",
    "Databricks token": "dapi" + HEX,
    "Terraform Cloud token": f"{MIXED[:14]}.atlasv1." + MIXED * 3,
    "Grafana token": "glsa_" + f"{MIXED}{MIXED[:12]}_{HEX[:8]}",
    "Telegram token": "123456789:AA" + MIXED + MIXED[:13],
}


@pytest.mark.parametrize(("kind", "text"), FOUND.items(), ids=FOUND)
def test_further_issuers(kind, text):
    (found,) = scan_text(f"x = '{text}'\n", origin="u")
    assert found.kind == kind


@pytest.mark.parametrize("text", [value[: len(value) // 2] for value in FOUND.values()])
def test_half_of_one_is_none(text):
    assert scan_text(f"x = '{text}'\n", origin="u") == ()


COMMANDS = (
    "mysqladmin --password {}",
    "mysqladmin --password={} ping",
    "sshpass -p {} ssh node",
    "docker login -u me -p {} registry.acme.com",
    "curl -s -u admin:{} https://acme.com/x",
    "machine api.acme.com login me password {}",
    "echo 'ubuntu:{}' | sudo chpasswd",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_line_tells(command):
    assert len(scan_text(command.format(MIXED), origin="u")) == 1
    assert scan_text(command.format("$PASSWORD"), origin="u") == ()


@pytest.mark.parametrize("text", ["docker login --password-stdin", "mkdir -p Build2024Output", "grep --password x"])
def test_what_a_command_line_does_not_tell(text):
    assert scan_text(text, origin="u") == ()


def test_an_aws_secret_may_begin_as_a_path_does():
    secret = "/" + "V9xQ2mZ7nLw4RtY8pBc1sDf6GhJ3kX0aEuI5oTq"
    assert len(scan_text(f"AWS_SECRET_ACCESS_KEY={secret}", origin="u")) == 1
    assert scan_text(f"AWS_SECRET_ACCESS_KEY=/run/{'secrets/' * 4}key", origin="u") == ()


def test_awss_own_example_is_none():
    assert scan_text("AKIA" + "IOSFODNN7EXAMPLE", origin="u") == ()


@pytest.mark.parametrize(
    "document",
    [
        {"variable": {"db_password": {"default": MIXED}}},
        {"passwords": ["x", MIXED]},
        {"env": [{"Name": "API_KEY", "Value": MIXED}]},
        {"resource_changes": [{"type": "random_password", "change": {"after": {"result": MIXED}}}]},
        {"resource_changes": [{"type": "random_password", "change": {"before": {"result": MIXED}, "after": None}}]},
    ],
)
def test_further_places(document):
    (found,) = scan_document(document, origin="u")
    assert MIXED not in found.shown


@pytest.mark.parametrize(
    "document",
    [
        {"variable": {"db_password": {"default": None, "description": "of the database"}}},
        {"passwords": ["${var.a}", "${var.b}"]},
        {"resource_changes": [{"type": "random_pet", "change": {"after": {"result": MIXED}}}]},
    ],
)
def test_further_places_without_one(document):
    assert scan_document(document, origin="u") == ()
