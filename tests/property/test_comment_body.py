"""R25: any body within limits is posted as it is and read back; what is cut keeps fences and folds whole (peers 9), and no tag is found in another's."""

from __future__ import annotations

import string

from hypothesis import assume, given
from hypothesis import strategies as st

from planner.app.comment import Request, draft_of
from planner.render.comment import (
    Hidden,
    blocks_of,
    hidden_line,
    read_hidden,
    shortened,
    without_hidden,
)
from tests.unit.forges.desk import NOW

TAGS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,30}", fullmatch=True).filter(lambda t: "--" not in t)
#: no letters of hexadecimal, no digits: nothing in it looks like an id or a secret
WORDS = st.text(alphabet="xyz wuv.é\u4e2d", max_size=60)
PLAIN = WORDS.map(lambda t: t.strip() or "x")
TABLE = st.lists(WORDS, min_size=1, max_size=30).map(
    lambda rows: "\n".join(["| a |", "|---|", *(f"| {r} |" for r in rows)])
)
FENCE = st.tuples(
    st.sampled_from(["```", "~~~~", "````diff"]),
    st.lists(st.sampled_from(["x", "", "<details>", "``", "~~~"]), max_size=9),
).map(
    lambda f: "\n".join(
        [f[0], *f[1], f[0][:3] if f[0].startswith("```") and not f[0].startswith("````") else f[0].rstrip("dif")]
    )
)
INNER = st.one_of(PLAIN, TABLE, FENCE)
FOLD = st.lists(INNER, min_size=1, max_size=4).map(
    lambda b: "<details><summary>s</summary>\n\n" + "\n\n".join(b) + "\n\n</details>"
)
NESTED = st.lists(st.one_of(INNER, FOLD), min_size=1, max_size=3).map(
    lambda b: "<details>\n\n" + "\n\n".join(b) + "\n\n</details>"
)
BODY = st.lists(st.one_of(PLAIN, TABLE, FENCE, FOLD, NESTED), min_size=1, max_size=12)


def open_at_the_end(text: str) -> tuple[str, int]:
    """By a reading of its own: the fence that is open at the end, and how many folds."""
    fence, folds = "", 0
    for line in text.split("\n"):
        mark = line[: len(line) - len(line.lstrip(line[:1]))] if line[:3] in {"```", "~~~"} else ""
        if mark and not fence:
            fence = mark
        elif mark and mark.startswith(fence) and line == mark:
            fence = ""
        elif not fence:
            folds += line.count("<details>") - line.count("</details>")
    return fence, folds


@given(BODY)
def test_blocks_are_the_whole_text(blocks: list[str]) -> None:
    assert blocks_of("\n\n".join(blocks)) == blocks_of("\n\n\n".join(blocks))
    assert "\n\n".join(blocks_of("\n\n".join(blocks))) == "\n\n".join(blocks)


@given(BODY, st.integers(min_value=200, max_value=3000), TAGS)
def test_what_is_cut_fits_and_leaves_neither_a_fence_nor_a_fold_open(blocks: list[str], longest: int, tag: str) -> None:
    line = hidden_line(Hidden(kind="diff", tag=tag, valid_at="2026-11-30T10:00:00Z"))
    whole = f"{line}\n" + "\n\n".join(blocks) + "\n"
    assume(open_at_the_end(whole) == ("", 0))
    cut = shortened(whole, longest)
    assert len(cut.encode()) <= longest
    assert open_at_the_end(cut) == ("", 0)
    assert read_hidden(cut) == read_hidden(whole)
    if len(whole.encode()) <= longest:
        assert cut == whole
    else:
        assert "Shortened" in cut
        assert shortened(cut, longest) == cut


@given(BODY, TAGS)
def test_a_body_within_limits_is_posted_as_it_is(blocks: list[str], tag: str) -> None:
    text = "\n\n".join(blocks)
    assume(text.strip() == text)
    draft = draft_of(Request(text=f"{text}\n".encode(), origin="f", tag=tag), NOW)
    assert without_hidden(draft.body) == text
    assert read_hidden(draft.body) == draft.hidden
    assert draft.hidden.tag == tag
    again = draft_of(Request(text=draft.body.encode(), origin="f"), NOW)
    assert again.body == draft.body


@given(TAGS, TAGS)
def test_a_tag_is_read_back_whole_and_never_as_another(one: str, other: str) -> None:
    line = hidden_line(Hidden(kind="audit", tag=one))
    found = read_hidden(f"{line}\nx")
    assert found is not None
    assert found.tag == one
    assert (found.key == ("audit", other)) == (one == other)


@given(st.text(alphabet=string.printable, max_size=80))
def test_no_text_makes_a_line_that_ends_early(tag: str) -> None:
    try:
        line = hidden_line(Hidden(kind="diff", tag=tag))
    except ValueError:
        return
    assert line.count("-->") == 1
    assert "\n" not in line
