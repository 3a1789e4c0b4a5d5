"""Two sets of plans held against each other: what becomes of each job, what it costs, and what is said where something is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from planner.app import diff
from planner.app.diff_change import change
from planner.app.diff_read import held as read_held
from planner.app.diff_terraform import read_terraform_plan
from planner.model.change import Action, Amount, Bound, difference
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.plan import to_document
from tests.unit.app.diffing import READ, at, held, plan, put, resource, terraform

MOMENT = "2026-11-30T12:00:00Z"


def test_what_becomes_of_a_job() -> None:
    here, there = at(), at("us-west-2", placed="p2222222222")
    more = at(nodes=3, placed="p3333333333")
    cases = [
        (None, held(here), Action.CREATE),
        (held(here), None, Action.RETIRE),
        (held(here), held(there), Action.MIGRATE),
        (held(here), held(more), Action.UPDATE),
        (held(here), held(here), Action.KEEP),
        (held(here), held(), Action.UPDATE),
        (held(), held(), Action.KEEP),
    ]
    for before, after, action in cases:
        assert change("train", before, after).action is action


def test_another_way_of_paying_and_another_gpu_are_moves() -> None:
    for other in (at(capacity="on_demand", placed="p2"), at(kind="p5.48xlarge", gpu="H100", placed="p3")):
        assert change("train", held(at()), held(other)).action is Action.MIGRATE


def test_a_move_says_where_the_old_place_stands_now() -> None:
    there = at("us-west-2", usd="8.0000", placed="p2222222222")
    found = change("train", held(at()), held(there, at()))
    assert found.reason == (
        "aws:prod/us-east-1/us-east-1-az1/p4de.24xlarge/spot is #2 now: $100.00 there, $20.00 more (+25.0%)"
    )
    gone = change("train", held(at()), held(there))
    assert "not among the 1 ranked places any more" in gone.reason


def test_what_has_no_place_any_more_says_why() -> None:
    assert change("train", held(at()), held()).reason == ("no feasible placement: 12 offers rejected (SKY-REJ-205 12)")


@pytest.mark.parametrize(
    ("before", "after", "bound"),
    [
        (Amount(usd=Decimal(9)), Amount(usd=Decimal(5)), Bound.EXACT),
        (Amount(usd=Decimal(5)), Amount(usd=Decimal(9), at_least=True), Bound.AT_LEAST),
        (Amount(usd=Decimal(9)), Amount(usd=Decimal(5), at_least=True), Bound.UNKNOWN),
        (Amount(usd=Decimal(9), at_least=True), Amount(usd=Decimal(5)), Bound.AT_MOST),
        (Amount(usd=Decimal(9), at_least=True), Amount(usd=Decimal(5), at_least=True), Bound.UNKNOWN),
    ],
)
def test_an_unknown_price_is_never_a_saving(before: Amount, after: Amount, bound: Bound) -> None:
    assert difference(before, after).bound is bound


def test_kept_with_other_figures_is_told_and_changes_nothing(tmp_path: Path) -> None:
    base = put(tmp_path / "a", plan(at()))
    head = put(tmp_path / "b", plan(at(usd="11.0000")))
    found = diff.run(diff.Request(base=base, head=head))
    (one,) = found.changes
    assert (one.action, one.other_figures, found.changed) == (Action.KEEP, True, False)
    assert one.total.difference.usd == Decimal(10)


def test_values_of_the_environment_are_told_to_nobody() -> None:
    old, new = ({"env": {"KEY": value}} for value in ("one", "two"))
    found = change("train", held(at(), job=old), held(at(placed="p2"), job=new))
    (altered,) = found.altered
    assert (altered.name, altered.before, altered.after) == ("job.env.KEY", "set", "set anew")


def test_grants_of_the_choice_are_compared() -> None:
    wider = replace(READ, resource="s3://acme-data/")
    found = change("train", held(at()), held(at(placed="p2"), grants=(wider,)))
    assert (found.grants_added, found.grants_removed) == ((wider,), (READ,))


def test_every_problem_of_both_sides_is_told_at_once(tmp_path: Path) -> None:
    base = put(tmp_path / "a", plan(at()))
    (base / "broken.plan.json").write_text('{\n  "ranked": [,\n')
    edited = to_document(plan(at(), name="other"))
    head = put(tmp_path / "b", plan(at()))
    (head / "other.plan.json").write_text(str(edited).replace("'", '"').replace("None", "null").replace("True", "true"))
    with pytest.raises(InputError) as caught:
        diff.run(diff.Request(base=base, head=head, terraform=(tmp_path / "none.json",)))
    told = [str(d.location) for d in caught.value.diagnostics]
    assert "broken.plan.json:2" in told
    assert any("none.json" in one for one in told)
    assert len(told) == 3


def test_an_edited_plan_is_refused() -> None:
    document = to_document(plan(at()))
    document["ranked"][0]["total_usd"] = "1.0000"
    with pytest.raises(InputError, match="digest"):
        read_held(document, "x.plan.json")


def test_terraforms_actions_are_judged_by_what_they_hold(tmp_path: Path) -> None:
    path = terraform(
        tmp_path / "plan.json",
        resource("a.new", "create"),
        resource("a.same", "no-op"),
        resource("a.read", "read"),
        resource("a.gone", "delete", action_reason="delete_because_no_resource_config"),
        resource("a.anew", "create", "delete", change={"replace_paths": [["user_data"], ["tags", 0]]}),
        resource("a.other", "delete", "create"),
        resource("a.moved", "no-op", previous_address="b.moved"),
        resource("a.set", "update", change={"before": {"x": "secret"}, "after": {"x": "other"}}),
        resource("a.future", "dance", "delete"),
        output_changes={"ip": {"actions": ["update"]}, "same": {"actions": ["no-op"]}},
        resource_drift=[{"address": "a.drifted"}],
    )
    found = read_terraform_plan(path)
    assert [(r.address, r.action) for r in found.resources] == [
        ("a.anew", "replace"),
        ("a.future", "delete"),
        ("a.gone", "delete"),
        ("a.moved", "move"),
        ("a.new", "create"),
        ("a.other", "replace"),
        ("a.set", "update"),
    ]
    assert found.outputs == (("ip", "update"),)
    assert found.drifted == ("a.drifted",)
    assert "secret" not in repr(found)
    assert found.resources[0].paths == ("user_data", "tags.0")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format_version": "2.0", "planned_values": {}}'])
def test_what_is_no_terraform_plan_is_refused_with_its_place(tmp_path: Path, text: str) -> None:
    path = tmp_path / "plan.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_terraform_plan(path)
    (told,) = caught.value.diagnostics
    assert told.location is not None
    assert told.location.file == "plan.json"
    assert "terraform show -json" in told.hint


def test_an_edited_file_is_refused_however_it_is_laid_out(tmp_path: Path) -> None:
    document = to_document(plan(at(), job={"run": 'echo "a": b "c":d'}))
    whole = pretty(document).decode()
    assert read_held(json.loads(whole), "x", whole).digest == document["digest"]
    compact = json.dumps(document)
    assert read_held(json.loads(compact), "x", compact).digest == document["digest"]
    for old, new in (('"nodes": 1', '"nodes": 2'), ('c\\":d', 'c\\": d'), ("echo ", "echo  "), ("sha256:", "sha256:0")):
        assert old in whole
        edited = whole.replace(old, new, 1)
        with pytest.raises(InputError):
            read_held(json.loads(edited), "x", edited)
    plain = to_document(plan(at()))
    text = pretty(plain).decode().replace('"nodes": 1', '"nodes": 2')
    with pytest.raises(InputError):
        read_held(json.loads(text), "x", text)


def test_a_plan_that_says_a_strange_moment_breaks_no_comment(tmp_path: Path) -> None:
    strange = plan(at())
    strange.inputs["as_of"] = '" --> <script>'
    base, head = put(tmp_path / "a", strange), put(tmp_path / "b", plan(at("us-west-2", placed="p2")))
    found = diff.run(diff.Request(base=base, head=head))
    assert (found.valid_at, found.snapshots) == (MOMENT, (MOMENT,))


def test_words_that_are_none_of_terraforms_are_not_shown(tmp_path: Path) -> None:
    path = terraform(tmp_path / "plan.json", output_changes={"x": {"actions": ["<script>"]}})
    assert read_terraform_plan(path).outputs == (("x", "replace"),)
