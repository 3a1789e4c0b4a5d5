"""A migration diff in a terminal, in a pull request, as JSON: held to golden files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from planner.migration.document import from_document, to_document
from planner.model.digest import pretty
from planner.model.migration import Kept
from planner.render import migration_json, migration_markdown, migration_text
from planner.render.text import Paint
from planner.spec import schema_migration
from tests.unit.migration.diffs import diff

GOLDEN = Path(__file__).parents[2] / "golden" / "migration"
PLAIN = Paint(on=False)
KEPT = Kept(
    job="other",
    code="SKY-MOVE-401",
    text="aws:prod/us-west-2/usw2-az1/p4de.24xlarge/spot would gain $1.20 net over 8.00 h, and $7.00 are asked",
    best="aws:prod/us-west-2/usw2-az1/p4de.24xlarge/spot",
    terms=diff().terms,
    numbers=diff().numbers,
)


def _held(name: str, found: str) -> None:
    """To write them anew: `python -m tests.unit.render.test_migration`."""
    assert (GOLDEN / name).read_text(encoding="utf-8") == found


def texts() -> dict[str, str]:
    lines = [*migration_text.diff_lines(diff(), PLAIN), *migration_text.kept_lines(KEPT, PLAIN, explain=True)]
    document = migration_json.document([diff()], [KEPT], as_of="2026-11-30T12:00:00Z")
    return {
        "diff.txt": "\n".join(lines) + "\n",
        "diff.md": migration_markdown.document([diff()], [KEPT]),
        "diff.json": pretty(document).decode(),
    }


@pytest.mark.parametrize("name", ["diff.txt", "diff.md", "diff.json"])
def test_it_reads_as_it_did(name: str) -> None:
    _held(name, texts()[name])


def test_the_schema_admits_a_diff_and_nothing_that_lacks_a_field() -> None:
    jsonschema.Draft202012Validator.check_schema(schema_migration.migration_schema())
    check = jsonschema.Draft202012Validator(schema_migration.migration_schema())
    document = json.loads(json.dumps(to_document(diff())))
    assert list(check.iter_errors(document)) == []
    for name in document:
        assert list(check.iter_errors({k: v for k, v in document.items() if k != name})), name
    assert list(check.iter_errors(document | {"more": 1})) == []  # what a later 1.x adds


def test_a_strangers_words_open_nothing_in_markdown() -> None:
    evil = replace(diff(), job="a|b", text="see <script>, @everyone, [x](javascript:y) and https://evil.example")
    text = migration_markdown.document([evil], [replace(KEPT, text="</details> @all")])
    for mark in ("<script>", "@everyone", "@all", "[x](javascript", "https://evil", "a|b"):
        assert mark not in text
    assert text.count("</details>") == 3


def test_a_comment_is_never_longer_than_github_takes() -> None:
    many = [replace(diff(), job=f"train-{n}") for n in range(400)]
    text = migration_markdown.document(many, [])
    assert len(text) <= 61_000
    assert "Cut here" in text
    assert text.count("<details>") == text.count("</details>")


def test_unknown_prices_are_said_to_be_unknown() -> None:
    one = diff()
    unknown = replace(one, standing=replace(one.standing, usd_per_hour=None, remaining_hours=None, step=None))
    text = "\n".join(migration_text.diff_lines(unknown, PLAIN))
    assert "price unknown" in text
    assert "left   unknown" in text
    assert "unknown" in migration_text.signed(None)


def test_the_golden_json_reads_back() -> None:
    (one,) = json.loads((GOLDEN / "diff.json").read_text(encoding="utf-8"))["migrations"]
    assert from_document(one, "golden") == diff()


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, text in texts().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")
