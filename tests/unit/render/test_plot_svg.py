"""Plots: round ticks that enclose what is drawn, times that people count in, text that cannot become markup."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.render.plot_svg import HEIGHT, LEFT, RIGHT, WIDTH, Series, number, plot, ticks, time_ticks

T0 = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()
SVG = "{http://www.w3.org/2000/svg}"
finite = st.floats(min_value=-1e12, max_value=1e12)


def line(*values: float, name: str = "g1", start: float = T0, every: float = 60.0) -> Series:
    return Series(name=name, points=tuple((start + k * every, v) for k, v in enumerate(values)))


def points(svg: str) -> list[tuple[float, float]]:
    found = re.search(r'<polyline[^>]*points="([^"]*)"', svg)
    assert found
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in found[1].split())]


@given(finite, st.floats(min_value=1e-6, max_value=1e12), st.integers(3, 12))
def test_ticks_are_round_enclose_and_are_few(low: float, width: float, most: int) -> None:
    width = max(width, 1e-6 * abs(low))  # what is nearer is drawn apart before
    found = ticks(low, low + width, most)
    slack = 1e-6 * max(abs(low), width)
    assert found[0] <= low + slack
    assert found[-1] >= low + width - slack
    assert 2 <= len(found) <= most + 2


@given(st.integers(0, 4 * 10**9), st.integers(1, 10**8))
def test_times_are_within_and_few(low: float, width: float) -> None:
    found, span = time_ticks(low, low + width, 6)
    assert 1 <= len(found) <= 8
    assert span >= 1
    assert all(low <= at <= low + width for at in found)


@given(st.lists(st.tuples(st.floats(min_value=0, max_value=4e9), st.floats()), max_size=40))
def test_whatever_is_told_gives_whole_markup_within_the_frame(told: list[tuple[float, float]]) -> None:
    svg = plot([Series(name="g1", points=tuple(sorted(told)))], title="Loss", unit="x")
    root = ET.fromstring(svg)
    for one in root.iter(f"{SVG}polyline"):
        for pair in one.attrib["points"].split():
            x, y = map(float, pair.split(","))
            assert LEFT - 0.1 <= x <= WIDTH - RIGHT + 0.1
            assert 0 <= y <= HEIGHT
    assert "nan" not in svg.lower().replace("nanosecond", "")


def test_a_higher_value_is_higher_and_a_later_one_further_right() -> None:
    (x1, y1), (x2, y2), (x3, y3) = points(plot([line(1, 3, 2)], title="Step", unit="steps"))
    assert x1 < x2 < x3
    assert y2 < y3 < y1


def test_from_zero_begins_at_zero_and_else_near_the_values() -> None:
    assert ">0</text>" in plot([line(100, 104)], title="Rate", unit="steps/s", from_zero=True)
    assert ">0</text>" not in plot([line(100, 104)], title="Rate", unit="steps/s")


def test_what_is_no_number_is_left_out_and_nothing_at_all_is_said() -> None:
    assert len(points(plot([line(1, math.nan, math.inf, 2)], title="Loss", unit="x"))) == 2
    assert plot([line(math.nan)], title="Loss", unit="x") == '<p class="empty">Loss: nothing was told yet.</p>'
    assert "<circle" in plot([line(5)], title="Loss", unit="x")


def test_names_and_units_are_text() -> None:
    evil = "</title><script>alert(1)</script>"
    root = ET.fromstring(plot([line(1, 2, name=evil), line(2, 3, name="b")], title=evil, unit=evil))
    assert not list(root.iter(f"{SVG}script"))
    assert any(evil in (text.text or "") for text in root.iter(f"{SVG}text"))
    assert "<script>" not in plot([], title=evil, unit=evil)


def test_a_legend_only_where_there_is_more_than_one_line() -> None:
    one = plot([line(1, 2)], title="Step", unit="steps")
    many = plot([line(1, 2, name=f"g{k}") for k in range(12)], title="Step", unit="steps")
    assert ">g1</text>" not in one
    assert re.findall(r">(g\d+)</text>", many) == ["g11", "g10", "g9", "g8", "g7", "g6"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (1200, "1,200"),
        (0.31, "0.31"),
        (2e-5, "2e-05"),
        (2_500_000, "2.5e+06"),
        (12.34567, "12.35"),
        (-0.5, "-0.5"),
    ],
)
def test_numbers_are_short_and_never_nothing(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("every", "label"),
    [(1.0, "12:00:10"), (60.0, "12:20"), (3600.0, "12-01 "), (86_400.0, "2026-12-")],
)
def test_times_show_what_differs(every: float, label: str) -> None:
    assert label in plot([line(*range(61), every=every)], title="Step", unit="steps")
