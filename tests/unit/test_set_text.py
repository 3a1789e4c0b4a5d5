"""The text that ids and digests of stacks are made of: part by part it is the same as at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.digest import canonical, set_only
from planner.model.offer import Cloud
from planner.model.set_text import SetText


@dataclass(frozen=True)
class Part:
    zeta: Any = None
    alpha: Any = ""


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(Cloud),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.builds(Part, inner, inner),
    ),
    max_leaves=12,
)


@given(VALUES)
def test_part_by_part_and_at_once_give_the_same_bytes(value: Any) -> None:
    assert SetText().text(value).encode() == _at_once(value)


def _at_once(value: Any) -> bytes:
    return canonical(set_only(value))


@given(VALUES, VALUES)
def test_a_part_that_is_known_already_changes_nothing(shared: Any, other: Any) -> None:
    texts = SetText()
    texts.text(Part(zeta=shared))
    whole = Part(zeta=[shared, other], alpha=shared)
    assert texts.text(whole).encode() == _at_once(whole)


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_what_is_no_json_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="not JSON"):
        SetText().text([wrong])
    with pytest.raises(TypeError, match="object is not JSON"):
        SetText().text([object()])
