"""What `terraform show -json` says of a plan, without a single value: values may be secret, and Terraform prints them in clear.

Judges by what an action list holds, not by which lists are known today: whatever has `delete` in it destroys.  Format of Terraform's plan JSON, 1.x
(documented; 1.2 is what Terraform 1.5 to 1.14 print).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.app.inputs import read_text, shown
from planner.model.change import ResourceChange, TerraformChanges
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

_HINT = "give what `terraform show -json tfplan` prints, after `terraform plan -out=tfplan`"
_PATHS = 6
_OUTPUT_ACTIONS = ("create", "update", "delete")


def read_terraform_plan(path: Path) -> TerraformChanges:
    """Raises InputError (SKY-SPEC-101) with file and line."""
    name = shown(path)
    try:
        document: Any = json.loads(read_text(path).removeprefix("\ufeff"))
    except json.JSONDecodeError as error:
        raise _refused(f"not JSON: {error.msg}", Location(name, error.lineno, error.colno)) from error
    except RecursionError as error:
        raise _refused("nested too deeply", Location(name)) from error
    if not isinstance(document, dict) or "format_version" not in document or "planned_values" not in document:
        raise _refused("is no plan of Terraform", Location(name))
    found: dict[str, Any] = document  # pyright: ignore[reportUnknownVariableType]
    if str(found["format_version"]).partition(".")[0] != "1":
        raise _refused(f"plan format {found['format_version']} is not 1.x", Location(name))
    try:
        return TerraformChanges(
            file=name,
            resources=tuple(sorted(_resources(found.get("resource_changes") or ()))),
            outputs=tuple(sorted(_outputs(found.get("output_changes") or {}))),
            drifted=tuple(sorted({str(r["address"]) for r in found.get("resource_drift") or ()})),
            errored=bool(found.get("errored", False)),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise _refused(f"the plan lacks or mistypes a field: {error}", Location(name)) from error


def _resources(changes: Any) -> Iterator[ResourceChange]:
    for one in changes:
        change = one["change"]
        address, previous = str(one["address"]), str(one.get("previous_address") or "")
        action = _action(list(change["actions"]), moved=bool(previous), imported=bool(change.get("importing")))
        if not action:
            continue
        yield ResourceChange(
            address=address,
            action=action,
            because=str(one.get("action_reason") or ""),
            previous=previous,
            paths=tuple(_paths(action, change)),
        )


def _action(actions: list[str], *, moved: bool, imported: bool) -> str:
    if "delete" in actions:
        return "replace" if "create" in actions else "delete"
    if "forget" in actions:
        return "forget"
    for word in ("create", "update"):
        if word in actions:
            return word
    return "import" if imported else "move" if moved else ""


def _paths(action: str, change: dict[str, Any]) -> Iterator[str]:
    """Names, never values."""
    if action == "replace":
        for path in (change.get("replace_paths") or ())[:_PATHS]:
            yield ".".join(map(str, path))
    elif action == "update":
        before: dict[str, Any] = change.get("before") or {}
        after: dict[str, Any] = change.get("after") or {}
        unknown: dict[str, Any] = change.get("after_unknown") or {}
        names = [n for n in sorted({*before, *after}) if before.get(n) != after.get(n) or unknown.get(n)]
        yield from names[:_PATHS]
        if len(names) > _PATHS:
            yield f"and {len(names) - _PATHS} more"


def _outputs(changes: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name, change in changes.items():
        actions = list(change["actions"])
        if actions not in (["no-op"], ["read"]):
            # a word of Terraform's or none: what else stands there is nobody's to show
            yield str(name), next((word for word in _OUTPUT_ACTIONS if actions == [word]), "replace")


def _refused(why: str, at: Location) -> InputError:
    return InputError([Diagnostic(code="SKY-SPEC-101", summary=why, location=at, hint=_HINT)])
