"""What the records prove, and the page of it, docs/iam-proof.md: each granted action with where it was seen and who judged it, each attempt with its twin.

`attempts.jsonl` holds, for each attempt, the engines that refused it and allowed its twin.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from textwrap import wrap
from typing import Any

from planner.iam import actions
from planner.iam.foundation import aws as foundation
from planner.iam.operations.aws import OPERATIONS, TOLERATED
from planner.model.control import ControlScope, Operation
from planner.model.grants import Identity
from tests.e2e.judges import replay
from tests.e2e.judges.record import Seen

PAGE = Path(__file__).resolve().parents[3] / "docs" / "iam-proof.md"
ATTEMPTS = Path(__file__).with_name("attempts.jsonl")
JUDGED = (Identity.DEPLOYER, Identity.ORCHESTRATOR)
#: resource types in a cell, and characters in a line below the table
_SHOWN, _WIDTH = 4, 160
EMULATOR, SIMULATE, MOTO, MINISTACK = "emulator", "iam-simulate", "moto", "ministack"


def passes(seen: Iterable[Seen]) -> dict[str, Any]:
    """What the access stacks of the lives added to the orchestrator: one policy for each role that it passed."""
    roles = {one.resource for one in seen if (one.identity, one.action) == (Identity.ORCHESTRATOR, "iam:PassRole")}
    return {f"skyplan-pass-{role.rpartition('/')[2]}": foundation.pass_policy(role).document for role in sorted(roles)}


@dataclass(frozen=True)
class Row:
    """One granted action of an identity."""

    identity: Identity
    action: str
    statements: tuple[str, ...]
    operations: tuple[Operation, ...]
    lives: tuple[str, ...]
    judges: tuple[str, ...]

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it may go unseen; () where nothing says so, or an operation says that it is seen."""
        if any(not one.unused for one in self.operations):
            return ()
        return tuple(sorted({one.unused for one in self.operations}))


def rows(scope: ControlScope, lives: Mapping[Seen, tuple[str, ...]], *, engines: bool = True) -> list[Row]:
    """Every granted action of deployer and orchestrator; `engines=False` asks no other engine."""
    return [row for identity in JUDGED for row in _rows(scope, identity, lives, engines=engines)]


def _rows(
    scope: ControlScope, identity: Identity, lives: Mapping[Seen, tuple[str, ...]], *, engines: bool
) -> Iterator[Row]:
    mine = [one for one in lives if one.identity is identity]
    held = replay.held_by(scope, identity, passes(mine))
    questions = [replay.Question(held, one) for one in mine]
    nobody: list[bool | None] = [None] * len(mine)
    others = (replay.simulated(questions), replay.by_moto(questions)) if engines else (nobody, nobody)
    judges = list(zip(mine, *others, strict=True))
    granting: dict[str, list[str]] = {}
    for policy in held:
        for statement in policy["document"]["Statement"]:
            if policy["kind"] == "identity" and statement["Effect"] == "Allow":
                for action in replay.granted(statement):
                    granting.setdefault(action, []).append(statement["Sid"])
    tried = {(one["who"], one["action"]) for one in attempts() if MINISTACK in one["engines"]}
    for action, sids in sorted(granting.items()):
        asked = [(one, sim, moto) for one, sim, moto in judges if one.action == action]
        named = [EMULATOR] if asked else []
        named += [SIMULATE] if any(sim is not None for _, sim, _ in asked) else []
        named += [MOTO] if any(moto is not None for _, _, moto in asked) else []
        named += [MINISTACK] if (identity.value, action) in tried else []
        yield Row(
            identity,
            action,
            tuple(dict.fromkeys(sids)),
            tuple(one for one in OPERATIONS if one.identity is identity and action in one.actions),
            tuple(sorted({life for one, _, _ in asked for life in lives[one]})),
            tuple(named),
        )


def denied(without: replay.Without, seen: Iterable[Seen]) -> list[replay.Question]:
    """What of its identity's requests the local evaluator denies without it."""
    questions = [replay.Question(without.policies, one) for one in seen if one.identity is without.identity]
    return [one for one, allowed in zip(questions, replay.local(questions), strict=True) if not allowed]


def excused(without: replay.Without) -> bool:
    """Whether a statement that no life needs says why, for each of its actions."""
    return all(
        any(one.unused for one in OPERATIONS if one.identity is without.identity and action in one.actions)
        for action in without.granted
    )


def excused_on(without: replay.Without, resource: str) -> bool:
    """Whether an action that says why it goes unseen is about resources of that kind."""
    kind = resource.rpartition(":")[2].partition("/")[0]
    return any(
        one.unused and kind in actions.resource_types(action)
        for one in OPERATIONS
        if one.identity is without.identity
        for action in set(one.actions) & without.granted
    )


