"""YAML itself, sizes and durations, near misses: what every field is read with."""

from __future__ import annotations

import pytest

from planner.model.diagnostic import Location
from planner.spec.near import did_you_mean, near, one_of
from planner.spec.patterns import both, covers
from planner.spec.units import Malformed, hours, size_bytes
from planner.spec.yaml_lines import Mapping, Scalar, documents


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\n\tb: 2\n", 2),
        ("a: [1\nb: 2\n", 2),
        ("a: 'x\n", 2),
        ("a: b: c\n", 1),
        ("a: *nowhere\n", 1),
        ("ok: 1\nx: \x07\n", 2),
        ("a: %bad\n", 1),
        ("{" * 5000, 1),
        ("a: \ud800\n", 1),
    ],
)
def test_what_is_no_yaml_is_an_error_at_its_line(text: str, line: int) -> None:
    _, problems = documents(text, "job.yaml")
    assert [(p.code, p.location and p.location.file) for p in problems] == [("SKY-SPEC-101", "job.yaml")]
    assert problems[0].location is not None
    assert abs(problems[0].location.line - line) <= 1


def test_tabs_get_a_hint() -> None:
    _, (only,) = documents("a:\n\tb: 2\n", "job.yaml")
    assert (only.location and only.location.line, "tabs" in only.hint) == (2, True)


def test_documents_before_an_error_are_kept() -> None:
    nodes, problems = documents("a: 1\n---\nb: [\n", "job.yaml")
    assert (len(nodes), len(problems)) == (1, 1)


def test_a_file_that_is_too_large_is_refused() -> None:
    assert [p.code for p in documents("a: " + "x" * 1_000_001, "job.yaml")[1]] == ["SKY-SPEC-101"]


def test_keys_and_values_know_their_places() -> None:
    (node,), _ = documents("a: 1\nb:\n  on: yes\n", "job.yaml")
    assert isinstance(node, Mapping)
    inner = node.entries["b"].value
    assert isinstance(inner, Mapping)
    assert inner.entries["on"].key_at == Location("job.yaml", 3, 3)
    assert inner.entries["on"].value == Scalar(Location("job.yaml", 3, 7), "yes", plain=True)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("? [a, b]\n: 1\n", "SKY-SPEC-104"),
        ("a: !!binary aGk=\n", "SKY-SPEC-104"),
        ("a: !python/object:os.system x\n", "SKY-SPEC-104"),
        ("<<: [1, 2]\n", "SKY-SPEC-104"),
        ("a: &a [*a]\n", "SKY-SPEC-101"),
        ("&a b: {<<: *a}\n", "SKY-SPEC-104"),
        ("b: &a {<<: *a, c: 1}\n", "SKY-SPEC-101"),
        ("a: {b: 1, b: 2}\n", "SKY-SPEC-110"),
    ],
)
def test_what_yaml_admits_and_we_do_not(text: str, code: str) -> None:
    assert code in [p.code for p in documents(text, "job.yaml")[1]]


def test_aliases_of_aliases_cost_nothing() -> None:
    text = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 60))
    (node,), problems = documents(text, "job.yaml")
    assert isinstance(node, Mapping)
    assert (len(node.entries), problems) == (60, ())


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("500GB", 500 * 10**9),
        ("500GiB+", 500 * 2**30),
        ("1.5 TiB", 3 * 2**39),
        ("96gb", 96 * 10**9),
        ("999999999999999999B", 10**18 - 1),
        ("2KiB", 2048),
    ],
)
def test_sizes(text: str, value: int) -> None:
    assert size_bytes(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "GB",
        "500",
        "-1GB",
        "0GB",
        "0.1B",
        "nanGB",
        "infGB",
        "1e3GB",
        "1GBs",
        "1,5GB",
        "2EB",
        "9999PB",
        "\u0661GB",
        "1G",
    ],
)
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(Malformed):
        size_bytes(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("30m", 0.5), ("48h", 48.0), ("1d12h", 36.0), ("1w", 168.0), ("1d 12h", 36.0), ("90s", 0.025), ("1.5h", 1.5)],
)
def test_durations(text: str, value: float) -> None:
    assert hours(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "h", "48", "-1h", "0h", "1y", "1H", "infh", "11y", "9999999d", "1d12", "12h1"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(Malformed):
        hours(text)


@pytest.mark.parametrize(
    ("a", "b", "common"),
    [
        ("us-*", "us-east-*", ("us-east-*",)),
        ("us-*", "*-1", ("us-*-1", "us-1")),
        ("*", "a?c", ("a?c",)),
        ("a?c", "?bc", ("abc",)),
        ("a*", "b*", ()),
        ("p5", "p5", ("p5",)),
        ("p5", "p4", ()),
        ("", "*", ("",)),
        ("ab*", "*ba", ("ab*ba", "aba")),
    ],
)
def test_what_two_patterns_have_in_common(a: str, b: str, common: tuple[str, ...]) -> None:
    assert set(both(a, b)) == set(common)
    assert set(both(b, a)) == set(common)


def test_patterns_that_cover_others() -> None:
    assert covers("*", "a*b")
    assert covers("a*", "a*b")
    assert not covers("a*b", "a*")
    assert not covers("a?", "a*")


def test_near_misses_ignore_case_and_may_be_none() -> None:
    assert near("US-EAST-1", ["us-east-1", "eu-west-1"])[0] == "us-east-1"
    assert did_you_mean("zzzz", ["us-east-1"]) == ""
    assert one_of("zzzz", ["a", "b", "c"]) == "write `a`, `b` or `c`"
    assert one_of("zzzz", []) == ""
