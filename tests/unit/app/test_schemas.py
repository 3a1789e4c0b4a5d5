"""The published schemas have ids of their own, describe every field, admit all that skyplan writes and refuse what lacks or mistypes a field."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from planner.app import schemas
from planner.cli.entry import call
from planner.cli.options import SCHEMAS
from planner.model.grants import Bound, Condition, Grant, Identity, Permission
from planner.model.plan import PlacementPlan, from_document, to_document
from planner.model.reach import DataPath, Reach
from tests.unit.spec.closed import closed

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
PUBLISHED = schemas.published()
PLAN_FILES = sorted(GOLDEN.glob("cases/*/plan.json"))
WRITTEN = ("plan", "plans", "diff", "migration", "audit", "offers", "status")


@cache
def strict(name: str) -> Draft202012Validator:
    """Of the schema with its objects closed: what it does not name is a mistake of the schema's."""
    return Draft202012Validator(closed(PUBLISHED[name]))


@cache
def published(name: str) -> Draft202012Validator:
    return Draft202012Validator(PUBLISHED[name])


def told(validator: Draft202012Validator, document: Any) -> list[str]:
    return [f"{list(e.absolute_path)}: {e.message[:200]}" for e in validator.iter_errors(document)]


def golden_documents() -> Iterator[tuple[str, str, Any]]:
    for name, pattern in (
        ("plans", "cases/*/plan.json"),
        ("plan", "cases/*/plans/*.plan.json"),
        ("diff", "diff/*.json"),
        ("migration", "migration/diff.json"),
        ("audit", "audit/*/report.json"),
    ):
        for path in sorted(GOLDEN.glob(pattern)):
            document = json.loads(path.read_text(encoding="utf-8"))
            told_by_replan = name == "migration" and "migrations" in document
            for number, one in enumerate(document["migrations"] if told_by_replan else [document]):
                yield name, f"{path.relative_to(GOLDEN)}-{number}", one


GOLDEN_DOCUMENTS = list(golden_documents())


def test_names_of_the_command_line_are_those_that_are_published() -> None:
    assert tuple(PUBLISHED) == SCHEMAS


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_is_a_schema_of_draft_2020_12_with_an_id_of_its_own(name: str) -> None:
    schema = PUBLISHED[name]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"urn:skyplan:schema:{name}:1"
    assert schema["title"].startswith("skyplan")
    assert schema["description"]


def undescribed(schema: Any, path: str = "") -> list[str]:
    if isinstance(schema, list):
        return [p for one in schema for p in undescribed(one, path)]
    if not isinstance(schema, dict):
        return []
    found = [f"{path}.{name}" for name, one in schema.get("properties", {}).items() if not one.get("description")]
    for name, one in schema.get("properties", {}).items():
        found += undescribed(one, f"{path}.{name}")
    for key in ("anyOf", "items", "additionalProperties"):
        found += undescribed(schema.get(key), path)
    return found + [p for name, one in schema.get("$defs", {}).items() for p in undescribed(one, f"${name}")]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_field_of_what_skyplan_writes_is_described(name: str) -> None:
    assert undescribed(PUBLISHED[name]) == []


@pytest.mark.parametrize("name", WRITTEN)
def test_the_major_version_is_pinned_and_objects_are_open(name: str) -> None:
    pattern = PUBLISHED[name]["properties"]["format_version"]["pattern"]
    assert pattern == r"^1\.[0-9]+$"
    assert PUBLISHED[name]["additionalProperties"] is True


@pytest.mark.parametrize(("name", "document"), [(n, d) for n, _, d in GOLDEN_DOCUMENTS], ids=[i for _, i, _ in GOLDEN_DOCUMENTS])  # fmt: skip
def test_every_golden_file_has_the_form_and_nothing_unnamed(name: str, document: Any) -> None:
    assert told(strict(name), document) == []
    assert told(published(name), document | {"a_field_of_a_later_version": {"deep": [1]}}) == []


def test_golden_files_of_every_kind_were_found() -> None:
    assert {name for name, _, _ in GOLDEN_DOCUMENTS} == {"plans", "plan", "diff", "migration", "audit"}


def mutations(document: Any, schema_required: list[str]) -> Iterator[tuple[str, Any]]:
    """Each required field taken away, and each given another type."""
    for name in schema_required:
        lost = copy.deepcopy(document)
        del lost[name]
        yield f"without {name}", lost
        strange = copy.deepcopy(document)
        strange[name] = 3.5 if not isinstance(document[name], float) else "3.5"
        yield f"{name} of another type", strange
    yield "another major version", document | {"format_version": "2.0"}


@pytest.mark.parametrize("name", ["plan", "plans", "diff", "migration", "audit"])
def test_a_lost_field_a_wrong_type_and_another_major_version_are_refused(name: str) -> None:
    document = next(d for n, _, d in GOLDEN_DOCUMENTS if n == name)
    for what, changed in mutations(document, PUBLISHED[name]["required"]):
        assert told(published(name), changed), what


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("usd_per_hour", 12.5),
        ("usd_per_hour", "12.5"),
        ("nodes", 0),
        ("nodes", "1"),
        ("cloud", "ibm"),
        ("capacity", "preemptible"),
        ("placement_id", "q1"),
        ("grants_digest", "md5:0"),
        ("terms_usd", {"compute": 1}),
        ("caveats", [{"code": "X"}]),
        ("lower_bound", "no"),
    ],
)
def test_a_placement_with_a_wrong_value_is_refused(field: str, value: Any) -> None:
    plan = json.loads(PLAN_FILES[0].read_text(encoding="utf-8"))["plans"][0]
    plan["ranked"][0][field] = value
    assert told(published("plan"), plan)


