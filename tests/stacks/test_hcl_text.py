"""R21: values of Terraform JSON as HCL text: templates stay templates, texts stay texts, and `terraform fmt` would change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stacks.hcl import block
from stacks.hcl_text import Line, Literal, Raw, attributes, expression, key, literal, template
from tests.emulators import terraform as machine


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", '"plain"'),
        ("${aws_vpc.net.id}", "aws_vpc.net.id"),
        ("${ aws_vpc.net.id }", "aws_vpc.net.id"),
        ('${var.subnets["a"]}', 'var.subnets["a"]'),
        ("a-${var.x}-b", '"a-${var.x}-b"'),
        ("${var.x}${var.y}", '"${var.x}${var.y}"'),
        ("$${HOME}", '"$${HOME}"'),
        ("100%", '"100%"'),
        ("%%{if}", '"%%{if}"'),
        ('a "quoted" \\ back', r'"a \"quoted\" \\ back"'),
        ("two\nlines\t", r'"two\nlines\t"'),
        ("é 日 😀", '"é 日 😀"'),
        ("\u200b\x07", r'"\u200b\u0007"'),
        ("${{for k, v in var.m : k => v}}", "{ for k, v in var.m : k => v }"),
        ('${join("}", ["${a.b}"])}', 'join("}", ["${a.b}"])'),
        ("${a\n? b : c}", "(a\n? b : c)"),
        (1, "1"),
        (-2.5, "-2.5"),
        (True, "true"),
        (None, "null"),
        ([], "[]"),
        ({}, "{}"),
        (["a", 1, "${var.c}"], '["a", 1, var.c]'),
        ({"a": 1, "skyplan:job": "x"}, '{\n  a             = 1\n  "skyplan:job" = "x"\n}'),
        ({"for": 1, "${var.k}": 2}, '{\n  (var.k) = 2\n  "for"   = 1\n}'),
        (Raw("aws.data"), "aws.data"),
        (Literal("${not}"), '"$${not}"'),
        (Literal("$${not} %%{x}"), r'"\u0024$${not} \u0025%%{x}"'),
    ],
)
def test_values(value: Any, text: str) -> None:
    assert expression(value) == text


def test_neighbours_of_one_line_are_aligned_and_longer_ones_break_the_column() -> None:
    lines = attributes([Line("a", "1"), Line("long", "2"), Line("o", "{\n  x = 1\n}"), Line("b", "3")])
    assert lines == ["a    = 1", "long = 2", "o = {", "  x = 1", "}", "b = 3"]


def test_a_long_list_is_broken_and_a_list_of_objects_always() -> None:
    assert expression(["x" * 60, "y" * 60]).count("\n") == 3
    assert expression([{"a": 1}]) == "[\n  {\n    a = 1\n  },\n]"


@pytest.mark.parametrize("text", ["${open", '${"', '${"${', "%{ if x"])
def test_a_template_that_does_not_end_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="does not end"):
        expression(text)


def test_a_lone_carriage_return_beside_a_sequence_is_refused_since_terraform_reads_it_in_two_ways() -> None:
    with pytest.raises(ValueError, match="carriage return"):
        expression("a\r${var.x}")
    assert expression("a\rb") == r'"a\rb"'
    assert expression("a\r\n${var.x}") == r'"a\r\n${var.x}"'


def test_what_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        expression(float("nan"))


#: what makes quoting hard, and what is a whole sequence
SIGNS = ("$", "%", "{", "}", '"', "\\", "\n", "\t", " ", "\r\n", "\u0301", "\u200b", "😀", "é", "\\n", "#", "//", "/*", "~", "EOT", "for")  # fmt: skip
SEQUENCES = ("${var.x}", '${"q${var.x}\\"}"}', '${ {a = "}"}.a }', '${upper("$${")}', "$${", "%%{")
TEMPLATES = st.lists(st.sampled_from(SIGNS + SEQUENCES) | st.text(max_size=3), max_size=6).map("".join)


def _sound(text: str) -> bool:
    """Every sequence in it is one of those above: joined signs open none that Terraform could not read."""
    try:
        return all(part in SEQUENCES for part in template(text) if part[:2] in {"${", "%{"})
    except ValueError:
        return False


def _storable(text: str) -> bool:
    return "\r" not in text.replace("\r\n", "") and "\0" not in text


SOUND = TEMPLATES.filter(lambda text: _storable(text) and _sound(text))
#: `terraform fmt` takes the first `=` of a line for the attribute's own, wherever it stands
KEYS = SOUND.filter(lambda text: "=" not in text)
VALUES = st.recursive(
    SOUND | st.integers(-(10**12), 10**12) | st.booleans() | st.none() | st.sampled_from([2.5, 1e-7, -0.125]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
LITERALS = TEMPLATES.filter(_storable)


@given(VALUES)
def test_parts_of_a_template_are_the_template(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    if _sound(text):
        assert "".join(template(text)) == text


@given(LITERALS)
def test_a_key_is_plain_ascii(text: str) -> None:
    assert key(Literal(text)).isascii()


def _document(values: list[Any], texts: list[str]) -> dict[str, Any]:
    variables = {f"v{n}": {"default": text} for n, text in enumerate(texts)}
    outputs = {f"o{n}": {"value": value} for n, value in enumerate(values)}
    kept = {f"l{n}": {"value": f"${{var.v{n}}}"} for n in range(len(texts))}
    return {"variable": {"x": {"default": "X"}, **variables}, "output": {**outputs, **kept}}


def _as_hcl(document: dict[str, Any]) -> str:
    blocks = [
        block(f'variable "{name}"', attributes([Line("default", expression(literal(one["default"])))]))
        for name, one in document["variable"].items()
    ]
    blocks += [
        block(f'output "{name}"', attributes([Line("value", expression(one["value"]))]))
        for name, one in document["output"].items()
    ]
    return "\n\n".join(blocks) + "\n"


def _planned(terraform: machine.Terraform, folder: Path) -> Any:
    terraform.ok(folder, "plan", "-no-color", "-out", "made.plan")
    return json.loads(terraform.ok(folder, "show", "-json", "made.plan"))["planned_values"]["outputs"]


@pytest.mark.terraform
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(VALUES, min_size=30, max_size=60), st.lists(LITERALS, min_size=20, max_size=40))
def test_terraform_reads_the_same_out_of_both_forms(tmp_path_factory, values: list[Any], texts: list[str]) -> None:
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("forms")
    terraform = machine.prepare(folder / "home", stubs={})
    document = _document(values, texts)
    for name, file, data in (("json", "main.tf.json", json.dumps(document)), ("hcl", "main.tf", _as_hcl(document))):
        (folder / name).mkdir()
        (folder / name / file).write_bytes(data.encode())
    assert _planned(terraform, folder / "hcl") == _planned(terraform, folder / "json")
