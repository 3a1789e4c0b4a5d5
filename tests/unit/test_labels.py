"""Labels: legal, faithful where they can be, and never two texts as one."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.model.labels import label_key, label_value, labels_of, own_key, tags_of

LEGAL = st.from_regex(r"[a-z0-9_-]{0,63}", fullmatch=True)


@given(st.text(max_size=200))
def test_any_text_becomes_a_legal_label(text):
    assert re.fullmatch(r"[a-z0-9_-]{0,63}", label_value(text))
    assert re.fullmatch(r"[a-z][a-z0-9_-]{0,62}", label_key(text))


@given(LEGAL)
def test_legal_text_stays_as_it_is(text):
    assert label_value(text) == text
    if text[:1].isalpha():
        assert label_key(text) == text


@given(st.text(max_size=100), st.text(max_size=100))
def test_two_texts_are_two_labels(one, other):
    assert (label_value(one) == label_value(other)) == (one == other)
    assert (label_key(one) == label_key(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"), [("A", "a"), ("a.b", "a-b"), ("x" * 64, "x" * 65), ("é", "è"), ("1a", "x1a")]
)
def test_what_looks_alike_is_told_apart(one, other):
    assert label_value(one) != label_value(other)
    assert label_key(one) != label_key(other)


def test_the_beginning_can_still_be_read():
    assert label_value("Team LLM").startswith("team-llm-")
    assert label_value("j" * 80).startswith("j" * 54 + "-")
    assert len(label_value("j" * 80)) == 63


def test_skyplans_own_tags_come_back_and_users_do_not():
    tags = {"skyplan:job": "train", "skyplan:rank": "r00", "Cost Centre": "42"}
    labels = labels_of(tags.items())
    assert labels["skyplan-job"] == "train"
    assert own_key("job") == "skyplan-job"
    assert tags_of(labels) == {"skyplan:job": "train", "skyplan:rank": "r00"}
    assert len(labels) == 3


def test_a_users_tag_cannot_take_the_place_of_one_of_ours():
    assert labels_of([("skyplan:job", "train"), ("skyplan-job", "mine")]) == {"skyplan-job": "train"}
