"""What a change grants beyond its base: widenings, findings that are new, and a table of rights added, removed, widened and otherwise changed.

Which right takes in which other is `planner.iam.audit.widening`'s; here two audits are held against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from planner.app.audit_rights import label, rights_of
from planner.model.audit_report import Change, Right

if TYPE_CHECKING:
    from planner.model.finding import Finding
    from planner.model.policy import Audited

_SHOWN = 3
"""Resources named in a row; the rest is counted."""
_Rows = dict[tuple[str, str, str, str], Right]


def new_only(findings: Sequence[Finding], before: Sequence[Finding]) -> tuple[tuple[Finding, ...], int]:
    """Findings that the base does not have, and how many it has too."""
    known = {_plain(f).fingerprint for f in before}
    fresh = tuple(f for f in findings if _plain(f).fingerprint not in known)
    return fresh, len(findings) - len(fresh)


def _plain(finding: Finding) -> Finding:
    """Without the file in which it stands: the base may be another folder."""
    first, _, rest = finding.origin.partition(" ")
    return replace(finding, origin=rest) if rest and first.endswith(".json") else finding


def changes(base: Audited, new: Audited, widened: Sequence[Finding]) -> tuple[Change, ...]:
    """Rights that the two do not have alike, sorted by identity."""
    old, now = _rows(base), _rows(new)
    wide = {(f.cloud, f.identity, word) for f in widened for word in (_short(f.grant), f.action) if word}
    out: set[Change] = set()
    for key in old.keys() | now.keys():
        before, after = old.get(key), now.get(key)
        if before == after:
            continue
        if before and after:
            cloud, identity, grant, action = key
            names = {(cloud, identity, grant), (cloud, identity, action)}
            kind = "widened" if names & wide else "changed"
        else:
            kind = "added" if after else "removed"
        shown = after or before
        assert shown  # noqa: S101 - the key is of one of them
        out.add(Change(cloud=key[0], identity=key[1], kind=kind, right=_said(shown)))
    return tuple(sorted(out))


def _rows(audited: Audited) -> _Rows:
    """Rights by identity, statement and action; of identities with one name in several places, all resources and bounds together."""
    out: _Rows = {}
    for subject in audited.subjects:
        for right in rights_of(subject):
            key = (right.cloud, label(subject), right.grant, right.action)
            known = out.get(key)
            resources = {*right.resources, *(known.resources if known else ())}
            bounds = {*right.bounds, *(known.bounds if known else ())}
            out[key] = Right(
                cloud=right.cloud,
                subject=label(subject),
                grant=right.grant,
                action=right.action,
                resources=tuple(sorted(resources)),
                bounds=tuple(sorted(bounds)),
            )
    return out


def _short(grant: str) -> str:
    """`POLICY/Sid`: of a managed policy without the ARN before its name."""
    return "/".join(grant.rsplit("/", 2)[-2:]) if grant.startswith("arn:") else grant


def _said(right: Right) -> str:
    more = len(right.resources) - _SHOWN
    on = ", ".join(right.resources[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    bounds = f" if {' and '.join(right.bounds)}" if right.bounds else ""
    return f"{right.action}{f' on {on}' if on else ''}{bounds}"
