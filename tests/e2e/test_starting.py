"""R22, R25: the page that begins in a repository of one's own does what it says, in its order, against the installed program."""

from __future__ import annotations

from pathlib import Path

from planner.model.errors import MissingPart
from stacks import binary
from tests import pages


def test_the_page_does_what_it_says(tmp_path: Path) -> None:
    try:
        binary.find()
        missing = {}
    except MissingPart as error:
        missing = {"terraform": str(error)}
    assert pages.run_page(pages.DOCS / "starting.md", tmp_path / "infra-live", missing) >= 5
