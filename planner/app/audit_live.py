"""An account held against its plans, in both directions: what is not there, what is there beside them, what differs (SKY-IAM-903).  Reads, never writes.

Compared are statements, whatever policy they stand in, trust and boundaries, whose tokens are believed, and what machines may ask the metadata service for.
A value that Terraform knows only after an apply stands for any one.  Regions that an apply makes ready for failing over may be there and need not be.
Offered for AWS; tested against moto, never run against a live account.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.app.audit_join import without_unknown
from planner.app.audit_rights import label
from planner.app.audit_sources import merged
from planner.clouds.port import Where
from planner.iam.read.whose import FOUNDATION_PATH
from planner.model.diagnostic import Diagnostic, Severity
from planner.model.errors import CloudError
from planner.model.finding import Finding, Level
from planner.model.grants import CONTROL_IDENTITIES
from planner.model.offer import Cloud
from planner.model.policy import Audited, Machine, PolicyKind, Provider, Statement, Subject

if TYPE_CHECKING:
    from planner.app.audit import Read
    from planner.app.audit_sources import Around
    from planner.clouds.port import RightsReader
    from planner.model.plan import PlacementPlan
    from planner.model.stack import AccessInput

_RULE = "SKY-IAM-903"
#: a reference of Terraform's; what IAM fills in itself (`${aws:PrincipalTag/…}`) has a colon and is the same on both sides
_LATER = re.compile(r"\$\{[^}:]*\}")
_COMPARED = (PolicyKind.IDENTITY, PolicyKind.BOUNDARY, PolicyKind.TRUST)
_NO_PLAN = "no plan that was read makes it: audit all plans of the project together, or remove it"
Reader = Callable[[Where], "RightsReader"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    target: str
    region: str
    account: str | None


def drift(known: Read, reader: Reader | None = None) -> tuple[tuple[Finding, ...], tuple[Diagnostic, ...]]:
    """What differs, and what could not be compared: an error where an account or a region refused to be read, a warning where none is asked.

    Raises MissingPart without the cloud's SDK.
    """
    told = [_not_offered(cloud) for cloud in sorted(_clouds(known) - {Cloud.AWS})]
    read: list[Audited] = []
    failed: list[Diagnostic] = []
    for place in _places(known):
        try:
            read.append(_read(place, known.around.project.name, reader))
        except CloudError as error:
            failed += error.diagnostics
    if not read:
        return (), (*told, *failed) or (_nothing(),)
    if not _founded(_planned(without_unknown(known.gathered.audited))):
        summary = "control identities were not compared: skyplan.yaml says neither `foundation.ci` nor the target's `foundation`"
        told.append(Diagnostic(code="SKY-IAM-902", summary=summary))
    found = compare(_planned(without_unknown(known.gathered.audited)), merged(read), _ready(known))
    softened = tuple(
        Diagnostic(code=d.code, summary=d.summary, location=d.location, hint=d.hint, severity=Severity.WARNING)
        for d in told
    )
    return found, (*softened, *failed)


def _not_offered(cloud: Cloud) -> Diagnostic:
    summary = f"what {cloud.value} really grants is not compared in this version, only what AWS does"
    return Diagnostic(code="SKY-IAM-902", summary=summary, hint=f"audit the plans for {cloud.value} without --live")


def _nothing() -> Diagnostic:
    return Diagnostic(
        code="SKY-IAM-902", summary="there is no plan and no target on AWS to compare", hint="see `targets`"
    )


def _clouds(known: Read) -> set[Cloud]:
    return {stack.cloud for source in known.gathered.plans for stack in source.stacks}


def _places(known: Read) -> tuple[_Place, ...]:
    """Where the plans are on AWS; without plans, each AWS target by one of its regions: rights have no region."""
    targets = {t.name: t for t in known.around.project.targets if t.cloud is Cloud.AWS}
    stacks = [stack for source in known.gathered.plans for stack in source.stacks if stack.cloud is Cloud.AWS]
    if known.gathered.plans:
        places = {(stack.target, stack.region) for stack in stacks}
    else:
        plain = {name: [r for r in t.regions if "*" not in r and "?" not in r] for name, t in targets.items()}
        places = {(name, (regions or ["us-east-1"])[0]) for name, regions in plain.items() if targets[name].account}
    return tuple(
        _Place(target=name, region=region, account=targets[name].account if name in targets else None)
        for name, region in sorted(places)
    )


def _read(place: _Place, project: str, reader: Reader | None) -> Audited:
    """Raises CloudError, also where the credentials are another account's: everything would seem to be missing."""
    if reader is None:
        from planner.clouds.choose import rights_reader as reader  # noqa: PLC0415 - boto3

    where = Where(cloud=Cloud.AWS.value, target=place.target, region=place.region, account=place.account)
    found = reader(where).audited(project=project)
    accounts = {s.origin.split(":")[4] for s in found.subjects if s.origin.startswith("arn:")}
    if place.account and accounts - {place.account}:
        summary = (
            f"the credentials are of account {', '.join(sorted(accounts))}; target {place.target} is {place.account}"
        )
        raise CloudError(
            [Diagnostic(code="SKY-IAM-902", summary=summary, hint="use credentials of the target's account")]
        )
    return found


