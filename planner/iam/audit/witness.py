"""What a set of policies lets happen in the end: a request that should be refused, and that is allowed.

For each Allow that gives an action, the request that it is made for: its own conditions hold, those of a boundary too, and no Deny applies that another
value would avoid.  Then what guards it is taken away (the tag is not there, or is a stranger's) and the whole set is judged.  Each opening is therefore a
request that AWS would allow, not a look at one line.  Finds no chains of steps: which openings are dangerous together say the rules.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

from planner.iam.actions import has_key, resource_types
from planner.iam.audit.by_action import rights
from planner.iam.audit.find import Held
from planner.iam.audit.guards import own_accounts
from planner.iam.evaluate.aws import Request, applies, judge
from planner.model.policy import Statement, Subject, Test

#: whatever is nobody's that one knows: not a tag, a role or a region of anyone's
STRANGER = "stranger"
ACCOUNT = "999999999999"
REGION = "xx-stranger-1"
#: what a stranger's request carries under keys whose values have a form, by key in lower case; `STRANGER` under others
STRANGERS: Mapping[str, str] = {
    "aws:requestedregion": REGION,
    "ec2:attribute": "UserData",
    "ec2:instanceprofile": f"arn:aws:iam::{ACCOUNT}:instance-profile/{STRANGER}",
    "ec2:instancetype": f"{STRANGER}.metal",
    "ec2:launchtemplate": f"arn:aws:ec2:{REGION}:{ACCOUNT}:launch-template/{STRANGER}",
    "ec2:newinstanceprofile": f"arn:aws:iam::{ACCOUNT}:instance-profile/{STRANGER}",
    "ec2:owner": ACCOUNT,
    "ec2:region": REGION,
    "iam:passedtoservice": f"{STRANGER}.amazonaws.com",
    "iam:permissionsboundary": f"arn:aws:iam::{ACCOUNT}:policy/{STRANGER}",
    "iam:policyarn": "arn:aws:iam::aws:policy/AdministratorAccess",
}
#: a resource of whatever kind the action takes
ANY = "*"
_ARN_PARTS = 6
_ALL_OF_A_KIND = re.compile(r"(?:[A-Za-z-]+[:/])?\*")
_IN_ACCOUNT = re.compile(r"^arn:[^:]*:[^:]*:[^:]*:(\d{12}):")
_LETTERS = 10
_REFERENCE = re.compile(r"\$\{(?:data\.)?([A-Za-z0-9_-]+)")
#: services whose actions are checked against resources of another
_ALSO = {"autoscaling": ("ec2",), "ec2-instance-connect": ("ec2",), "ssm": ("ec2",)}
#: of what kind, as ARNs say it, Terraform's resources are
_KINDS = {
    "aws_iam_group": "group",
    "aws_iam_policy": "policy",
    "aws_iam_role": "role",
    "aws_iam_user": "user",
    "aws_instance": "instance",
    "aws_launch_template": "launch-template",
    "aws_security_group": "security-group",
    "aws_subnet": "subnet",
}
_VARIABLE = re.compile(r"\$\{([A-Za-z0-9-]+:[^}*?$]+)\}")
_NEGATIVE = ("stringnot", "arnnot", "notip", "numericnot", "datenot")
Context = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One request that is allowed, and the statement that gives it."""

    held: Held
    request: Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked.

    kind     of the resource, as ARNs say it (`instance`, `role`), or `ANY`; "" = the action names none
    guard    which condition keys guard it: they are taken away
    extra    what such a request always carries
    present  guard keys that such a request carries in any case: it is not asked without them
    named    resources without a wildcard count too
    """

    action: str
    kind: str = ""
    guard: Callable[[str], bool] = field(default=lambda _: False)
    extra: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    present: tuple[str, ...] = ()
    named: bool = False


def openings(subject: Subject, question: Question) -> Iterator[Opening]:
    """Each statement by which the subject may do it, once."""
    own = rights(subject)
    given = own.allowing(question.action)
    if not given:
        return
    denied, bounds = own.denying(question.action), own.bounding(question.action)
    # a Deny may be about the very account or the very names that are asked for here: then it says nothing of others
    homes = own_accounts(subject, named=False) or dict.fromkeys(
        (own.account or ACCOUNT, *((ACCOUNT, *_accounts(denied)) if denied else ()))
    )
    for held in given:
        asked = (request for home in homes for request in _requests(held[1], question, denied, bounds, home))
        made = (one for request in asked for one in (request, *(_renamed(request, denied) if denied else ())))
        for request in made:
            by_it = applies(held[1], request, version=held[0].version)
            if by_it and judge(own.policies, request):
                yield Opening(held=held, request=request)
                break


def _accounts(denied: list[Statement]) -> Iterator[str]:
    """Those whose resources some Deny names."""
    for statement in denied:
        for pattern in (*statement.resources, *statement.not_resources):
            yield from _IN_ACCOUNT.findall(pattern)


def _renamed(request: Request, denied: list[Statement]) -> Iterator[Request]:
    """The same of another stranger, whose name and account nobody can have written into these denies."""
    mark = hashlib.sha256(repr([(one.resources, one.tests) for one in denied]).encode()).hexdigest()
    word, account = f"z{mark[:_LETTERS]}", str(int(mark[:16], 16))[:12].zfill(12)

    def other(text: str) -> str:
        return text.replace(STRANGER, word).replace(ACCOUNT, account) if REGION not in text else text

    made = Request(
        action=request.action,
        resource=":".join(other(part) for part in request.resource.split(":")),
        context={key: tuple(other(value) for value in values) for key, values in request.context.items()},
    )
    if made != request:
        yield made


def opening(subject: Subject, question: Question) -> Opening | None:
    """The first of them."""
    return next(openings(subject, question), None)


def _requests(
    statement: Statement, question: Question, denied: list[Statement], bounds: list[Statement], home: str
) -> Iterator[Request]:
    spared = [replace(one, resources=one.not_resources, not_resources=()) for one in denied if one.not_resources]
    for bound in bounds or [statement]:
        tests = statement.tests if bound is statement else (*statement.tests, *bound.tests)
        # what a bound allows, and what a Deny spares, may be narrower than what the statement gives: ask for these too
        asked = [made for one in (statement, bound, *spared) for made in resources(one, question, home)]
        for resource in dict.fromkeys(asked):
            for context in _contexts(tests, denied, question, resource):
                yield Request(action=question.action, resource=resource, context=context)


def _contexts(tests: tuple[Test, ...], denied: list[Statement], question: Question, resource: str) -> Iterator[Context]:
    """First with the guard's keys absent, then with a stranger's values."""
    made: Context = {}
    for test in tests:
        _hold(made, test)
    for statement in denied:
        for test in statement.tests:
            _avoid(made, test)
    region = resource.split(":")[3] if resource.count(":") >= _ARN_PARTS - 1 else ""
    if region and not _has(made, "aws:RequestedRegion"):
        made["aws:RequestedRegion"] = (region,)
    for key, values in question.extra.items():
        _set(made, key, values)
    guards = {key for key in made if question.guard(key.lower())}
    guards |= {test.key for test in _all(tests, denied) if question.guard(test.key.lower())}
    bare = {key: values for key, values in made.items() if key not in guards}
    stranger: Context = {key: (STRANGERS.get(key.lower(), STRANGER),) for key in sorted(guards)}
    for key in question.present:
        _set(stranger, key, (STRANGERS.get(key.lower(), STRANGER),))
    carried = [{**bare, **stranger}] if question.present else [bare, *([{**bare, **stranger}] if stranger else [])]
    for context in carried:
        yield {key: values for key, values in context.items() if _carries(question.action, question.kind, key)}


@lru_cache(maxsize=16384)
def _carries(action: str, kind: str, key: str) -> bool:
    """Whether such a request can have the key at all: one that asks for another is no witness.  What is not documented may have any."""
    try:
        return has_key(action, key, kind if kind in resource_types(action) else None)
    except KeyError:
        return True


def _all(tests: tuple[Test, ...], denied: list[Statement]) -> Iterator[Test]:
    yield from tests
    for statement in denied:
        yield from statement.tests


def _has(context: Mapping[str, object], key: str) -> bool:
    return any(one.lower() == key.lower() for one in context)


def _set(context: Context, key: str, values: tuple[str, ...]) -> None:
    for one in [one for one in context if one.lower() == key.lower()]:
        del context[one]
    context[key] = values


def _hold(context: Context, test: Test) -> None:
    """Make the test hold."""
    operator = _bare(test.operator)
    if operator == "null":
        if "false" in test.values and not _has(context, test.key):
            context[test.key] = ("set",)
        return
    if operator.startswith(_NEGATIVE):
        if not _has(context, test.key):
            context[test.key] = (_value("stringequals", STRANGER, context),)
        return
    if test.values:
        _set(context, test.key, (_value(operator, test.values[0], context),))


def _avoid(context: Context, test: Test) -> None:
    """Keep a Deny's test from holding, as far as nothing else needs the key."""
    if _has(context, test.key) or not test.values:
        return
    operator = _bare(test.operator)
    if operator.startswith(_NEGATIVE):
        context[test.key] = (_value(operator, test.values[0], context),)
    elif operator == "null" and "true" in test.values:
        context[test.key] = ("set",)
    elif operator == "bool":
        context[test.key] = ("false" if test.values[0] == "true" else "true",)
    elif operator.startswith("numeric"):
        context[test.key] = (_beyond(operator, test.values[0]),)