def attempts() -> list[dict[str, Any]]:
    if not ATTEMPTS.is_file():
        return []
    return [json.loads(line) for line in ATTEMPTS.read_text("utf-8").splitlines()]


def save_attempts(found: Iterable[Mapping[str, Any]], engine: str) -> None:
    """Put down which attempts an engine told from their twins."""
    told = {(one["who"], one["what"]): dict(one) for one in found}
    out = {(one["who"], one["what"]): one for one in attempts()}
    for place, one in told.items():
        held = out.setdefault(place, {**one, "engines": []})
        held |= {key: one[key] for key in ("twin", "action")}
    for place, one in out.items():
        engines = set(one["engines"]) - {engine}
        one["engines"] = sorted(engines | ({engine} if place in told and told[place]["told"] else set()))
        one.pop("told", None)
    lines = [json.dumps(one) for one in out.values() if one["engines"]]
    ATTEMPTS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def page(found: Iterable[Row]) -> str:
    """The page, whole."""
    lines = [*_HEAD.splitlines(), ""]
    rows_ = list(found)
    lives = sorted({life for row in rows_ for life in row.lives})
    lines += ["The lives:", "", *(f"{number}. {life}" for number, life in enumerate(lives, start=1)), ""]
    reasons = sorted({reason for row in rows_ if not row.lives for reason in row.reasons})
    lines += ["Why not:", "", *(f"- {_letter(number)}: {reason}" for number, reason in enumerate(reasons)), ""]
    for identity in JUDGED:
        lines += [
            f"## {identity.value}",
            "",
            "| action | statements | operations | seen in life, or why not | judged by |",
        ]
        lines += ["|---|---|---|---|---|"]
        mine = [row for row in rows_ if row.identity is identity]
        lines += [_line(row, lives, reasons) for row in mine]
        lines += ["", *_folded(mine)]
    lines += ["## Refused, though nothing needs it", ""]
    lines += [f"- `{action}`: {why}." for action, why in sorted(TOLERATED.items())]
    lines += ["", "## What nobody may", ""]
    lines += ["| who | attempt | its twin, which is allowed | told apart by |", "|---|---|---|---|"]
    lines += [f"| {one['who']} | {one['what']} | {one['twin']} | {', '.join(one['engines'])} |" for one in attempts()]
    return "\n".join(lines) + "\n"


def _needs(row: Row) -> dict[str, list[str]]:
    """Steps -> the resource types that need the action at these, all sorted."""
    steps: dict[str, set[str]] = {}
    for one in row.operations:
        steps.setdefault(one.resource, set()).add(one.step.value)
    out: dict[str, list[str]] = {}
    for resource in sorted(steps):
        out.setdefault(", ".join(sorted(steps[resource])), []).append(resource)
    return out


def _line(row: Row, lives: list[str], reasons: list[str]) -> str:
    stacks = [
        f"{', '.join(kinds) if len(kinds) <= _SHOWN else f'{len(kinds)} kinds, listed below'} ({steps})"
        for steps, kinds in _needs(row).items()
    ]
    seen = (
        " ".join(str(lives.index(life) + 1) for life in row.lives)
        if row.lives
        else "not seen: " + " ".join(_letter(reasons.index(reason)) for reason in row.reasons)
    )
    return f"| `{row.action}` | {', '.join(row.statements)} | {'; '.join(stacks)} | {seen} | {', '.join(row.judges) or 'nobody'} |"


def _folded(rows_: Iterable[Row]) -> Iterator[str]:
    """What did not fit into the table: a paragraph for each row."""
    for row in rows_:
        for steps, kinds in _needs(row).items():
            if len(kinds) > _SHOWN:
                yield from wrap(f"`{row.action}` ({steps}): {', '.join(kinds)}.", _WIDTH)
                yield ""


def _letter(number: int) -> str:
    """a, b, … z, za, zb …; runs have numbers, reasons letters."""
    return "z" * (number // 25) + ascii_lowercase[number % 25]


_HEAD = """\
# What the foundation's rights on AWS are needed for

Made by `tests/e2e/test_enforcement.py`; a test holds it current (`--update-golden` writes it anew). Nothing here was asked of a live account.

- **emulator**: every call of the run was judged as it came, by what it really asks (moto with the authorization requests of the real services, signatures
  by moto, the verdict by `planner.iam.evaluate`, under permissions boundaries). Each step held only its own identity.
- **iam-simulate**: the recorded requests before npm's `@cloud-copilot/iam-simulate`, an independent engine.
- **moto**: moto's own engine, where no condition decides; it knows none.
- **ministack**: real calls to another emulator with an engine of its own: trust, boundaries, session policies, S3. It knows no machine, and without one a
  node's role may nothing.

No machine fetches credentials here: to the emulator a session under an instance's id, of a role that EC2 may become, is one that EC2 handed out.
An engine that would not tell an attempt from its twin is not named for it."""
