"""R25: what comments share: which of our texts say that nothing changes, and lines that are read back exactly (peers 10, 17)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.model.audit_report import AuditReport
from planner.model.finding import Level
from planner.render import audit_markdown, diff_markdown, migration_markdown
from planner.render.comment import Hidden, hidden_line, kind_of, read_hidden, says_no_change, shortened, without_hidden
from tests.unit.app.diffing import at, made, plan
from tests.unit.migration.diffs import diff as migration
from tests.unit.render.audit_reports import RULES, finding
from tests.unit.render.test_migration import KEPT

CLEAN = AuditReport(project="acme", sources=("plans",), identities=(("aws", "node"),), rules=RULES, findings=())


def quiet(text: str) -> bool:
    return says_no_change(without_hidden(text))


def test_a_diff_without_a_change_is_quiet_and_one_with_a_change_is_not() -> None:
    same = made([plan(at())], [plan(at())])
    moved = made([plan(at())], [plan(at("us-west-2", placed="p2222222222"), at())])
    assert quiet(diff_markdown.document(same))
    assert quiet(diff_markdown.document(same, tag="prod"))
    assert not quiet(diff_markdown.document(moved, tag="prod"))


def test_an_audit_is_quiet_only_where_all_was_read_and_nothing_found() -> None:
    assert quiet(audit_markdown.document(CLEAN))
    assert quiet(audit_markdown.document(replace(CLEAN, base="origin/main", standing=3)))
    low = finding(level=Level.LOW)
    for loud in (replace(CLEAN, findings=(low,)), replace(CLEAN, findings=(finding(),)), replace(CLEAN, unread=1)):
        assert not quiet(audit_markdown.document(loud))


def test_a_replan_is_quiet_where_nothing_moves() -> None:
    assert quiet(migration_markdown.document([], [KEPT]))
    assert quiet(migration_markdown.document([], []))
    assert not quiet(migration_markdown.document([migration()], [KEPT]))


def test_a_strangers_text_is_never_quiet() -> None:
    for text in ("", "no change", "**skyplan: no change.**\n\nbut this", "# x\n**skyplan: no change.**"):
        assert not says_no_change(text)


def test_kinds_are_told_by_their_headings() -> None:
    assert kind_of(audit_markdown.document(CLEAN)) == "audit"
    assert kind_of(migration_markdown.document([], [])) == "replan"
    assert kind_of("## skyplan auditor\n") == "comment"
    assert kind_of("words\n## skyplan audit\n") == "comment"


@pytest.mark.parametrize(
    "line",
    [
        '<!-- skyplan-diff tag="prod" valid-at="" -->',
        '<!-- skyplan-audit tag="a/b.c_d-e" valid-at="2026-11-30T10:00:00Z" -->',
        '<!-- skyplan-replan tag="x" valid-at="2026-11-30" outdated -->',
    ],
)
def test_a_line_is_read_back(line: str) -> None:
    found = read_hidden(f"{line}\nwords")
    assert found is not None
    assert hidden_line(found) == line


@pytest.mark.parametrize(
    "line",
    [
        '<!-- skyplan-plan tag="prod" valid-at="" -->',
        '<!-- skyplan-diff tag="" valid-at="" -->',
        '<!-- skyplan-diff tag="a--b" valid-at="" -->',
        '<!-- skyplan-diff tag="prod" valid-at="now" -->',
        '<!-- skyplan-diff tag="prod" valid-at="" hidden -->',
        '<!-- skyplan-diff tag="prod"  valid-at="" -->',
        '\ufeff<!-- skyplan-diff tag="prod" valid-at="" -->',
    ],
)
def test_a_line_that_is_not_exactly_one_is_none(line: str) -> None:
    assert read_hidden(f"{line}\nwords") is None


def test_an_odd_moment_is_older_than_any() -> None:
    odd = Hidden(kind="diff", tag="x", valid_at="9999-99-99T99:99:99Z")
    assert odd.moment < Hidden(kind="diff", tag="x", valid_at="1970-01-01T00:00:00Z").moment


def test_a_text_of_one_long_block_keeps_its_first_lines_and_of_one_long_line_nothing() -> None:
    table = "| a |\n|---|\n" + "| row |\n" * 500
    cut = shortened(table, 600)
    assert cut.startswith("| a |\n|---|\n| row |\n")
    assert len(cut.encode()) <= 600
    assert shortened("x" * 900, 600).strip().startswith("_Shortened")


def test_a_diff_of_full_length_is_not_cut_again() -> None:
    text = diff_markdown.document(made([], [plan(at(), name=f"job-{k}") for k in range(400)]), tag="prod")
    assert 50_000 < len(text.encode()) <= diff_markdown.LONGEST
    assert shortened(text, 65_000) == text
    small = shortened(text, 20_000)
    assert len(small.encode()) <= 20_000
    assert small.count("<details>") == small.count("</details>")
    assert "all jobs (400)" in small