REAL = [
    from_document(plan, path.parent.name)
    for path in PLAN_FILES
    for plan in json.loads(path.read_text(encoding="utf-8"))["plans"]
]
TEXT = st.text(max_size=20)
MONEY = st.decimals(min_value=0, max_value=Decimal("1e9"), places=4, allow_nan=False)
GRANTS = st.builds(
    Grant,
    identity=st.sampled_from(Identity),
    permission=st.sampled_from(Permission),
    resource=TEXT,
    reason=TEXT,
    conditions=st.lists(
        st.builds(Condition, bound=st.sampled_from(Bound), values=st.lists(TEXT, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
)
PATHS = st.builds(
    DataPath,
    uri=TEXT.map("s3://b/{}".format),
    write=st.booleans(),
    reach=st.sampled_from(Reach),
    detail=TEXT,
    settings=st.lists(st.tuples(TEXT, TEXT), max_size=2, unique_by=lambda pair: pair[0]).map(tuple),
)


@st.composite
def plans(draw: st.DrawFn) -> PlacementPlan:
    """Real plans with figures, rights and words of any kind: what the planner may come to write."""
    plan = draw(st.sampled_from(REAL))
    ranked = tuple(
        replace(
            p,
            total_usd=draw(MONEY),
            usd_per_hour=draw(MONEY),
            finish_hours=draw(MONEY),
            lower_bound=draw(st.booleans()),
            differs=tuple(draw(st.lists(TEXT, max_size=2))),
            terms=tuple(replace(t, usd=draw(st.none() | MONEY), detail=draw(TEXT)) for t in p.terms),
        )
        for p in plan.ranked[: draw(st.integers(0, 3))]
    )
    return replace(
        plan,
        ranked=ranked,
        notes=tuple(draw(st.lists(TEXT, max_size=3))),
        grants={"sha256:" + "0" * 64: tuple(draw(st.lists(GRANTS, max_size=2)))},
        access={"aws:prod": tuple(draw(st.lists(PATHS, max_size=2)))},
    )


@given(plans())
def test_any_plan_has_the_form_and_comes_back(plan: PlacementPlan) -> None:
    document = json.loads(json.dumps(to_document(plan)))
    assert told(strict("plan"), document) == []
    assert to_document(from_document(document, "x")) == document


@given(plans(), st.data())
def test_a_plan_that_lacks_any_field_at_any_depth_is_refused(plan: PlacementPlan, data: st.DataObject) -> None:
    document = json.loads(json.dumps(to_document(plan)))
    where = data.draw(st.sampled_from([document, document["status"], document["inputs"], *document["ranked"]]))
    known = PUBLISHED["plan"]["$defs"]["placement"] if where in document["ranked"] else PUBLISHED["plan"]
    required = (
        known["required"] if where is document or where in document["ranked"] else sorted(set(where) - {"market"})
    )
    del where[data.draw(st.sampled_from(required))]
    assert told(published("plan"), document)


def skyplan(folder: Path, *arguments: str) -> Any:
    command = [sys.executable, "-c", "from planner.cli.entry import run; run()", *arguments]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=True)
    return json.loads(done.stdout)


def test_what_the_commands_print_has_the_form(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text((ROOT / "examples" / "jobs" / "llama3-8b-sft.yaml").read_text())
    printed = skyplan(tmp_path, "plan", "job.yaml", "--json")
    assert told(strict("plans"), printed) == []
    assert told(strict("offers"), skyplan(tmp_path, "offers", "H100:8", "--json")) == []


def test_files_of_all_or_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["schema", "--out", str(tmp_path / "all")]) == 0
    assert {p.name for p in (tmp_path / "all").iterdir()} == {f"{name}.schema.json" for name in SCHEMAS}
    assert json.loads((tmp_path / "all" / "plan.schema.json").read_text()) == PUBLISHED["plan"]
    assert call(["schema", "diff", "--out", str(tmp_path / "one")]) == 0
    assert [p.name for p in (tmp_path / "one").iterdir()] == ["diff.schema.json"]
    capsys.readouterr()
    assert call(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == PUBLISHED["job"]


def test_a_checker_that_is_not_ours_takes_the_files(tmp_path: Path) -> None:
    """As docs/editors.md has it run before a commit; of a file with several jobs it reads none."""
    assert call(["schema", "--out", str(tmp_path)]) == 0
    program = [sys.executable, "-m", "check_jsonschema"]
    schemas_ = sorted(tmp_path.glob("*.schema.json"))
    jobs = [p for p in sorted((ROOT / "examples" / "jobs").glob("*.yaml")) if "\n---" not in p.read_text("utf-8")]
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: x\nresources: {acelerators: H100}\n")
    for arguments, code in (
        (["--check-metaschema", *schemas_], 0),
        (["--schemafile", tmp_path / "job.schema.json", *jobs], 0),
        (["--schemafile", tmp_path / "project.schema.json", ROOT / "examples" / "skyplan.yaml"], 0),
        (["--schemafile", tmp_path / "plans.schema.json", *PLAN_FILES], 0),
        (["--schemafile", tmp_path / "job.schema.json", bad], 1),
    ):
        done = subprocess.run([*program, *map(str, arguments)], capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stdout + done.stderr