def _bare(operator: str) -> str:
    """`ForAllValues:StringLikeIfExists` -> `stringlike`."""
    return operator.lower().rpartition(":")[2].removesuffix("ifexists")


def _value(operator: str, text: str, context: Context) -> str:
    """A value that the operator holds for.  Variables of a policy are filled in, so that both sides have the same."""

    def filled(found: re.Match[str]) -> str:
        if not _has(context, found[1]):
            context[found[1]] = (STRANGER,)
        return next(values[0] for key, values in context.items() if key.lower() == found[1].lower())

    text = _VARIABLE.sub(filled, text)
    if operator.startswith("numeric"):
        return _within(operator, text)
    if operator.startswith("date"):
        return {"datelessthan": "1970-01-02T00:00:00Z", "dategreaterthan": "2999-01-01T00:00:00Z"}.get(operator, text)
    if "ip" in operator:
        return text.partition("/")[0]
    return concrete(text) if "like" in operator or operator.startswith("arn") else text


def _within(operator: str, text: str) -> str:
    step = {"numericlessthan": -1, "numericgreaterthan": 1}.get(operator, 0)
    return str(int(float(text)) + step) if step and _number(text) else text


def _beyond(operator: str, text: str) -> str:
    """Of a Deny: a number that its test does not hold for."""
    step = {"numericlessthan": 0, "numericlessthanequals": 1, "numericgreaterthan": 0, "numericgreaterthanequals": -1}
    return str(int(float(text)) + step.get(operator, 1)) if _number(text) else text


