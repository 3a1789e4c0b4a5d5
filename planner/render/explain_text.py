"""Verdicts for people and machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from planner.render.text import duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.plan import PlacementPlan
    from planner.render.text import Paint


class _Rejection(Protocol):
    @property
    def code(self) -> str: ...
    @property
    def text(self) -> str: ...


class _Verdict(Protocol):
    @property
    def offer_id(self) -> str: ...
    @property
    def rejections(self) -> Sequence[_Rejection]: ...
    @property
    def position(self) -> int | None: ...
    @property
    def total_usd(self) -> float | None: ...
    @property
    def finish_hours(self) -> float | None: ...


class Answer(Protocol):
    """What `planner.app.explain` answers."""

    @property
    def plan(self) -> PlacementPlan: ...
    @property
    def pattern(self) -> str | None: ...
    @property
    def matched(self) -> int: ...
    @property
    def verdicts(self) -> Sequence[_Verdict]: ...
    @property
    def waits(self) -> str: ...
    @property
    def waited(self) -> str: ...


def lines(answer: Answer, paint: Paint) -> list[str]:
    """One block per offer: its rank, or every reason."""
    asked = f" for `{answer.pattern}`" if answer.pattern else ""
    out = [f"{paint(answer.plan.name, 'bold')}: {len(answer.verdicts)} of {answer.matched} offers{asked}", ""]
    if answer.waits:
        out += [f"  waits: {answer.waits}", *(f"  {note}" for note in answer.plan.notes[1:]), ""]
    elif answer.waited:
        out += [f"  planned alone it has a place; by its plan file it waits: {answer.waited}", ""]
    best = answer.plan.ranked[0].total_usd if answer.plan.ranked else None
    for v in answer.verdicts:
        if v.position is not None and v.total_usd is not None and v.finish_hours is not None:
            gap = f" (+${v.total_usd - float(best):,.2f})" if best is not None and v.position else ""
            head = f"#{v.position + 1}"
            out.append(
                f"  {paint(head, 'green')} {v.offer_id}  ${v.total_usd:,.2f}{gap}, done in {duration(v.finish_hours)}"
            )
            if v.position < len(answer.plan.ranked):
                terms = answer.plan.ranked[v.position].terms
                out += [
                    f"       {t.name}: {'unknown' if t.usd is None else f'${t.usd:,.2f}'}, {t.detail}"
                    for t in terms
                    if t.usd is None or t.usd
                ]
        else:
            would = f"  (would cost ${v.total_usd:,.2f})" if v.total_usd is not None else ""
            out.append(f"  {paint('x', 'red')} {v.offer_id}{would}")
            out += [f"       {r.text} [{r.code}]" for r in v.rejections]
    if not (answer.pattern or answer.waits):
        out += ["", *(f"  {note}" for note in answer.plan.notes)]
    return [*out, ""]


def document(answer: Answer) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "job": answer.plan.name,
        "matched": answer.matched,
        "offers": [
            {
                "offer_id": v.offer_id,
                "rank": v.position,
                "total_usd": None if v.total_usd is None else f"{v.total_usd:.4f}",
                "finish_hours": None if v.finish_hours is None else f"{v.finish_hours:.4f}",
                "rejections": [{"code": r.code, "text": r.text} for r in v.rejections],
            }
            for v in answer.verdicts
        ],
        "notes": list(answer.plan.notes),
        "waits": answer.waits or None,
        "waited": answer.waited or None,
    }
