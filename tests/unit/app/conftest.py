from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.app.world import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "world")
    yield made
    made.close()
