"""What of one AWS statement a base does not give, and in what it goes beyond: action, resource, principal, condition, or a Deny that is gone.

Statements are taken apart, one action on one resource at a time, so that a list that only partly grew tells the new part.  Compares lists of statements;
whose they are is `widening`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from planner.iam.actions import expand
from planner.iam.audit.covers import covers, implies, overlaps, same_ground, spans
from planner.iam.audit.lines import instead, without, written
from planner.iam.audit.patterns import includes_action
from planner.model.policy import Statement, Test

_SHOWN = 3
_WORDS = ("arn", "partition", "service", "region", "account", "name")
_ARN_PARTS = len(_WORDS)


class Way(StrEnum):
    """In what a right goes beyond its base, the plainest first."""

    CONDITION = "condition"
    RESOURCE = "resource"
    PRINCIPAL = "principal"
    DENY = "deny"
    ACTION = "action"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Some statements that belong together: what they allow, and every Deny that holds for it."""

    allows: tuple[Statement, ...]
    denies: tuple[Statement, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """One difference: `message` for a reader, `fix` to write instead.

    change  the difference alone, without what it is on: the same for all that one change makes wider; "" for what is new
    """

    way: Way
    action: str
    resource: str
    message: str
    fix: str
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Excess:
    """One atom that is not covered, with the base's statements nearest to it."""

    way: Way
    atom: Statement
    near: tuple[Statement, ...] = field(default=())


def grown(statement: Statement, base: Ground, new: Ground) -> Iterator[Growth]:
    """Each thing that an Allow of `new` gives beyond `base`; nothing for one that does not."""
    over = [found for atom in atoms(statement) for found in _excess(atom, base, new)]
    if not over:
        return
    whole = len(over) == len(list(atoms(statement)))
    if whole and all(one.way is Way.ACTION for one in over):
        yield _added(statement, statement.actions or statement.not_actions, statement)
        return
    groups: dict[tuple[Way, object], list[_Excess]] = {}
    for one in over:
        key = one.atom.actions if one.way is Way.ACTION else (one.near, one.atom.principals)
        groups.setdefault((one.way, key), []).append(one)
    for (way, _), found in groups.items():
        yield _words(way, statement, found, base)


def atoms(statement: Statement) -> Iterator[Statement]:
    """One action, one resource, one principal at a time.  What is given by exclusion stays whole."""
    for action in statement.actions or ("",):
        for resource in statement.resources or ("",):
            for principal in statement.principals or (None,):
                yield replace(
                    statement,
                    actions=(action,) if action else (),
                    resources=(resource,) if resource else (),
                    principals=(principal,) if principal else (),
                )


def blocked(atom: Statement, denies: Sequence[Statement]) -> bool:
    """A Deny takes it away whole."""
    return any(spans(replace(deny, principals=atom.principals), atom) for deny in denies if _for_all(deny, atom))


def _for_all(deny: Statement, atom: Statement) -> bool:
    """The Deny speaks of the atom's principals: it names none (a policy of the identity's own), or all of them."""
    return not deny.not_principals and (
        not deny.principals or set(atom.principals) <= set(deny.principals) or _public(deny)
    )


def _public(statement: Statement) -> bool:
    return any(name == "*" and kind in {"*", "AWS"} for kind, name in statement.principals)


def kept(deny: Statement, denies: Sequence[Statement]) -> bool:
    """Other denies still refuse all that this one did, between them."""
    return any(spans(other, deny) for other in denies) or all(
        any(spans(other, atom) for other in denies) for atom in atoms(deny)
    )


def gone(base: Ground, new: Ground) -> list[Statement]:
    """The base's denies that nothing keeps."""
    return [deny for deny in base.denies if not kept(deny, new.denies)]


def _excess(atom: Statement, base: Ground, new: Ground) -> Iterator[_Excess]:
    if blocked(atom, new.denies):
        return
    if any(covers(have, atom) for have in base.allows):
        lifted = tuple(
            deny for deny in gone(base, new) if overlaps(deny, atom) and not kept(_there(deny, atom), new.denies)
        )
        if lifted:
            yield _Excess(way=Way.DENY, atom=atom, near=lifted)
        return
    yield _nearest(atom, base.allows)


def _there(deny: Statement, atom: Statement) -> Statement:
    """The Deny as if it spoke of this action and this resource only: no less than what it takes from the atom."""
    return replace(
        deny,
        actions=atom.actions,
        not_actions=atom.not_actions,
        resources=atom.resources,
        not_resources=atom.not_resources,
    )


def _nearest(atom: Statement, allows: Sequence[Statement]) -> _Excess:
    """The least that would have to change in the base."""
    ground = [(have, same_ground(have, atom)) for have in allows]
    for way, pattern in (
        (Way.CONDITION, (True, True, True, False)),
        (Way.RESOURCE, (True, False, True, True)),
        (Way.PRINCIPAL, (True, True, False, True)),
        (Way.PRINCIPAL, (True, True, False, False)),
        (Way.RESOURCE, (True, False, True, False)),
    ):
        near = [have for have, held in ground if held == pattern]
        if near:
            near.sort(key=lambda have: len(loosened(atom.tests, have.tests)))
            return _Excess(way=way, atom=atom, near=tuple(near if way is Way.RESOURCE else near[:1]))
    return _Excess(way=Way.ACTION, atom=atom)


def loosened(tests: Sequence[Test], base: Sequence[Test]) -> list[Test]:
    """The base's conditions that do not follow from these."""
    return [have for have in base if not any(implies(want, have) for want in tests)]


def _words(way: Way, statement: Statement, found: list[_Excess], base: Ground) -> Growth:
    actions = tuple(dict.fromkeys(action for one in found for action in one.atom.actions or one.atom.not_actions))
    resources = tuple(dict.fromkeys(r for one in found for r in one.atom.resources or one.atom.not_resources))
    near = found[0].near
    what, where = listed(actions), f" on {listed(resources)}" if resources else ""
    part = replace(statement, actions=actions, resources=resources) if statement.actions else statement
    change = ""
    match way:
        case Way.ACTION:
            return _added(statement, actions, part)
        case Way.CONDITION:
            less = _less(part.tests, near[0].tests)
            message = f"{what}{where} is granted on a weaker condition: {less}"
            change = less
            fix = instead(statement, actions, replace(part, tests=near[0].tests))
        case Way.RESOURCE:
            near, before = _beside(near, resources)
            message = f"{what} now reaches {listed(resources)}; the base stops at {listed(before)}"
            less = _less(part.tests, near[0].tests)
            message += f"; there it is granted on a weaker condition: {less}" if less else ""
            change = "; ".join([*dict.fromkeys(_moved(one.atom, base) for one in found), *([less] if less else [])])
            fix = instead(statement, actions, replace(near[0], sid=statement.sid, actions=actions))
        case Way.PRINCIPAL:
            names = tuple(dict.fromkeys(f"{kind} {name}" for one in found for kind, name in one.atom.principals))
            message = f"{listed(names)} may now call {what}{where}; the base names {_who(near[0])}"
            fix = f"write instead:\n{written(replace(statement, principals=near[0].principals))}"
        case Way.DENY:
            named = ", ".join(deny.sid or "without a Sid" for deny in near)
            change = f"a Deny of the base ({named}) is gone or narrower"
            message = f"{what}{where} was held back by a Deny of the base ({named}) that is gone or narrower"
            fix = f"put back:\n{written(*near)}"
    return Growth(
        way=way, action=", ".join(actions), resource=", ".join(resources), message=message, fix=fix, change=change
    )


def _beside(near: tuple[Statement, ...], resources: Sequence[str]) -> tuple[tuple[Statement, ...], tuple[str, ...]]:
    """Of what the base gives the action on, that in the same bucket (table, path of roles) where there is any: the rest says nothing of the change."""
    homes = {_home(one) for one in resources}
    same = {one for have in near for one in have.resources if _home(one) in homes}
    kept = tuple(have for have in near if same & set(have.resources)) or near
    named = dict.fromkeys(one for have in kept for one in have.resources or have.not_resources)
    return kept, tuple(one for one in named if one in same or not same)


def _home(resource: str) -> tuple[str, ...]:
    """Its service and what its place begins with: a bucket, or a kind of thing."""
    parts = resource.split(":", _ARN_PARTS - 1)
    return (*parts[2:3], parts[-1].partition("/")[0])


def _moved(atom: Statement, base: Ground) -> str:
    """In what the resource is another than the nearest that the base has the action on: its region or account where nothing else is."""
    (now,) = atom.resources or ("everything but " + listed(atom.not_resources),)
    before = [
        resource
        for have in base.allows
        if any(includes_action(action, one) for action in have.actions for one in atom.actions)
        for resource in have.resources
    ]
    if not before:
        return f"now on {now}"
    parts = now.split(":", _ARN_PARTS - 1)
    alike = [one.split(":", _ARN_PARTS - 1) for one in before]
    apart: list[list[tuple[str, str, str]]] = [
        [(word, b, a) for word, b, a in zip(_WORDS, one, parts, strict=True) if a != b]
        for one in alike
        if len(one) == len(parts) == _ARN_PARTS
    ]
    near = min(apart, key=len) if apart else []
    if near and all(word in {"region", "account"} for word, _, _ in near):
        return " and ".join(f"the {word} {b} became {a}" for word, b, a in near)
    return f"now on {now}"


def _added(statement: Statement, actions: tuple[str, ...], part: Statement) -> Growth:
    resources = part.resources or part.not_resources
    what = f"everything but {listed(actions)}" if part.not_actions else listed(actions)
    where = f" on {'everything but ' if part.not_resources else ''}{listed(resources)}" if resources else ""
    whom = f" for {_who(part)}" if part.principals or part.not_principals else ""
    when = f", where {'; '.join(said(test) for test in part.tests)}" if part.tests else ""
    message = f"adds {what}{where}{whom}{when}{_among(actions if part.actions else ())}"
    fix = without(statement, actions)
    return Growth(way=Way.ACTION, action=", ".join(actions), resource=", ".join(resources), message=message, fix=fix)


def _among(actions: Sequence[str]) -> str:
    """What wildcards stand for, by number and example."""
    wild = [action for action in actions if "*" in action or "?" in action]
    names = [name for action in wild for name in expand(action)]
    return f" ({len(names)} actions, such as {', '.join(names[:_SHOWN])})" if names else ""


def _less(tests: Sequence[Test], base: Sequence[Test]) -> str:
    """Which conditions were dropped, which loosened, and from what to what."""
    out: list[str] = []
    for have in loosened(tests, base):
        now = [test for test in tests if test.key.lower() == have.key.lower()]
        if now:
            out.append(f"`{said(have)}` became `{' and '.join(said(test) for test in now)}`")
        else:
            out.append(f"`{said(have)}` was dropped")
    return "; ".join(out)


def said(test: Test) -> str:
    """A condition in one line."""
    return f"{test.operator} {test.key} = {', '.join(test.values)}"


def _who(statement: Statement) -> str:
    names = [f"{kind} {name}" for kind, name in statement.principals or statement.not_principals]
    return ("everybody but " if statement.not_principals else "") + (listed(names) or "nobody")


def listed(values: Sequence[str]) -> str:
    """The first few, and how many more."""
    more = len(values) - _SHOWN
    return ", ".join(values[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