def _planned(audited: Audited) -> Audited:
    """What is skyplan's own on AWS: nobody else's are listed there."""
    return Audited(
        subjects=tuple(s for s in audited.subjects if s.cloud is Cloud.AWS and _ours(s)),
        machines=tuple(m for m in audited.machines if m.cloud is Cloud.AWS),
        providers=tuple(p for p in audited.providers if p.cloud is Cloud.AWS),
    )


def _ours(subject: Subject) -> bool:
    return (
        subject.identity is not None or subject.origin.startswith("fnd-") or "skyplan-pass-" in _policy_names(subject)
    )


def _policy_names(subject: Subject) -> str:
    return " ".join(policy.name for policy in subject.policies)


def _ready(known: Read) -> Audited:
    """What an apply may have made in other regions of the ranked sets."""
    from planner.iam.read.inputs import read_inputs  # noqa: PLC0415 - beside its use

    stacks = {stack.name: stack for source in known.gathered.plans for stack in _elsewhere(source.plan, known.around)}
    return _planned(read_inputs(list(stacks.values())))


def _elsewhere(plan: PlacementPlan, around: Around) -> Iterator[AccessInput]:
    from planner.app import compose  # noqa: PLC0415 - numpy
    from planner.spec.normal import workload_from_document  # noqa: PLC0415 - beside its use

    workload = workload_from_document(plan.job)
    kept = {target.name for target in around.project.targets if target.cloud is Cloud.AWS}
    alone = [p for p in plan.ranked if p.cloud == Cloud.AWS and p.target in kept and not p.parts]
    for p in {(p.target, p.region): p for p in reversed(alone)}.values():
        for one in compose.stack_sets(plan.ranked, p, workload, around.project, around.market(), generation=1):
            yield one.access


def compare(planned: Audited, live: Audited, ready: Audited | None = None) -> tuple[Finding, ...]:
    """All that differs, worst first."""
    out = [*_subjects(planned, live, ready or Audited()), *_providers(planned, live), *_machines(planned, live)]
    return tuple(sorted(set(out), key=Finding.sort_key))


def _subjects(planned: Audited, live: Audited, ready: Audited) -> Iterator[Finding]:
    must, may, there = _by_name(planned), _by_name(ready), _by_name(live)
    carried = {_plain(policy.name): s for s in live.subjects for policy in s.policies}
    for name, subjects in must.items():
        if name in carried and name not in there:  # a boundary that roles carry is no identity of its own there
            there[name] = (_only(carried[name], name),)
        if name not in there:
            words = f"{label(subjects[0])} {name} is planned and not in the account"
            yield _finding(subjects[0], words, level=Level.MEDIUM, fix="apply the plan")
    for name, subjects in there.items():
        asked = must.get(name) or may.get(name, ())
        wanted = (*asked, *may.get(name, ()))
        if not wanted and _of_foundation(subjects[0]) and not _founded(planned):
            continue
        if not wanted:
            words = f"{label(subjects[0])} {name} is in the account and in no plan"
            yield _finding(subjects[0], words, level=Level.HIGH, fix=_NO_PLAN)
            continue
        whole = any(s.of_kind(PolicyKind.TRUST) or _plain(s.policies[0].name) == name for s in wanted if s.policies)
        for kind in _COMPARED if whole else (PolicyKind.IDENTITY,):
            yield from _missing(kind, asked, subjects)
            if whole:
                yield from _extra(kind, wanted, subjects)


