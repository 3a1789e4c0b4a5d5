"""The last minute's times: they fit into what each cloud leaves, in their order, and a machine that goes sooner shortens them all."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from modules.agent.parting import MOST_SECONDS, parting

NOW = 1_796_000_000.0
GIVEN = {"nebius": 60.0, "gcp": 30.0, "aws": 120.0, "azure": 120.0}


@pytest.mark.parametrize("cloud", GIVEN)
@given(grace=st.integers(0, 600), leaves=st.none() | st.integers(-100, 300))
def test_all_of_it_is_over_before_the_machine_is(cloud: str, grace: int, leaves: int | None) -> None:
    found = parting(cloud, NOW, grace, None if leaves is None else NOW + leaves)
    assert NOW <= found.job_at <= found.job_at + found.grace_seconds <= found.gone_at < NOW + GIVEN[cloud]
    assert found.gone_at <= NOW + MOST_SECONDS
    if leaves is not None and leaves > 0:
        assert found.gone_at <= NOW + leaves + 1e-6


def test_only_on_nebius_is_the_signal_the_notice() -> None:
    assert parting("nebius", NOW, 30, None).notice_at == NOW + 60
    assert [parting(cloud, NOW, 30, None).notice_at for cloud in ("aws", "gcp", "azure")] == [None] * 3
    assert parting("nebius", NOW, 30, NOW + 50).notice_at is None, "it was told before"


def test_a_laptops_job_is_stopped_at_once() -> None:
    assert parting("", NOW, 7, None) == (None, 0.0, 7, math.inf)
