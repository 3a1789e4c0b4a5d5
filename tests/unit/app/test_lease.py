"""Who is known to be dead, and who is not."""

from __future__ import annotations

import socket
import subprocess
import sys

from planner.app.lease import is_gone, myself

PRINT = "from planner.app.lease import myself; print(myself())"


def test_a_living_process_is_not_gone_and_an_ended_one_is() -> None:
    assert not is_gone(myself())
    ended = subprocess.run(
        [sys.executable, "-c", PRINT], capture_output=True, text=True, check=True, cwd="."
    ).stdout.strip()
    assert ended.startswith(f"{socket.gethostname()} pid ")
    assert is_gone(ended)


def test_a_later_process_of_the_same_number_is_another() -> None:
    name = myself().partition("#")[0]
    assert is_gone(f"{name}#1")
    assert not is_gone(f"{name}#-")


def test_of_another_machine_nothing_is_known() -> None:
    assert not is_gone("elsewhere pid 999999999#1")
    assert not is_gone("no holder of ours")