def _of_foundation(subject: Subject) -> bool:
    """A control identity, or the role by which CI becomes one."""
    return subject.identity in CONTROL_IDENTITIES or f":role{FOUNDATION_PATH}" in subject.origin


def _founded(planned: Audited) -> bool:
    """The plans know the control identities, not only what they add to them."""
    return any(s.identity in CONTROL_IDENTITIES and s.of_kind(PolicyKind.TRUST) for s in planned.subjects)


def _only(subject: Subject, policy: str) -> Subject:
    kept = tuple(p for p in subject.policies if _plain(p.name) == policy)
    return replace(subject, name=policy, origin=kept[0].name, identity=None, policies=kept)


def _by_name(audited: Audited) -> dict[str, tuple[Subject, ...]]:
    """A role that two stacks give policies to is one."""
    out: defaultdict[str, list[Subject]] = defaultdict(list)
    for subject in audited.subjects:
        out[_plain(subject.name)].append(subject)
    return {name: tuple(out[name]) for name in sorted(out)}


def _plain(name: str) -> str:
    """A role's name, of its ARN too."""
    return name.rsplit("/", 1)[-1] if name.startswith("arn:") else name


def _word(kind: PolicyKind) -> str:
    return {PolicyKind.BOUNDARY: "permissions boundary: ", PolicyKind.TRUST: "trust: "}.get(kind, "")


def _known(kind: PolicyKind, planned: tuple[Subject, ...]) -> bool:
    """What the policies say, and not their names alone."""
    return all(policy.statements for subject in planned for policy in subject.of_kind(kind))


def _missing(kind: PolicyKind, planned: tuple[Subject, ...], live: tuple[Subject, ...]) -> Iterator[Finding]:
    if not _known(kind, planned):
        yield from _named(kind, planned, live)
        return
    have = list(_of(kind, live))
    for grant, statement in _of(kind, planned):
        if not any(_same(statement, other) for _, other in have):
            level = Level.MEDIUM if statement.effect == "Allow" and kind is not PolicyKind.BOUNDARY else Level.HIGH
            message = f"{_word(kind)}{grant} is planned and not in the account"
            yield _finding(live[0], message, level=level, grant=grant, evidence=_said(statement), fix="apply the plan")


def _extra(kind: PolicyKind, planned: tuple[Subject, ...], live: tuple[Subject, ...]) -> Iterator[Finding]:
    if not _known(kind, planned):
        return
    want = list(_of(kind, planned))
    for grant, statement in _of(kind, live):
        if not any(_same(other, statement) for _, other in want):
            level = Level.HIGH if statement.effect == "Allow" else Level.LOW
            message = f"{_word(kind)}{grant} is in the account and not planned"
            fix = _NO_PLAN if "skyplan-pass-" in grant else "remove it there, or take it into the plan"
            yield _finding(live[0], message, level=level, grant=grant, evidence=_said(statement), fix=fix)


def _named(kind: PolicyKind, planned: tuple[Subject, ...], live: tuple[Subject, ...]) -> Iterator[Finding]:
    """Where only the names of policies are known, by these."""
    want, have = ({_plain(p.name) for s in subjects for p in s.of_kind(kind)} for subjects in (planned, live))
    for name in sorted(want - have):
        message = f"{kind.value} {name} is planned and not in the account"
        yield _finding(live[0], message, level=Level.HIGH, grant=name, fix="apply the plan")


def _of(kind: PolicyKind, subjects: Iterable[Subject]) -> Iterator[tuple[str, Statement]]:
    for subject in subjects:
        for policy in subject.of_kind(kind):
            for number, statement in enumerate(policy.statements, start=1):
                yield f"{_plain(policy.name)}/{statement.sid or f'statement {number}'}", statement


