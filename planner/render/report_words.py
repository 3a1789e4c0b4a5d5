"""How a report writes figures and texts: one way for the page, its script's data and the picture.

Every text that a user or a cloud gave goes through `text` (masked, then escaped) or `plain` (masked); figures of a table are counted in ten-thousandths, so
that the script formats the same value as this does.
"""

from __future__ import annotations

from decimal import Decimal
from html import escape
from typing import TYPE_CHECKING, Final

from planner.model.codes import CODES
from planner.render.diff_words import mask

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from planner.model.plan import Placement
    from planner.model.report import JobReport, Row

TICKS: Final = 10_000
"""Per dollar and per hour: the four places that plans have."""
GROUP_WORDS: Final = {
    "compute": "the nodes at work",
    "lost": "start-up and interruptions",
    "egress": "traffic that clouds charge for",
    "other": "disks, NAT and a tunnel's addresses",
}
NONE: Final = "-"
"""Where there is nothing to say."""
CAPACITY_WORDS: Final = {"on_demand": "on-demand"}


def plain(told: str) -> str:
    """One printable line without secrets and account ids, not yet escaped."""
    return mask(told)


def text(told: str) -> str:
    """The same, escaped for HTML and SVG, attributes too."""
    return escape(mask(told))


def ticks(value: Decimal | None) -> int | None:
    """Ten-thousandths; None stays unknown."""
    return None if value is None else int(value * TICKS)


def meaning(code: str) -> str:
    """What a code says; "" of one that a plan file has from elsewhere."""
    return CODES[code].meaning if code in CODES else ""


def hint(code: str) -> str:
    """What may be done."""
    return CODES[code].hint if code in CODES else ""


def capacity(told: str) -> str:
    """`on-demand`, `spot`; of a split each once."""
    return " + ".join(CAPACITY_WORDS.get(one, one) for one in told.split(" + "))


def hardware(p: Placement) -> str:
    """`8 x A100-80GB`."""
    return " + ".join(f"{piece.nodes * piece.gpu_count} x {piece.gpu}" for piece in p.pieces)


def gpus(row: Row) -> str:
    """The same of a row."""
    return f"{row.gpus} x {row.gpu}"


def word_of(job: JobReport) -> str:
    """Whether applying the plan changes something; "" where nobody asked."""
    if job.before == "" or not job.plan.ranked:
        return ""
    if job.before is None:
        return "create"
    return "keep" if job.before == job.plan.choice.placement_id else "change"


def ids(names: Iterable[str]) -> list[str]:
    """An id of a page for each job, its number: names are for people."""
    return [f"j{k}" for k, _ in enumerate(names)]


def counted(number: int, one: str, many: str = "") -> str:
    """`1 offer`, `1,013 offers`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def tag(name: str, *inner: str, **attributes: str | float | None) -> str:
    """An element around inner markup; attributes escaped, those that are None left out, `_` at a name's end dropped and inside a hyphen."""
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{told}>{''.join(inner)}</{name}>"


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[str],
    *,
    kinds: str = "",
    css: str = "",
    name: str = "",
) -> str:
    """A table that scrolls by itself where it is too wide.  `head` is markup, `rows` are whole `<tr>`s; `kinds`: a letter per column, `n` number, `t` text."""
    cells = "".join(
        tag("th", one, scope="col", class_="n" if kind == "n" else None)
        for one, kind in zip(head, kinds.ljust(len(head), "t"), strict=True)
    )
    inner = tag(
        "table",
        f"<caption>{caption}</caption><thead><tr>{cells}</tr></thead>\n<tbody>\n",
        "\n".join(rows),
        "\n</tbody>",
        class_=css or None,
        id=name or None,
    )
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def cell(markup: str, *, value: float | str | None = None, kind: str = "t", sorts: bool = True) -> str:
    """A cell; `value` is what a script sorts by, where that is not the text: "" is unknown."""
    attributes = {"class_": "n" if kind == "n" else None}
    return tag(
        "td", markup, **attributes, data_v=("" if value is None else str(value)) if sorts and kind == "n" else None
    )


def key_of(shape: str) -> str:
    """A shape in a box of 12 by 12, beside what it stands for."""
    return f'<svg class="key" viewBox="0 0 12 12" aria-hidden="true">{shape}</svg>'