def _number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None


def concrete(pattern: str) -> str:
    """A text that the pattern matches, and that nobody chose."""
    return re.sub(r"\$\{[*?$]\}|\*+|\?", _stand_in, pattern)


def _stand_in(found: re.Match[str]) -> str:
    text = found[0]
    if text.startswith("$"):
        return text[2]
    return STRANGER if text[0] == "*" else "x"


def shown(resource: str) -> str:
    """A resource of a witness for people: a stranger's has no name."""
    place = resource.split(":", _ARN_PARTS - 1)[-1]
    if STRANGER not in resource and ACCOUNT not in resource and REGION not in resource:
        return resource
    kind = place.partition("/")[0].replace("-", " ")
    return f"anybody's {kind}" if kind and STRANGER not in kind else "anything of anybody's"


def resources(statement: Statement, question: Question, home: str = ACCOUNT) -> tuple[str, ...]:
    """Resources of that kind that a statement reaches: a stranger's for each wildcard, and the named ones where they count."""
    if not question.kind:
        return ("*",)
    patterns = ("*",) if statement.not_resources else statement.resources
    return _all_reached(patterns, question.kind, question.action.partition(":")[0], question.named, home)


@lru_cache(maxsize=16384)
def _all_reached(patterns: tuple[str, ...], kind: str, service: str, named: bool, home: str) -> tuple[str, ...]:
    made = (reached(pattern, kind, service, named=named, home=home) for pattern in patterns)
    return tuple(dict.fromkeys(one for one in made if one))


def reached(pattern: str, kind: str, service: str, *, named: bool, home: str = ACCOUNT) -> str:
    """A resource of the kind that the pattern takes in; "" where it takes in none, or only named ones and those do not count.

    A policy's variable ties the resource to who asks (`user/${aws:username}`): that is nobody else's.
    """
    if pattern == "*":
        pattern = f"arn:aws:{service}:*:*:*"
    parts = pattern.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS:
        return _referred(pattern, kind, named=named)
    if _VARIABLE.search(parts[5]) or not _of_service(parts[2], service):
        return ""
    place = _place(parts[5], kind, named=named)
    if not place:
        return ""
    region = "" if service in {"iam", "s3"} else parts[3].replace("*", REGION)
    account = "" if kind == "image" and parts[4] in {"", "*"} else parts[4].replace("*", home)
    front = ["arn", parts[1].replace("*", "aws"), parts[2].replace("*", service), region, account]
    return concrete(":".join([*front, place]))


def _of_service(part: str, service: str) -> bool:
    """Actions are checked against their own service's resources; some against machines."""
    return "*" in part or part == service or part in _ALSO.get(service, ())


def _referred(pattern: str, kind: str, *, named: bool) -> str:
    """What Terraform's reference stands for, if it may be of the kind; with a wildcard behind it, a stranger's."""
    found = _REFERENCE.match(pattern)
    if found is None or _VARIABLE.search(pattern) or not (named or _wild(pattern)):
        return ""
    of = found[1]
    known = of.startswith("aws_") and kind != ANY
    return "" if known and _KINDS.get(of) != kind else concrete(pattern)


def _wild(text: str) -> bool:
    return re.search(r"[*?]", re.sub(r"\$\{[^}]*\}", "", text)) is not None


def _place(place: str, kind: str, *, named: bool) -> str:
    """What follows the account, narrowed to the kind: `*` is `instance/*`; "" where it can be none of it."""
    wild = _wild(place)
    if kind == ANY:
        return place if named or _ALL_OF_A_KIND.fullmatch(place) else ""
    if place.startswith(f"{kind}/"):
        return place if wild or named else ""
    if not wild:
        return place if named and place.startswith("${") else ""
    before = re.split(r"[*?]", place, maxsplit=1)[0]
    return f"{kind}/*" if f"{kind}/".startswith(before) else ""
