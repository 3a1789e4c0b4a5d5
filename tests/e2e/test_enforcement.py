"""That the foundation's rights are enough and no more: each step of a job's life holds only its own identity, and nothing granted can go.

What an engine judged stands in docs/iam-proof.md, which is made from what these tests see.  Nothing here was ever asked of a live account.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.judges.attempts import Account, Attempt, Machines, of_deployer, on_machines, on_stores, outcome
from tests.e2e.judges.ministack import ACCOUNT as MINISTACK
from tests.e2e.judges.ministack import Ministack
from tests.emulators.aws import ACCOUNT, Aws


@pytest.fixture
def ministack(socket_enabled: None, tmp_path: Path) -> Iterator[Ministack]:
    process = Ministack(tmp_path)
    yield process
    process.close()


def tried(attempts: Iterator[Attempt]) -> list[tuple[str, str, str]]:
    """(what, outcome, outcome of the twin)."""
    return [(f"{one.who}: {one.what}", outcome(one.call), outcome(one.same)) for one in attempts]


def test_what_nobody_may_is_refused_and_its_twin_is_not(aws: Aws) -> None:
    aws.enforce_access()
    account = Account(aws.client, ACCOUNT)
    machines = Machines(account)
    found = [*tried(on_stores(account)), *tried(on_machines(machines)), *tried(of_deployer(machines))]
    assert [one for one in found if one[1:] != ("refused", "allowed")] == []


def test_another_engine_says_the_same_of_stores_and_bounds(ministack: Ministack) -> None:
    found = tried(on_stores(Account(ministack.client, MINISTACK)))
    assert [one for one in found if one[1:] != ("refused", "allowed")] == []
