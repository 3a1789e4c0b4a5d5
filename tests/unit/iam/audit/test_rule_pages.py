"""The pages in docs/rules are what the rules and their fixtures say now."""

from __future__ import annotations

import pytest

from planner.iam.audit.registry import RULES
from tests.unit.iam.audit.rule_pages import FOLDER, pages

HOW = "run `python -m tests.unit.iam.audit.rule_pages`"


def test_every_page_is_there_and_no_other():
    assert {path.name for path in FOLDER.glob("*.md")} == {"README.md", *(f"{rule}.md" for rule in RULES)}, HOW


@pytest.mark.parametrize("name", sorted(pages()))
def test_page_is_up_to_date(name):
    assert (FOLDER / name).read_text() == pages()[name], HOW
