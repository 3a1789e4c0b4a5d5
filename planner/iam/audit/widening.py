"""What a change grants beyond its base: rule 605, the one a reviewer reads first.

A subject is held against the same subject of the base: by name (and origin, where several have it), else, of skyplan's own identities, by identity and
job, so that a job that moves to another region is not all new.  A right that no right of that base takes in is a finding; so is a boundary or a Deny that
is gone, a wider trust, and a provider or a public member that was not there.  What the base had and the change has not is no finding.
Says nothing of what both have: that is the other rules'.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from planner.iam.audit.covers import covers_permit, covers_provider, overlaps
from planner.iam.audit.find import Held, of_right, of_statement, of_subject, who
from planner.iam.audit.gathered import told
from planner.iam.audit.grown import Ground, gone, grown, listed
from planner.iam.audit.grown_roles import assignment_growth, binding_growth
from planner.iam.audit.lines import compact, written
from planner.iam.audit.registry import Rule
from planner.model.finding import Finding, Level
from planner.model.offer import Cloud
from planner.model.policy import Audited, AwsPolicy, Permit, PolicyKind, Provider, Statement, Subject

_CAPS = (PolicyKind.BOUNDARY, PolicyKind.SESSION)
#: an origin that makes the subject, not one that only gives it a right
_MADE = re.compile(r"(?:^|[ .])(aws_iam_(?:role|user|group))\.")
_WITH_VARIABLES = "2012-10-17"


def widening(base: Audited, new: Audited) -> tuple[Finding, ...]:
    """All that `new` grants and `base` does not, worst first, each once."""
    found = {replace(one, rule=_RULE.id, level=_RULE.level) for one in _all(base, new)}
    return tuple(sorted(found, key=Finding.sort_key))


def _all(base: Audited, new: Audited) -> Iterator[Finding]:
    here = {(subject.cloud, subject.name) for subject in new.subjects}
    standing = {subject.origin for subject in new.subjects}
    for subject in new.subjects:
        before = _before(base, subject, here, standing)
        if before:
            yield from _changed(before, subject)
        else:
            yield from _fresh(subject)
    yield from _stores(base, new)
    yield from _public(base, new)
    yield from _providers(base.providers, new.providers)


def _another(before: Subject, subject: Subject, standing: set[str]) -> bool:
    """Of one name and yet not one: a role and a user, or two that stand side by side (in another account, say).  Rights that are given to whoever is
    made elsewhere are that one's, wherever they are written.
    """
    left, right = _MADE.search(before.origin), _MADE.search(subject.origin)
    return left is not None and right is not None and (left[1] != right[1] or before.origin in standing)


def _before(base: Audited, subject: Subject, here: set[tuple[Cloud, str]], standing: set[str]) -> tuple[Subject, ...]:
    """The same subject in the base; several where the base knows it from several places."""
    named = [one for one in base.subjects if (one.cloud, one.name) == (subject.cloud, subject.name)]
    if named:
        same = [one for one in named if one.origin == subject.origin]
        return tuple(same or [one for one in named if not _another(one, subject, standing)])
    if subject.identity is None:
        return ()
    key = (subject.cloud, subject.identity, subject.job)
    return tuple(
        one for one in base.subjects if (one.cloud, one.identity, one.job) == key and (one.cloud, one.name) not in here
    )


def _fresh(subject: Subject) -> Iterator[Finding]:
    """A new subject: one finding a grant.  That a service may be a new role (a machine's) is no grant; that somebody may, is."""
    lead = f"new identity {who(subject)}: "
    for one in _changed((replace(subject, policies=(), bindings=(), assignments=(), permits=()),), subject):
        yield replace(one, message=f"{lead}{one.message}")


def _changed(before: tuple[Subject, ...], subject: Subject) -> Iterator[Finding]:
    held = {key for one in before for key in one.keys}
    for key in subject.keys:
        if key not in held:
            yield of_subject(subject, f"adds the long-lived {key}", grant=key, fix=f"drop {key}, or have it reviewed")
    yield from _rights(before, subject)
    for kind in _CAPS:
        yield from _caps(before, subject, kind)
    for kind in (PolicyKind.TRUST, PolicyKind.RESOURCE):
        base, new = _ground(before, (kind,), (kind,)), _ground((subject,), (kind,), (kind,))
        fresh = not any(one.of_kind(kind) for one in before)
        kept = [one for one in _allows(subject.of_kind(kind)) if not (fresh and _only_services(one[1]))]
        yield from told(subject, ((held, one) for held in kept for one in grown(_plain(*held), base, new)))
    yield from _other_clouds(before, subject)


def _only_services(statement: Statement) -> bool:
    return bool(statement.principals) and all(kind == "Service" for kind, _ in statement.principals)


def _ground(subjects: Iterable[Subject], allows: tuple[PolicyKind, ...], denies: tuple[PolicyKind, ...]) -> Ground:
    policies = [policy for subject in subjects for policy in subject.policies]
    return Ground(
        allows=tuple(_plain(p, s) for p in policies if p.kind in allows for s in p.statements if s.effect == "Allow"),
        denies=tuple(_plain(p, s) for p in policies if p.kind in denies for s in p.statements if s.effect == "Deny"),
    )


def _plain(policy: AwsPolicy, statement: Statement) -> Statement:
    """As the version of the language with variables says it: in the older one `${…}` is text."""
    if policy.version == _WITH_VARIABLES or "${" not in str(statement):
        return statement

    def said(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(re.sub(r"\$\{(?=[A-Za-z0-9-]+:|[*?$]\})", "${$}{", text) for text in texts)

    return replace(
        statement,
        resources=said(statement.resources),
        not_resources=said(statement.not_resources),
        tests=tuple(replace(test, values=said(test.values)) for test in statement.tests),
    )


def _allows(policies: Iterable[AwsPolicy]) -> Iterator[Held]:
    return ((policy, s) for policy in policies for s in policy.statements if s.effect == "Allow")


def _rights(before: tuple[Subject, ...], subject: Subject) -> Iterator[Finding]:
    """What the identity's own policies give, as far as no boundary, session or Deny of the new ones takes it away."""
    limits = (PolicyKind.IDENTITY, *_CAPS)
    base = _ground(before, (PolicyKind.IDENTITY,), limits)
    new = _ground((subject,), (PolicyKind.IDENTITY,), limits)
    # one that is only named, and not read, may let everything through
    caps = [
        [s for s in policy.statements if s.effect == "Allow"]
        for kind in _CAPS
        for policy in subject.of_kind(kind)
        if policy.statements
    ]
    held = {policy.name for one in before for policy in one.of_kind(PolicyKind.IDENTITY)}
    for policy in subject.of_kind(PolicyKind.IDENTITY):
        if not policy.statements and policy.name not in held:
            yield of_subject(
                subject,
                f"adds the policy {policy.name}, whose statements are not in what is audited",
                grant=policy.name,
                evidence=policy.name,
                fix=f"drop {policy.name}, or have it reviewed",
                location=policy.location or subject.location,
            )
    own = ((one, _inside(one[1], caps)) for one in _allows(subject.of_kind(PolicyKind.IDENTITY)))
    yield from told(
        subject, ((one, g) for one, inside in own if inside for g in grown(_plain(one[0], inside), base, new))
    )


def _inside(statement: Statement, caps: list[list[Statement]]) -> Statement | None:
    """The statement without the actions that a boundary shuts out whole; None where nothing is left."""
    if not caps or not statement.actions:
        return statement
    left = tuple(
        action
        for action in statement.actions
        if all(any(overlaps(cap, replace(statement, actions=(action,))) for cap in allows) for allows in caps)
    )
    return replace(statement, actions=left) if left else None


def _caps(before: tuple[Subject, ...], subject: Subject, kind: PolicyKind) -> Iterator[Finding]:
    """Each boundary of the base must still hold: one of the new ones gives no more than it."""
    word = "permissions boundary" if kind is PolicyKind.BOUNDARY else "session policy"
    own = subject.of_kind(kind)
    limits = (PolicyKind.IDENTITY, *_CAPS)
    denies = _ground((subject,), (), limits).denies
    for cap in dict.fromkeys(policy for one in before for policy in one.of_kind(kind)):
        if not own:
            yield of_subject(
                subject,
                f"the {word} {cap.name} of the base is gone",
                grant=cap.name,
                evidence="\n".join(compact(statement) for statement in cap.statements),
                fix=f"attach {cap.name} again",
            )
            continue
        if any(policy.name == cap.name and not policy.statements for policy in own):
            continue  # the same one still, read or not
        if not cap.statements or not any(policy.statements for policy in own):
            now = listed([policy.name for policy in own])
            yield of_subject(
                subject,
                f"the {word} {cap.name} of the base became {now}, and what one of them lets through is not in what is audited",
                grant=cap.name,
                evidence=now,
                fix=f"attach {cap.name} again, or have {now} reviewed",
            )
            continue
        base = Ground(
            allows=tuple(_plain(cap, s) for s in cap.statements if s.effect == "Allow"),
            denies=tuple(_plain(cap, s) for s in cap.statements if s.effect == "Deny"),
        )
        read = [policy for policy in own if policy.statements]
        ways = [_within(subject, policy, base, denies, word) for policy in read]
        if all(ways):
            same = [found for policy, found in zip(read, ways, strict=True) if policy.name == cap.name]
            yield from (same or ways)[0]


def _within(
    subject: Subject, policy: AwsPolicy, base: Ground, denies: tuple[Statement, ...], word: str
) -> list[Finding]:
    new = Ground(allows=(), denies=denies)
    return [
        replace(one, message=f"the {word} lets more through: {one.message}")
        for one in told(subject, ((held, g) for held in _allows((policy,)) for g in grown(_plain(*held), base, new)))
    ]


def _other_clouds(before: tuple[Subject, ...], subject: Subject) -> Iterator[Finding]:
    bindings = [one for subject in before for one in subject.bindings]
    for binding in subject.bindings:
        # a subject that was matched is one and the same, whatever its account is called now
        held = [replace(one, member=binding.member) for one in bindings]
        for growth in binding_growth(binding, held):
            yield of_right(subject, binding, growth.message, action=growth.action, fix=growth.fix)
    assignments = [one for subject in before for one in subject.assignments]
    for assignment in subject.assignments:
        for growth in assignment_growth(assignment, assignments):
            yield of_right(subject, assignment, growth.message, action=growth.action, fix=growth.fix)
    permits = [one for subject in before for one in subject.permits]
    for permit in subject.permits:
        if not any(covers_permit(have, permit) for have in permits):
            yield of_right(subject, permit, _permit(permit, permits), fix=f"drop it, or review it:\n{written(permit)}")


def _permit(permit: Permit, held: list[Permit]) -> str:
    paths = f", paths {listed(permit.paths)}" if permit.paths else ""
    same = [one for one in held if (one.role, one.on) == (permit.role, permit.on)]
    if permit.anonymous and not any(one.anonymous for one in held):
        return f"adds {permit.role} on {permit.on}{paths} for everybody"
    if same:
        before = listed(tuple(path for one in same for path in one.paths))
        return f"{permit.role} on {permit.on} now reaches {listed(permit.paths) or 'all of it'}; the base stops at {before}"
    return f"adds {permit.role} on {permit.on}{paths}"


def _stores(base: Audited, new: Audited) -> Iterator[Finding]:
    """Policies of buckets and keys: what they allow, and what they no longer refuse."""
    names = dict.fromkeys(name for name, _ in (*base.stores, *new.stores))
    for name in names:
        was, now = _of_store(base, name), _of_store(new, name)
        holder = _holder(new if now else base, name)
        kinds = (PolicyKind.RESOURCE,)
        before, after = (_ground((replace(holder, policies=p),), kinds, kinds) for p in (was, now))
        yield from told(holder, ((held, g) for held in _allows(now) for g in grown(_plain(*held), before, after)))
        for policy in was:
            for deny in gone(before, after):
                if deny in policy.statements:
                    message = f"the Deny {deny.sid or 'without a Sid'} of {name} is gone or narrower"
                    yield of_statement(
                        holder, (policy, deny), message, resource=name, fix=f"put back:\n{written(deny)}"
                    )


def _of_store(audited: Audited, name: str) -> tuple[AwsPolicy, ...]:
    return tuple(replace(policy, kind=PolicyKind.RESOURCE) for one, policy in audited.stores if one == name)


def _holder(audited: Audited, name: str) -> Subject:
    location = next((policy.location for one, policy in audited.stores if one == name), None)
    return Subject(cloud=Cloud.AWS, name=name, origin=name, location=location)


def _public(base: Audited, new: Audited) -> Iterator[Finding]:
    for binding in new.public:
        holder = Subject(cloud=Cloud.GCP, name=binding.member, origin=binding.on, location=binding.location)
        held = [one for one in base.public if one.member in {binding.member, "allUsers"}]
        for growth in binding_growth(binding, [replace(one, member=binding.member) for one in held]):
            yield of_right(holder, binding, growth.message, action=growth.action, fix=growth.fix)


def _providers(base: tuple[Provider, ...], new: tuple[Provider, ...]) -> Iterator[Finding]:
    standing = {one.origin for one in new}
    for provider in new:
        # what a pool lets in says nothing of another pool, whose members may do other things
        mine = [have for have in base if have.cloud is provider.cloud and have.origin == provider.origin]
        gone_since = [have for have in base if have.cloud is provider.cloud and have.origin not in standing]
        if any(covers_provider(have, provider) for have in mine or gone_since):
            continue
        holder = Subject(cloud=provider.cloud, name=provider.issuer, origin=provider.origin, location=provider.location)
        same = next((one for one in base if (one.origin, one.issuer) == (provider.origin, provider.issuer)), None)
        audience = listed(provider.audiences) or "any audience"
        if same is None:
            when = f" where {provider.condition}" if provider.condition else " without a condition"
            message = f"tokens of {provider.issuer} for {audience} are now believed{when}"
            fix = "drop the provider, or review it"
        else:
            message = (
                f"more tokens of {provider.issuer} are believed: {audience}, condition `{provider.condition or 'none'}`;"
                f" the base has {listed(same.audiences) or 'any audience'}, condition `{same.condition or 'none'}`"
            )
            fix = f"put back the condition `{same.condition}` and the audiences {', '.join(same.audiences)}"
        yield of_subject(holder, message, grant=provider.issuer, evidence=provider.condition, fix=fix)


def _needs_a_base(audited: Audited) -> Iterator[Finding]:
    """Without a base there is no widening: `widening` has both."""
    del audited
    return iter(())


_RULE = Rule(
    id="SKY-IAM-605",
    level=Level.HIGH,
    why=(
        "A grant that grows in a pull request is a grant that nobody decided on: one more action, a prefix cut short, or a condition left out reads like "
        "any other line of a diff. Reported is what the base, by action, resource, principal and condition, cannot be proved to give already; a boundary "
        "or a Deny that is gone counts too. What only shrinks is not reported."
    ),
    fix="Take the change back to what the base grants, or have the platform team review it.",
    maps=("Access Analyzer CheckNoNewAccess",),
    check=_needs_a_base,
    clouds=(
        "AWS: statements of every kind of policy. GCP: permissions, resource and condition of bindings. Azure: actions, scope and condition of "
        "assignments. Nebius: role, resource and paths of permits. Federation: issuer, audience and condition of providers."
    ),
)
RULES = (_RULE,)
