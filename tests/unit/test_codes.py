"""Every code is explained, is raised by something or says why not, and nothing uses a code that is not in the table."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from planner.app.explain_rule import rule
from planner.cli.entry import call
from planner.model.codes import CODES
from planner.model.migration import REASON_CODES
from planner.model.notes import FAMILIES, note
from planner.model.reserved_codes import RESERVED

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"SKY-[A-Z]+-[0-9]{3}")
#: where a code is written down and not raised
TABLES = {"codes.py", "iam_codes.py", "reserved_codes.py", "examples.py"}
SOURCES = {".py", ".sh", ".j2", ".html", ".tmpl", ".js"}


@cache
def used() -> dict[str, str]:
    """Code -> a file that uses it."""
    found: dict[str, str] = dict.fromkeys(REASON_CODES.values(), "planner/model/migration.py")
    for folder in ("planner", "stacks", "modules", "catalog"):
        for path in sorted((ROOT / folder).rglob("*")):
            told = path.name in TABLES or path.parent.name == "notes"
            if path.suffix in SOURCES and not told and "__pycache__" not in path.parts:
                text = path.read_text(encoding="utf-8")
                for code in [*CODE.findall(text), *_numbered(text)]:
                    found.setdefault(code, str(path.relative_to(ROOT)))
    return found


def _numbered(text: str) -> list[str]:
    """Codes that are made of a list of numbers: `f"SKY-MOVE-{n}" for n in (401, 402)`."""
    made = re.findall(r'f"(SKY-[A-Z]+)-\{n\}" for n in \(([0-9, ]+)\)', text)
    return [f"{family}-{number}" for family, numbers in made for number in re.findall(r"[0-9]+", numbers)]


def test_nothing_uses_a_code_that_the_table_has_not() -> None:
    unknown = {code: file for code, file in used().items() if code not in CODES}
    assert unknown == {}, "add a row to planner/model/codes.py"


def test_every_code_is_used_or_reserved_with_a_reason() -> None:
    idle = [code for code in CODES if code not in used()]
    assert sorted(set(idle) - set(RESERVED)) == [], "raise it, or give its reason in planner/model/reserved_codes.py"
    assert sorted(set(RESERVED) & set(used())) == [], "it is raised: take it out of planner/model/reserved_codes.py"
    assert all(len(reason) > 20 or CODE.search(reason) for reason in RESERVED.values())


def test_every_code_is_explained() -> None:
    lacking = [code for code in CODES if note(code) is None and rule(code) is None]
    assert lacking == [], "write its note in planner/model/notes"


def test_no_note_is_of_a_code_that_is_none() -> None:
    for family, module in FAMILIES.items():
        notes = import_module(f"planner.model.notes.{module}").NOTES
        assert sorted(set(notes) - set(CODES)) == []
        assert list(notes) == sorted(notes)
        assert all(code.startswith(f"SKY-{family}-") for code in notes)


@pytest.mark.parametrize("code", [c for c in CODES if note(c)])
def test_a_note_says_where_what_and_what_to_do_beyond_the_hint(code: str) -> None:
    found = note(code)
    assert found is not None
    assert found.means.endswith(".")
    assert found.do.endswith(".")
    assert len(found.means) > 40
    assert found.means not in {CODES[code].meaning, CODES[code].hint}
    assert found.example
    assert not CODE.search(found.example), "the code stands behind every message: not in the example"


def test_codes_that_a_note_names_exist() -> None:
    named = {m for code in CODES if (n := note(code)) for text in n for m in CODE.findall(text)}
    assert named <= set(CODES)


def test_commands_that_a_note_names_exist() -> None:
    from planner.cli.entry import COMMANDS

    texts = [text for code in CODES if (n := note(code)) for text in n]
    named = {word for text in texts for word in re.findall(r"`skyplan ([a-z]+)", text)}
    assert named <= set(COMMANDS)


def test_one_code_and_a_family_in_words_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["explain", "sky-rej-205"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("SKY-REJ-205: the quota is below the need\n")
    assert all(f"\n{word}: " in text for word in ("where", "means", "do", "hint", "example"))
    assert max(map(len, text.splitlines())) <= 80
    assert call(["explain", "SKY-REJ-205", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == {"code", "meaning", "hint", "where", "means", "do", "example"}
    assert call(["explain", "SKY-REJ"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [c for c in CODES if c.startswith("SKY-REJ-")]
    assert call(["explain", "SKY-MOVE-43", "--json"]) == 0
    assert [c["code"] for c in json.loads(capsys.readouterr().out)] == ["SKY-MOVE-430", "SKY-MOVE-431"]
    assert call(["explain", "SKY-REX-1"]) == 1
    assert "near: SKY-REJ-2" in capsys.readouterr().err
