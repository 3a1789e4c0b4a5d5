"""What `skyplan replan --json` prints, and the JSON Schema of a migration diff.  Fields are only ever added within a major version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from planner.migration.document import kept_document, to_document
from planner.model.migration import FORMAT_VERSION, REASON_CODES, MigrationReason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.model.migration import Kept, MigrationDiff

_TEXT: Final[dict[str, Any]] = {"type": "string"}
_TEXTS: Final[dict[str, Any]] = {"type": "array", "items": _TEXT}
_USD: Final[dict[str, Any]] = {"type": ["string", "null"], "pattern": r"^-?[0-9]+\.[0-9]{4}$"}
_STEP: Final[dict[str, Any]] = {"type": ["integer", "null"], "minimum": 0}


def document(diffs: Sequence[MigrationDiff], kept: Sequence[Kept], *, as_of: str) -> dict[str, Any]:
    """JSON-ready."""
    return {
        "format_version": FORMAT_VERSION,
        "as_of": as_of,
        "migrations": [to_document(d) for d in diffs],
        "kept": [kept_document(k) for k in kept],
    }


def schema() -> dict[str, Any]:
    """Of one diff file, draft 2020-12."""
    grant = _object(
        ("identity", "permission", "resource", "reason"),
        identity=_TEXT,
        permission=_TEXT,
        resource=_TEXT,
        reason=_TEXT,
        conditions={"type": "object"},
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "skyplan migration diff",
        "description": "One job's move. `digest` covers all the rest: a diff that was edited is refused (SKY-MOVE-423). USD are text with four places.",
        **_object(
            (),
            format_version={"type": "string", "pattern": r"^1\."},
            job=_TEXT,
            project=_TEXT,
            reason={"enum": [r.value for r in MigrationReason]},
            code={"enum": sorted(REASON_CODES.values())},
            text=_TEXT,
            standing=_standing(),
            to={
                "type": "array",
                "minItems": 1,
                "maxItems": 10,
                "items": {"type": "object", "required": ["offer_id", "placement_id", "usd_per_hour"]},
                "description": "Placements of the plan, first choice first, as a plan file has them.",
            },
            terms=_list(_object(("name", "usd", "detail"), name=_TEXT, usd=_USD, detail=_TEXT)),
            numbers={"type": "object", "additionalProperties": _USD},
            runner_up=_TEXT,
            stop_minutes=_USD,
            steps=_list(
                _object(
                    ("key", "title", "after", "minutes", "stops"),
                    key=_TEXT,
                    title=_TEXT,
                    after=_TEXTS,
                    minutes=_USD,
                    stops={"type": "boolean"},
                )
            ),
            plan_digest=_digest(),
            reviewed={"type": "boolean", "description": "Every place of `to` is in the plan that was reviewed."},
            prepared={"type": "boolean", "description": "Their network and access stacks stand."},
            resources_added=_TEXTS,
            resources_removed=_TEXTS,
            grants_added=_list(grant),
            grants_removed=_list(grant),
            inputs={"type": "object"},
            digest=_digest(),
        ),
    }


def _standing() -> dict[str, Any]:
    words = dict.fromkeys(("offer_id", "pool", "placement_id", "region", "topology", "status", "checkpoint_uri"), _TEXT)
    amounts = dict.fromkeys(("usd_per_hour", "remaining_usd", "remaining_hours"), _USD)
    return _object(
        (), generation={"type": "integer", "minimum": 1}, step=_STEP, checkpoint_step=_STEP, **words, **amounts
    )


def _object(required: Sequence[str], **properties: Any) -> dict[str, Any]:
    """All properties are required where none are named."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(required or properties),
        "properties": properties,
    }


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _digest() -> dict[str, Any]:
    return {"type": "string", "pattern": "^sha256:"}
