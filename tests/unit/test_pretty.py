"""The bytes of plan files: those of the standard library's encoder, and the digest that their text states."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.model.digest import digest, digest_of_pretty, pretty

LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=15,
)


@given(VALUES)
def test_a_file_has_the_bytes_that_the_standard_encoder_writes(value: Any) -> None:
    whole = json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    assert pretty(value) == whole.encode()


@given(VALUES, VALUES)
def test_the_digest_is_read_off_a_plan_files_text_or_not_at_all(first: Any, last: Any) -> None:
    body = {"access": first, "status": last}  # as in plans, something stands on both sides of it
    text = pretty({**body, "digest": digest(body)}).decode()
    assert digest_of_pretty(text) == ("" if '\\": ' in text else digest(body))
    assert digest_of_pretty(text.replace("access", "acces")) != digest(body)
