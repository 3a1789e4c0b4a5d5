"""What the findings about one statement say together: an administrator's takes the others in, and of several changes asked of it one is made.

A statement is one line to its owner, so each finding shows the one change by which all rules that ask for conditions, resources or fewer actions of it are
met; changes made one by one would stand side by side as statements, any of which is enough for a request.  Finds nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from planner.iam.audit.lines import Repair, instead, without
from planner.model.finding import Finding
from planner.model.policy import Statement, Test

#: what else a launch is asked for: where only its machine or its image is bounded, the rest stays as it was
_LAUNCHES = frozenset({"ec2:runinstances", "ec2:createfleet"})
_ALSO_ASKED = (
    "image",
    "instance",
    "key-pair",
    "launch-template",
    "network-interface",
    "security-group",
    "subnet",
    "volume",
)
#: whether a finding says all that others say about the same statement or right
Whole = Callable[[Finding], bool]


def settled(findings: Iterable[Finding], whole: Whole) -> tuple[Finding, ...]:
    """The findings, worst first, without those that another takes in, and with changes that hold together."""
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in sorted(findings, key=Finding.sort_key):
        groups.setdefault(_about(one), []).append(one)
    out = [one for group in groups.values() for one in _joined(_taken_in(group, whole))]
    return tuple(sorted(out, key=Finding.sort_key))


def _about(finding: Finding) -> tuple[str, ...]:
    """A statement by its name; a role that is given, by what it is given on too."""
    place = "" if finding.cloud == "aws" else finding.resource
    return (finding.cloud, finding.identity, finding.origin, finding.grant, place)


def _taken_in(group: list[Finding], whole: Whole) -> list[Finding]:
    over = next((one for one in group if one.grant and whole(one)), None)
    rest = [one for one in group if one is not over]
    if over is None or not rest:
        return group
    rules = len({one.rule for one in rest})
    said = f"; takes in {_number(len(rest), 'other finding')} about it, of {_number(rules, 'rule')}"
    return [replace(over, message=over.message + said)]


def _joined(group: list[Finding]) -> list[Finding]:
    """Those that repair one and the same statement get one change."""
    by: dict[Statement, list[tuple[Finding, Repair]]] = {}
    for one in group:
        if isinstance(one.fix, Repair) and _plain(one.fix):
            by.setdefault(one.fix.statement, []).append((one, one.fix))
    fixes: dict[int, str] = {}
    for statement, found in by.items():
        repairs = list(dict.fromkeys(repair for _, repair in found))
        if len(repairs) > 1:
            rules = sorted({finding.rule for finding, _ in found})
            fix = _together(statement, repairs, rules)
            fixes |= {id(finding): fix for finding, _ in found}
    return [replace(one, fix=fixes[id(one)]) if id(one) in fixes else one for one in group]


def _plain(repair: Repair) -> bool:
    """Of an Allow by named actions, each of which it gives anew at most once."""
    given = [action for part in repair.parts for action in part.actions]
    return repair.statement.effect == "Allow" and not repair.statement.not_actions and len(given) == len(set(given))


def _together(statement: Statement, repairs: Sequence[Repair], rules: Sequence[str]) -> str:
    actions = list(dict.fromkeys(action for repair in repairs for action in repair.actions))
    parts = _parts(statement, repairs, [one for one in actions if not _is_dropped(one, repairs)])
    if parts:
        text = str(instead(statement, actions, *_named(statement, parts, actions)))
    else:
        text = str(without(statement, actions))
    head, line, rest = text.partition("\n")
    said = f" (one change for {', '.join(rules)})" if len(rules) > 1 else ""
    return f"{head.removesuffix(':')}{said}{':' if line else ''}{line}{rest}"


def _is_dropped(action: str, repairs: Sequence[Repair]) -> bool:
    return any(action in one.actions and not any(action in part.actions for part in one.parts) for one in repairs)


def _parts(statement: Statement, repairs: Sequence[Repair], actions: Sequence[str]) -> list[Statement]:
    """For each action, what all of its repairs ask; actions of which the same is asked stand together."""
    out: dict[Statement, list[str]] = {}
    for action in actions:
        asked = [part for repair in repairs for part in repair.parts if action in part.actions]
        kinds: dict[str, list[Statement]] = {}
        for part in asked:
            if part.resources != statement.resources or part.not_resources != statement.not_resources:
                kinds.setdefault(_kind(part), []).append(part)
        everywhere = [part for part in asked if not any(part in held for held in kinds.values())]
        for held in kinds.values() or ([],):
            tests = _tests(statement, [*held, *everywhere])
            made = replace((held or everywhere)[0], tests=tests, actions=())
            out.setdefault(made, []).append(action)
        if action.lower() in _LAUNCHES and kinds and "*" in statement.resources:
            rest = tuple(f"arn:aws:ec2:*:*:{kind}/*" for kind in _ALSO_ASKED if kind not in kinds)
            made = replace(statement, resources=rest, tests=_tests(statement, everywhere), actions=())
            out.setdefault(made, []).append(action)
    return [replace(made, actions=tuple(given)) for made, given in out.items()]


def _kind(part: Statement) -> str:
    """Of EC2 what a request is about beside others, each by a resource of its own: `instance`, `image`."""
    first = part.resources[0] if part.resources else ""
    return first.split(":", 5)[-1].partition("/")[0] if ":ec2:" in first else ""


def _tests(statement: Statement, asked: Sequence[Statement]) -> tuple[Test, ...]:
    """Its own that nobody takes away, and those that are asked for."""
    kept = [test for test in statement.tests if all(test in part.tests for part in asked)]
    return tuple(
        dict.fromkeys([*kept, *(test for part in asked for test in part.tests if test not in statement.tests)])
    )


def _named(statement: Statement, parts: Sequence[Statement], actions: Sequence[str]) -> list[Statement]:
    """With a Sid of their own each: no policy may have one twice."""
    taken = {statement.sid} if set(statement.actions) - set(actions) else set[str]()
    out: list[Statement] = []
    for part in parts:
        sid, number = part.sid, 1
        while sid and sid in taken:
            number += 1
            sid = f"{part.sid}{number}"
        taken.add(sid)
        out.append(replace(part, sid=sid))
    return out


def _number(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
