"""Patterns against a matcher that knows no regular expressions, and patterns that were made to take long."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.iam.evaluate.patterns import Form, actions, matches


def like(pattern, text):
    """`*` and `?` over anything, by the book."""

    @cache
    def at(i, j):
        if i == len(pattern):
            return j == len(text)
        if pattern[i] == "*":
            return at(i + 1, j) or (j < len(text) and at(i, j + 1))
        return j < len(text) and pattern[i] in {"?", text[j]} and at(i + 1, j + 1)

    return at(0, 0)


def nothing(key):
    return None


@given(st.text("ab:*?", max_size=10), st.text("ab:", max_size=12))
def test_text_and_actions(pattern, text):
    assert matches(pattern, text, Form.TEXT, nothing) is like(pattern, text)
    assert (actions((pattern, "never")).fullmatch(text) is not None) is like(pattern, text)


@given(st.text("ab:*?", max_size=8), st.text("ab:", max_size=10))
def test_the_last_part_of_an_arn_is_text(pattern, text):
    head = "arn:aws:s3:::"
    for form in (Form.ARN, Form.RESOURCE):
        assert matches(head + pattern, head + text, form, nothing) is like(pattern, text)


@given(
    st.lists(st.text("ab*?", max_size=5), min_size=6, max_size=6),
    st.lists(st.text("ab", max_size=5), min_size=6, max_size=6),
)
def test_parts_match_one_by_one(patterns, parts):
    """For ARNs; of a resource that is enough, but not needed, because a `*` at the end of a part may reach on."""
    each = all(like(pattern, part) for pattern, part in zip(patterns, parts, strict=True))
    pattern, text = ":".join(patterns), ":".join(parts)
    assert matches(pattern, text, Form.ARN, nothing) is each
    assert matches(pattern, text, Form.RESOURCE, nothing) or not each
    assert like(pattern, text) or not matches(pattern, text, Form.RESOURCE, nothing)


@pytest.mark.parametrize("form", list(Form))
def test_many_stars_end(form):
    """Without care this takes longer than anybody waits."""
    head = "arn:aws:s3:::"
    assert not matches(head + "*a" * 30 + "*b", head + "a" * 2000, form, nothing)
    assert actions(("s3:" + "*a" * 30 + "*b",)).fullmatch("s3:" + "a" * 2000) is None
