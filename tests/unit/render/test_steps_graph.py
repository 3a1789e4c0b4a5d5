"""A move's steps, drawn."""

from __future__ import annotations

from decimal import Decimal
from xml.etree import ElementTree as ET

import pytest

from planner.migration.steps import steps_of
from planner.model.migration import MigrationReason, MigrationStep
from planner.render.steps_graph import dot, mermaid, svg

STEPS = steps_of(MigrationReason.SAVING, old="train-g1", new="us-west-2", minutes={"release": Decimal("1.5")})


def test_dot_has_an_edge_for_all_that_waits() -> None:
    text = dot(STEPS)
    assert text.startswith("digraph")
    for step in STEPS:
        for before in step.after:
            assert f'"{before}" -> "{step.key}";' in text
    assert '1.5 min, the job stops", style=bold' in text


def test_mermaid_has_the_same_edges_and_marks_where_the_job_stops() -> None:
    text = mermaid(STEPS)
    assert "save --> release" in text
    assert text.count(":::stops") == 2


@pytest.mark.parametrize("reason", MigrationReason)
def test_svg_is_whole_and_within_its_own_size(reason: MigrationReason) -> None:
    root = ET.fromstring(svg(steps_of(reason, old="a", new="b"), title='<"a" & b>'))
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    boxes = [r.attrib for r in root.iter("{http://www.w3.org/2000/svg}rect")][1:]
    assert len(boxes) == len(steps_of(reason, old="a", new="b"))
    for box in boxes:
        assert float(box["x"]) + float(box["width"]) < width
        assert float(box["y"]) + float(box["height"]) < height
    assert len({(box["x"], box["y"]) for box in boxes}) == len(boxes)


def test_what_a_title_says_breaks_no_form() -> None:
    odd = (MigrationStep(key="a", title='say "\\no\\"\nmore <b>'),)
    assert '\\"\\\\no' in dot(odd)
    assert '"say' not in mermaid(odd).replace('["say', "")
    ET.fromstring(svg(odd, title="t"))
