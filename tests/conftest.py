"""What every test gets: no network but loopback, a fixed terminal, hypothesis profiles, `--full` for the long sweeps."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings
from pytest_socket import socket_allow_hosts

settings.register_profile("dev", max_examples=25, deadline=None)
settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("full", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="also run tests marked `full`")
    parser.addoption("--update-golden", action="store_true", help="write golden files instead of comparing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # the longest first, and they mostly wait: workers then end together
    items.sort(key=lambda item: item.get_closest_marker("terraform") is None)
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="a long sweep: run `make test-full`")
    for item in items:
        if item.get_closest_marker("full"):  # not `keywords`: they hold the names of folders too
            item.add_marker(skip)


@pytest.fixture(autouse=True)
def _loopback_only() -> None:
    socket_allow_hosts(["127.0.0.1", "::1"], allow_unix_socket=True)


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("SKYPLAN_") and n != "SKYPLAN_TERRAFORM"]:
        monkeypatch.delenv(name)
    for name in ("CI", "FORCE_COLOR", "CDKTF_OUTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
