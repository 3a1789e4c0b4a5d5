"""R22, R25: a plan whose digest is right is read as what it is, whoever wrote it: no error but a named one, and no name in it is a path."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from planner.app.diff_read import held
from planner.cli.entry import call
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.plan import from_document

ROOT = Path(__file__).parents[3]
Document = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Document:
    folder = tmp_path_factory.mktemp("made")
    job = ROOT / "examples" / "jobs" / "llama3-8b-sft.yaml"
    assert call(["plan", "--offline", str(job), "--out", str(folder), "--plans", str(folder)]) == 0
    return json.loads((folder / "llama3-8b-sft.plan.json").read_text())


def put(document: Document, *path: str | int, value: Any) -> Document:
    out = copy.deepcopy(document)
    at: Any = out
    for one in path[:-1]:
        at = at[one]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    del out["digest"]
    return {**out, "digest": digest(out)}


WRONG: list[tuple[tuple[str | int, ...], Any]] = [
    (("job",), []),
    (("job", "name"), None),
    (("job", "name"), 5),
    (("job", "name"), ["a"]),
    (("job", "name"), "../../x"),
    (("job", "name"), "x/../../../y"),
    (("job", "name"), "-x"),
    (("job", "name"), "x\ny"),
    (("inputs",), {}),
    (("inputs", "job"), "x"),
    (("inputs", "job", "digest"), 5),
    (("ranked", 0, "rank"), "x"),
    (("ranked", 0, "rank"), True),
    (("ranked", 0, "region"), "../x"),
    (("ranked", 0, "target"), "a/b"),
    (("ranked", 0, "cloud"), ""),
    (("ranked", 0, "zone"), 7),
    (("ranked", 0, "lower_bound"), "no"),
    (("ranked", 0, "total_usd"), "NaN"),
    (("ranked", 0, "finish_hours"), "Infinity"),
    (("ranked", 0, "terms_usd", "compute"), "-Infinity"),
    (("ranked", 0, "caveats"), [{"code": 1, "text": "x"}]),
    (("ranked", 0, "addresses"), [1]),
    (("stacks", 0, "name"), "../x"),
    (("stacks", 0, "name"), 5),
]
OF_THE_REST: list[tuple[tuple[str | int, ...], Any]] = [
    (("notes",), [1]),
    (("rejected", 0, "examples"), [None]),
    (("ranked", 0, "terms_detail", "compute"), 1),
]


@pytest.mark.parametrize(("path", "value"), WRONG + OF_THE_REST, ids=str)
def test_a_plan_that_mistypes_a_field_is_refused(made: Document, path: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(InputError, match="field"):
        from_document(put(made, *path, value=value), "x.plan.json")


@pytest.mark.parametrize(("path", "value"), WRONG, ids=str)
def test_a_diff_refuses_it_too(made: Document, path: tuple[str | int, ...], value: Any) -> None:
    with pytest.raises(InputError, match="field"):
        held(put(made, *path, value=value), "x.plan.json")


def test_what_was_not_changed_is_read(made: Document) -> None:
    assert from_document(made, "x.plan.json").name == held(made, "x.plan.json").plan.name == "llama3-8b-sft"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("job", "work"), None),
        (("job", "run"), None),
        (("job", "resources", "capacity"), ["x"]),
        (("job", "work", "hours"), []),
        (("job", "name"), "x/../../../../outside"),
    ],
    ids=str,
)
@pytest.mark.parametrize("form", [("--root",), ()], ids=["root", "stacks"])
def test_synth_names_the_error_and_writes_nothing(  # noqa: PLR0917 - fixtures
    made: Document,
    path: tuple[str | int, ...],
    value: Any,
    form: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = tmp_path / "within"
    folder.mkdir()
    monkeypatch.chdir(folder)
    shutil.copy(ROOT / "examples" / "skyplan.yaml", folder)
    (folder / "x.plan.json").write_text(json.dumps(put(made, *path, value=value)))
    assert call(["synth", "--format", "hcl", "--out", "a/b", *form, "x.plan.json"]) == 1
    assert "[SKY-APPLY-301]" in capfd.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["within"]
    assert list(folder.rglob("*.tf")) == []
