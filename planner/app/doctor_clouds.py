"""The clouds, as the caller: whose credentials these are, what they may read, the clock, the store of states, and whether quotas hold what the jobs need.

Decides what an answer means for skyplan.yaml's targets.  Asks through `planner.clouds.checkup` and the feeds' quota readers alone; neither can change anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from planner.app import refresh
from planner.app.doctor import Row, State, fail, from_error, ok, skipped, warn
from planner.clouds.port import Where
from planner.model.errors import CloudError, MissingPart, PermissionDenied
from stacks.naming import state_key

if TYPE_CHECKING:
    from planner.clouds.checkup.port import Caller, Checkup, Checkups, Right, Seen
    from planner.clouds.feeds.port import Feeds, Wanted
    from planner.model.market import Market
    from planner.model.offer import InstanceType
    from planner.model.plan import Placement, PlacementPlan
    from planner.model.project import Project, Target
    from planner.model.readings import QuotaReading

WARN_SKEW_SECONDS: Final = 60.0
"""From here on readings count as of the future (`planner.clouds.feeds.gathering.SKEW`)."""
FAIL_SKEW_SECONDS: Final = 300.0
"""AWS refuses what was signed too far off: its pages name five minutes for most services, fifteen for some (SQS developer guide); the narrower counts, from memory of the IAM user guide."""
RANKED: Final = 5
"""Places of each job whose quotas are looked at: those that `apply` would try first."""
CLOUD_OF_BACKEND: Final = {"s3": "aws", "gcs": "gcp", "azurerm": "azure"}
SIGN_IN: Final = {
    "aws": "aws sso login, or export AWS_PROFILE=…",
    "gcp": "gcloud auth application-default login",
    "azure": "az login",
    "nebius": "nebius profile create, or export NEBIUS_IAM_TOKEN=…",
}
#: where the rights of the feeds come from: the foundation's planner has them
_GRANT: Final = "skyplan foundation --cloud {cloud} makes a planner that may"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One target and what may be asked of it; `wanted` is of the regions and types that jobs would use, else of one."""

    target: Target
    wanted: Wanted

    @property
    def name(self) -> str:
        """`aws:prod`."""
        return f"{self.target.cloud.value}:{self.target.name}"

    @property
    def where(self) -> Where:
        """As the caller."""
        return Where(
            cloud=self.target.cloud.value,
            target=self.target.name,
            region=self.wanted.regions[0],
            account=self.target.account,
            resource_group=self.target.resource_group or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one place of a job takes of its account; `first`: it is the job's best."""

    job: str
    region: str
    instance_type: str
    capacity: str
    nodes: int
    first: bool


def accounts(
    project: Project,
    market: Market,
    needs: Mapping[str, Sequence[Need]],
    *,
    clouds: Sequence[str],
    now: datetime,
    prefer: str = "",
) -> tuple[Account, ...]:
    """Every target of those clouds that something is sold to; the regions that jobs need first, then one that `prefer` names, then any one."""
    found: list[Account] = []
    asked = refresh.Asked(clouds=tuple(clouds), kinds=("quotas",), now=now)
    for of_cloud in refresh.accounts(asked, project, market).values():
        for one in of_cloud:
            name = f"{one.target.cloud.value}:{one.target.name}"
            needed = list(dict.fromkeys(n.region for n in needs.get(name, ()) if n.region in one.wanted.regions))
            usual = [r for r in (prefer, *one.wanted.regions) if r in one.wanted.regions][:1]
            regions = tuple(needed or usual)
            types = {
                r: tuple(sorted({n.instance_type for n in needs.get(name, ()) if n.region == r}))
                or one.wanted.instance_types[r][:1]
                for r in regions
            }
            found.append(Account(target=one.target, wanted=replace(one.wanted, regions=regions, instance_types=types)))
    return tuple(found)


def needs_of(plans: Sequence[PlacementPlan]) -> dict[str, list[Need]]:
    """By target, what each job's first places take."""
    out: dict[str, list[Need]] = {}
    for plan in plans:
        for placement in plan.ranked[:RANKED]:
            for piece in placement.pieces:
                if piece.reservation:
                    continue
                out.setdefault(f"{piece.cloud}:{piece.target}", []).append(_need(plan.name, placement, piece))
    return out


def _need(job: str, whole: Placement, piece: Placement) -> Need:
    return Need(
        job=job,
        region=piece.region,
        instance_type=piece.instance_type,
        capacity=piece.capacity,
        nodes=piece.nodes,
        first=whole.rank <= 1,
    )


def credentials(account: Account, checkups: Checkups, *, certain: bool) -> list[Row]:
    """Who asks, whether that is the target's account, what it may read, and the clock.  `certain`: skyplan.yaml names the target, so it must work."""
    name = f"credentials {account.name}"
    try:
        checkup = checkups.checkup(account.where)
    except MissingPart as error:
        return [from_error(name, error, _install(account.where.cloud), State.WARN if certain else State.SKIPPED)]
    except CloudError as error:
        return [_refused(name, error, account, certain=certain)]
    try:
        seen = checkup.caller()
        rows = [_clock(account, seen)]
        if seen.caller is None:
            wrong = rows[0].state is State.FAIL
            error = seen.error or CloudError([])
            row = _refused(name, error, account, certain=certain)
            return [replace(row, mend=rows[0].mend) if wrong else row, *rows]
        region, (instance_type, *_) = account.where.region, account.wanted.instance_types[account.where.region]
        rights = checkup.rights(region, instance_type)
        return [_whose(account, seen.caller), _rights(account, rights), *rows]
    finally:
        checkup.close()


def backend(project: Project, checkups: Checkups) -> list[Row]:
    """The store of Terraform's states: listed under skyplan's own prefix, nothing read of it."""
    kept = project.backend
    cloud = CLOUD_OF_BACKEND.get(kept.kind)
    if cloud is None:
        return [skipped("backend", "states are files of this folder; CI needs a `backend` in skyplan.yaml")]
    store = " ".join(v for n, v in kept.settings if n in {"bucket", "storage_account_name", "container_name"})
    prefix = state_key(project.name, "")
    prefix = prefix[: prefix.rindex("/") + 1]
    settings = dict(kept.settings)
    region = settings.get("region", "us-east-1")
    where = Where(cloud=cloud, target="backend", region=region, account=_backend_account(project, cloud, settings))
    try:
        checkup = checkups.checkup(where)
    except MissingPart as error:
        return [from_error("backend", error, _install(cloud), State.WARN)]
    except CloudError as error:
        return [from_error("backend", error, SIGN_IN[cloud])]
    try:
        return [_listed(checkup, project, store, prefix)]
    finally:
        checkup.close()


def _install(cloud: str) -> str:
    """As the row `extras` says it, so that both are one line of --fix-hints."""
    return f"pip install 'CHECKOUT_OF_SKYPLAN[{cloud}]'"


def _listed(checkup: Checkup, project: Project, store: str, prefix: str) -> Row:
    kept = project.backend
    try:
        checkup.backend(kept, prefix)
    except PermissionDenied as error:
        if kept.kind == "azurerm" and dict(kept.settings).get("use_azuread_auth") != "true":
            fact = f"{store} cannot be listed as this caller; Terraform would use a key of the account"
            return warn("backend", fact, "add `use_azuread_auth: true` to the backend", "SKY-APPLY-317")
        return from_error("backend", error, f"let this caller list and write {prefix} in {store}")
    except CloudError as error:
        return from_error("backend", error, f"make {store}, or correct `backend` in skyplan.yaml")
    return ok("backend", f"{kept.kind} {store}: {prefix} can be listed")


def quotas(account: Account, needs: Sequence[Need], feeds: Feeds, market: Market, *, certain: bool) -> list[Row]:
    """What the account may have, held against what each job's first places take."""
    name = f"quotas {account.name}"
    if not needs:
        return [skipped(name, "no job would go there first")]
    try:
        told = list(feeds.feed(account.where).quotas(account.wanted))
    except MissingPart as error:
        return [from_error(name, error, _install(account.where.cloud), State.WARN if certain else State.SKIPPED)]
    except CloudError as error:
        return [_refused(name, error, account, certain=certain)]
    readings = [reading for fed in told for reading in fed.quotas]
    if not readings:
        failed = [w for fed in told for w in fed.warnings]
        if failed:
            return [warn(name, failed[0].summary, failed[0].hint, failed[0].code)]
        return [warn(name, "no quota is told for what the jobs need", _ask_for(account, "", 0, ""))]
    return _judged(account, needs, readings, {t.name: t for t in market.types if t.cloud is account.target.cloud})


def _judged(
    account: Account, needs: Sequence[Need], readings: Sequence[QuotaReading], types: Mapping[str, InstanceType]
) -> list[Row]:
    """A job whose best place is too large fails it, unless another of its first places is not."""
    name = f"quotas {account.name}"
    short: dict[str, list[tuple[Need, QuotaReading, float]]] = {}
    held: set[str] = set()
    unknown = 0
    for need in needs:
        found = [q for q in readings if _of(q, need)]
        lacking = [(q, size) for q in found if (size := _size(need, q, types)) > q.limit - (q.used or 0.0)]
        if lacking:
            quota, size = lacking[0]
            short.setdefault(need.job, []).append((need, quota, size))
        elif found:
            held.add(need.job)
        else:
            unknown += 1
    rows: list[Row] = []
    for job, lacks in sorted(short.items()):
        need, quota, size = next((row for row in lacks if row[0].first), lacks[0])
        used = f", {quota.used:g} in use" if quota.used else ""
        fact = f"{need.region}: `{quota.name}` is {quota.limit:g} {quota.unit}{used}; {job} needs {size:g} for {need.nodes} x {need.instance_type} {need.capacity.replace('_', '-')}"
        mend = _ask_for(account, quota.name, int((quota.used or 0) + size), need.region)
        if need.first and job not in held:
            rows.append(fail(name, fact, mend, "SKY-APPLY-309"))
        else:
            rows.append(warn(name, f"{fact} (another of its first places has room)", mend, "SKY-APPLY-309"))
    if rows:
        return rows
    missing = f"; of {unknown} no quota is told" if unknown else ""
    return [ok(name, f"room for {len(needs) - unknown} of {len(needs)} places that jobs would take first{missing}")]


def _of(quota: QuotaReading, need: Need) -> bool:
    return (
        quota.region == need.region and need.instance_type in quota.instance_types and quota.capacity == need.capacity
    )


def _size(need: Need, quota: QuotaReading, types: Mapping[str, InstanceType]) -> float:
    kind = types[need.instance_type]
    return float(need.nodes * (kind.gpu_count if quota.unit == "gpus" else kind.vcpus))


def _ask_for(account: Account, quota: str, size: int, region: str) -> str:
    match account.target.cloud.value:
        case "aws" if quota:
            return f"aws service-quotas request-service-quota-increase --service-code ec2 --quota-code {quota} --desired-value {size} --region {region}"
        case "gcp":
            return f"ask for {quota or 'quotas'} in IAM & Admin > Quotas of the project"
        case "azure":
            return f"ask for {quota or 'quotas'} in Subscription > Usage + quotas"
        case _:
            return f"ask the cloud for {quota or 'quotas'}"


def _clock(account: Account, seen: Seen) -> Row:
    name = f"clock {account.name}"
    skew = seen.skew_seconds
    if skew is None:
        return skipped(name, "no answer of that cloud said the time")
    way = "ahead of" if skew > 0 else "behind"
    fact = f"this machine is {abs(skew):.0f} s {way} {account.target.cloud.value}'s"
    if abs(skew) >= FAIL_SKEW_SECONDS:
        return fail(name, fact, "sudo timedatectl set-ntp true", "SKY-APPLY-348")
    if abs(skew) > WARN_SKEW_SECONDS:
        return warn(name, fact, "sudo timedatectl set-ntp true", "SKY-APPLY-348")
    return ok(name, fact if abs(skew) >= 1 else f"this machine and {account.target.cloud.value} have the same time")


def _whose(account: Account, caller: Caller) -> Row:
    name, target = f"credentials {account.name}", account.target
    if target.account and caller.account and caller.account != target.account:
        fact = f"{caller.who} is of {caller.account}, the target is {target.account}"
        role = target.deployer_role or target.orchestrator_role
        if role:
            return warn(
                name,
                f"{fact}; its roles are taken on from there",
                "see who may become them: skyplan audit --explain deployer",
            )
        return fail(name, fact, SIGN_IN[target.cloud.value], "SKY-APPLY-347")
    return ok(name, f"{caller.who}{_as(target, caller)}")


def _as(target: Target, caller: Caller) -> str:
    """Which of the target's identities it is."""
    for word, role in (("deployer", target.deployer_role), ("orchestrator", target.orchestrator_role)):
        if role and _same(role, caller.who):
            return f" (the target's {word})"
    return f" of {caller.account}" if caller.account and caller.account not in caller.who else ""


def _same(role: str, who: str) -> bool:
    """An AWS role that is taken on loses its path: `assumed-role/NAME/SESSION`."""
    if ":assumed-role/" in who:
        return (
            who.partition(":assumed-role/")[2].split("/")[0] == role.rpartition("/")[2]
            and role.split(":")[4] == who.split(":")[4]
        )
    return role == who


def _rights(account: Account, rights: Sequence[Right]) -> Row:
    name = f"rights {account.name}"
    refused = [right for right in rights if isinstance(right.error, PermissionDenied)]
    silent = [right for right in rights if right.error is not None and right not in refused]
    if refused:
        fact = f"may not call {', '.join(r.operation for r in refused)}: prices, capacity or quotas stay unknown"
        return warn(name, fact, _GRANT.format(cloud=account.target.cloud.value), "SKY-APPLY-317")
    if silent and silent[0].error is not None:
        return replace(from_error(name, silent[0].error), state=State.WARN)
    return ok(name, f"may read prices, capacity and quotas ({len(rights)} calls)")


def _refused(name: str, error: CloudError, account: Account, *, certain: bool) -> Row:
    """Of a target that nobody named, credentials that are absent are no fault."""
    state = State.FAIL if certain else State.SKIPPED
    mend = (
        SIGN_IN[account.target.cloud.value]
        if isinstance(error, PermissionDenied)
        else "skyplan doctor, once it answers again"
    )
    row = from_error(name, error, mend, state)
    return row if certain else replace(row, mend="")


def _backend_account(project: Project, cloud: str, settings: Mapping[str, str]) -> str | None:
    """Google's and Azure's adapters want to know whose; any target's account will do to sign."""
    if cloud == "azure" and "subscription_id" in settings:
        return settings["subscription_id"]
    return next((t.account for t in project.targets if t.cloud.value == cloud and t.account), None) or (
        "states" if cloud == "gcp" else None
    )
