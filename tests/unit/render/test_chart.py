"""Charts: well-formed, themed, no more lines than can be read, and steps that hold until they change."""

from __future__ import annotations

import struct
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.render.chart_svg import MOST_LINES, MOST_POINTS, THEMES, Theme, chart, steps
from planner.render.chart_text import SIGNS, chart_lines
from planner.render.plot_svg import Series
from planner.render.png import png
from planner.render.text import Paint

SVG = "{http://www.w3.org/2000/svg}"
T0 = 1_790_000_000.0


def lines(count: int, name: str = "aws/us-east-1/use1-az{}/p5.48xlarge/spot") -> list[Series]:
    return [
        Series(
            name=name.format(k),
            points=steps([T0 + 3600 * j for j in range(9)], [20.0 + k + j % 3 for j in range(9)], T0 + 40_000),
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("count", [0, 1, 6, 9])
def test_a_chart_stands_by_itself(theme: Theme, count: int) -> None:
    text = chart(lines(count), title="H100:8 <&>", unit="USD/h", theme=theme)
    root = ET.fromstring(text)
    assert len(root.findall(f"{SVG}polyline")) == min(count, MOST_LINES)
    style = root.findtext(f"{SVG}style") or ""
    assert ("prefers-color-scheme" in style) == (theme == "auto")
    assert ("#0d1117" in style) == (theme != "light")
    assert "script" not in text
    assert "href" not in text
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    assert (float(root.attrib["width"]), float(root.attrib["height"])) == (width, height)
    named = [t.text for t in root.findall(f"{SVG}text") if (t.text or "").startswith("aws/")]
    assert len(named) == min(count, MOST_LINES)
    assert all(float(t.attrib["y"]) < height for t in root.findall(f"{SVG}text"))


def test_the_same_chart_is_the_same_bytes() -> None:
    assert chart(lines(3), title="t", unit="u") == chart(lines(3), title="t", unit="u")


@given(st.lists(st.floats(0.01, 1000), min_size=1, max_size=6000))
def test_steps_hold_until_they_change(values: list[float]) -> None:
    at = [T0 + k for k in range(len(values))]
    found = steps(at, values, T0 + len(values))
    assert len(found) <= MOST_POINTS + 4
    assert found[0] == (T0, values[0])
    assert found[-1] == (T0 + len(values), values[-1])
    assert [x for x, _ in found] == sorted(x for x, _ in found)
    assert {max(values), min(values)} <= {y for _, y in found}
    if len(values) < MOST_POINTS // 2:
        assert len(found) == 2 * len(values)


def test_a_png_is_one_twice_as_wide() -> None:
    pytest.importorskip("resvg_py")
    data = png(chart(lines(2), title="t", unit="u", theme="dark"))
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24])[0] == 1440


def test_a_terminal_tells_lines_by_their_signs() -> None:
    pytest.importorskip("plotext")
    found = chart_lines(lines(3), title="H100:8", unit="USD/h", width=90, height=30, paint=Paint(on=False))
    assert found[0] == "H100:8 (USD/h)"
    assert [line.split()[0] for line in found[-3:]] == list(SIGNS[:3])
    body = found[1:-3]
    assert all(len(line) <= 90 for line in body)
    assert all(any(sign in line for line in body) for sign in SIGNS[:3])
    assert all(line.isprintable() for line in found)
    again = chart_lines(lines(3), title="H100:8", unit="USD/h", width=90, height=30, paint=Paint(on=False))
    assert again == found
    coloured = chart_lines(lines(1), title="t", unit="u", width=90, height=30, paint=Paint(on=True))
    assert any("\033[36m*" in line for line in coloured)
    assert chart_lines([], title="t", unit="u", width=90, height=30, paint=Paint(on=False)) == [
        "t: nothing was observed."
    ]
