"""One CDK kernel for all tests of a worker."""

from __future__ import annotations

from typing import Any

import pytest

from planner.model.errors import MissingPart
from planner.model.stack import StackInput


@pytest.fixture(scope="session")
def render():
    """Renders one stack input to its Terraform JSON."""
    try:
        from stacks.app import document
    except MissingPart as missing:  # pragma: no cover - only where the extras are not installed
        pytest.skip(str(missing))

    def make(given: StackInput) -> dict[str, Any]:
        return document(given)

    return make
