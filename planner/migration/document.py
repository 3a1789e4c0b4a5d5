"""A migration diff <-> JSON: what is committed, reviewed and handed to `skyplan migrate`.

Decides the form and nothing else.  `digest` covers all the rest: whoever edits a diff breaks it, and it is refused (SKY-MOVE-423).
"""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from typing import Any

from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import digest
from planner.model.errors import InputError
from planner.model.grants import grant_from
from planner.model.migration import FORMAT_VERSION, Kept, MigrationDiff, MigrationReason, MigrationStep, Standing
from planner.model.plan import ScoreTerm, placement_document, placement_from

DIFF_SUFFIX = ".diff.json"
_PLAIN = ("job", "project", "code", "text", "runner_up", "plan_digest", "reviewed", "prepared")
_LISTS = ("resources_added", "resources_removed")
_GRANTS = ("grants_added", "grants_removed")
_STANDING_NUMBERS = ("usd_per_hour", "remaining_usd", "remaining_hours")


def number(value: Decimal | None) -> str | None:
    """Four places; None stays unknown."""
    return None if value is None else f"{value:.4f}"


def to_document(diff: MigrationDiff) -> dict[str, Any]:
    """JSON-ready, with `format_version` and `digest`."""
    out: dict[str, Any] = {name: getattr(diff, name) for name in _PLAIN}
    out |= {
        "format_version": FORMAT_VERSION,
        "reason": diff.reason.value,
        "standing": _standing_document(diff.standing),
        "to": [placement_document(p) for p in diff.to],
        "terms": terms_document(diff.terms),
        "numbers": numbers_document(diff.numbers),
        "stop_minutes": number(diff.stop_minutes),
        "steps": [_step_document(step) for step in diff.steps],
        "inputs": diff.inputs,
    }
    out |= {name: list(getattr(diff, name)) for name in _LISTS}
    out |= {name: [g.document() for g in getattr(diff, name)] for name in _GRANTS}
    out["digest"] = digest(out)
    return out


def from_document(document: Any, file: str) -> MigrationDiff:
    """Read a diff file's JSON.  Raises InputError (SKY-MOVE-423) where it is none, of another major version, or was edited."""
    if not isinstance(document, dict) or "format_version" not in document:
        raise _refused("this is not a migration diff", file)
    if "ranked" in document:
        raise _refused("this is a plan, not a migration diff: `skyplan replan --out FOLDER` writes those", file)
    body: dict[str, Any] = dict(document)  # pyright: ignore[reportUnknownArgumentType]
    major = FORMAT_VERSION.partition(".")[0]
    if str(body["format_version"]).partition(".")[0] != major:
        raise _refused(f"migration format {body['format_version']} is not {major}.x", file)
    stated = body.pop("digest", None)
    try:
        if stated != digest(body):
            raise _refused("the diff's digest does not match its content: it was edited or cut short", file)
        values: dict[str, Any] = {name: body[name] for name in _PLAIN}
        values |= {name: tuple(body[name]) for name in _LISTS}
        values |= {name: tuple(map(grant_from, body[name])) for name in _GRANTS}
        return MigrationDiff(
            **values,
            reason=MigrationReason(body["reason"]),
            standing=_standing_from(body["standing"]),
            to=tuple(placement_from(p) for p in body["to"]),
            terms=tuple(_term_from(t) for t in body["terms"]),
            numbers={name: Decimal(value) for name, value in body["numbers"].items()},
            stop_minutes=Decimal(body["stop_minutes"]),
            steps=tuple(_step_from(step) for step in body["steps"]),
            inputs=body["inputs"],
        )
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise _refused(f"the diff lacks or mistypes a field: {error}", file) from error


def kept_document(kept: Kept) -> dict[str, Any]:
    """A job that stays, JSON-ready."""
    return {
        "job": kept.job,
        "code": kept.code,
        "text": kept.text,
        "best": kept.best,
        "terms": terms_document(kept.terms),
        "numbers": numbers_document(kept.numbers),
    }


def terms_document(terms: tuple[ScoreTerm, ...]) -> list[dict[str, Any]]:
    """In order: what a reader adds up."""
    return [{"name": t.name, "usd": number(t.usd), "detail": t.detail} for t in terms]


def numbers_document(numbers: dict[str, Decimal]) -> dict[str, str | None]:
    """By name."""
    return {name: number(value) for name, value in numbers.items()}


def _refused(why: str, file: str) -> InputError:
    return InputError([Diagnostic(code="SKY-MOVE-423", summary=why, location=Location(file))])


def _standing_document(standing: Standing) -> dict[str, Any]:
    out: dict[str, Any] = {f.name: getattr(standing, f.name) for f in fields(standing)}
    return out | {name: number(out[name]) for name in _STANDING_NUMBERS}


def _standing_from(document: dict[str, Any]) -> Standing:
    values = dict(document)
    for name in _STANDING_NUMBERS:
        values[name] = None if values[name] is None else Decimal(values[name])
    return Standing(**values)


def _step_document(step: MigrationStep) -> dict[str, Any]:
    return {
        "key": step.key,
        "title": step.title,
        "after": list(step.after),
        "minutes": number(step.minutes),
        "stops": step.stops,
    }


def _step_from(document: dict[str, Any]) -> MigrationStep:
    values, minutes = dict(document), document["minutes"]
    values["after"] = tuple(values["after"])
    values["minutes"] = None if minutes is None else Decimal(minutes)
    return MigrationStep(**values)


def _term_from(document: dict[str, Any]) -> ScoreTerm:
    usd = document["usd"]
    return ScoreTerm(name=document["name"], usd=None if usd is None else Decimal(usd), detail=document["detail"])