def _same(planned: Statement, live: Statement) -> bool:
    """The same right, whatever it is called and in whichever order it is written."""
    if planned.effect != live.effect:
        return False
    pairs = (
        (map(str.lower, planned.actions), map(str.lower, live.actions)),
        (map(str.lower, planned.not_actions), map(str.lower, live.not_actions)),
        (planned.resources, live.resources),
        (planned.not_resources, live.not_resources),
        (map(" ".join, planned.principals), map(" ".join, live.principals)),
        (map(" ".join, planned.not_principals), map(" ".join, live.not_principals)),
        (_tests(planned), _tests(live)),
    )
    return all(_alike(set(want), set(have)) for want, have in pairs)


def _tests(statement: Statement) -> Iterator[str]:
    return (f"{t.operator} {t.key.lower()} {' '.join(sorted(set(t.values)))}" for t in statement.tests)


def _alike(want: set[str], have: set[str]) -> bool:
    """Equal but for what is known only after an apply."""
    left = have - want
    later = [_pattern(text) for text in want - have]
    return len(later) == len(left) and all(any(p.fullmatch(text) for text in left) for p in later)


def _pattern(text: str) -> re.Pattern[str]:
    parts = _LATER.split(text)
    return re.compile(".+".join(map(re.escape, parts)), re.DOTALL)


def _said(s: Statement) -> str:
    actions = s.actions or tuple(f"all but {one}" for one in s.not_actions)
    on = s.resources or tuple(f"all but {one}" for one in s.not_resources)
    who = f" by {', '.join(' '.join(p) for p in s.principals)}" if s.principals else ""
    where = f" on {', '.join(on)}" if on else ""
    bounds = f" if {' and '.join(_tests(s))}" if s.tests else ""
    return f"{s.effect} {', '.join(actions)}{where}{who}{bounds}"


def _providers(planned: Audited, live: Audited) -> Iterator[Finding]:
    """Issuers that the plans name; whose other tokens the account believes is not skyplan's business."""
    there = {_issuer(p): p for p in live.providers}
    for one in planned.providers:
        found = there.get(_issuer(one))
        holder = Subject(cloud=Cloud.AWS, name=one.issuer, origin=(found or one).origin)
        if found is None:
            yield _finding(
                holder,
                f"tokens of {one.issuer} are planned to be believed, and are not",
                level=Level.MEDIUM,
                fix="apply the plan",
            )
        elif extra := sorted(set(found.audiences) - set(one.audiences)):
            message = f"tokens of {one.issuer} for {', '.join(extra)} are believed and not planned"
            yield _finding(holder, message, level=Level.HIGH, fix="remove the audience there, or take it into the plan")


def _issuer(provider: Provider) -> str:
    return provider.issuer.removeprefix("https://").rstrip("/")


def _machines(planned: Audited, live: Audited) -> Iterator[Finding]:
    """Templates and machines of the plans' jobs that give credentials away more easily than planned."""
    wanted: defaultdict[str, list[Machine]] = defaultdict(list)
    for machine in planned.machines:
        wanted[machine.job].append(machine)
    for machine in live.machines:
        asked = [m for m in wanted.get(machine.job, []) if m.tokens_required is not None]
        holder = Subject(cloud=Cloud.AWS, name=f"machine of {machine.job}", origin=machine.origin)
        if asked and machine.tokens_required is False and all(m.tokens_required for m in asked):
            yield _finding(
                holder, "IMDSv1 is answered, which is not planned", level=Level.HIGH, fix="require tokens again"
            )
        limits = [m.hop_limit for m in asked if m.hop_limit is not None]
        if limits and machine.hop_limit is not None and machine.hop_limit > max(limits):
            message = f"the metadata service answers over {machine.hop_limit} hops, planned are {max(limits)}"
            yield _finding(holder, message, level=Level.HIGH, fix="set the hop limit back")


def _finding(subject: Subject, message: str, *, level: Level, fix: str, grant: str = "", evidence: str = "") -> Finding:
    return Finding(
        rule=_RULE,
        level=level,
        cloud=Cloud.AWS.value,
        identity=label(subject),
        origin=subject.origin,
        message=message,
        grant=grant,
        evidence=evidence,
        fix=fix,
    )
