"""A migration diff as JSON: it comes back whole, and what was edited is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from planner.migration.document import from_document, to_document
from planner.model.digest import digest
from planner.model.errors import InputError
from tests.unit.migration.diffs import diff


def _again(document: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(document))


def test_it_comes_back_as_it_was() -> None:
    one = diff()
    assert from_document(_again(to_document(one)), "a.diff.json") == one


def test_what_is_unknown_comes_back_unknown() -> None:
    one = diff()
    one = replace(
        one,
        standing=replace(one.standing, usd_per_hour=None, remaining_usd=None, step=None, checkpoint_step=None),
        steps=(replace(one.steps[0], minutes=None),),
        terms=(replace(one.terms[0], usd=None),),
    )
    assert from_document(_again(to_document(one)), "a.diff.json") == one


@pytest.mark.parametrize(
    "change",
    [
        {"stop_minutes": "0.0000"},
        {"reviewed": True},
        {"job": "other"},
        {"digest": "sha256:0"},
        {"format_version": "2.0"},
    ],
)
def test_what_was_edited_is_refused(change: dict[str, Any]) -> None:
    document = _again(to_document(diff())) | change
    with pytest.raises(InputError) as refused:
        from_document(document, "a.diff.json")
    assert [d.code for d in refused.value.diagnostics] == ["SKY-MOVE-423"]


@pytest.mark.parametrize("missing", sorted(set(to_document(diff())) - {"format_version", "digest"}))
def test_what_lacks_a_field_is_refused_though_its_digest_fits(missing: str) -> None:
    document = _again(to_document(diff()))
    del document[missing], document["digest"]
    document["digest"] = digest(document)
    with pytest.raises(InputError) as refused:
        from_document(document, "a.diff.json")
    assert [d.code for d in refused.value.diagnostics] == ["SKY-MOVE-423"]


@pytest.mark.parametrize("document", [None, [], "diff", {}, {"format_version": "1.0", "x": float("nan")}])
def test_what_is_no_diff_is_refused(document: Any) -> None:
    with pytest.raises(InputError):
        from_document(document, "a.diff.json")


def test_equal_diffs_give_equal_documents_and_other_ones_other_digests() -> None:
    assert to_document(diff()) == to_document(diff())
    other = replace(diff(), stop_minutes=Decimal(9))
    assert to_document(other)["digest"] != to_document(diff())["digest"]
