"""From skyplan.yaml to the foundation stack of one account: scope, identities, who may become them.

Decides what a target's settings mean for the scope, says everything that is missing at once, and writes the stack beside what is there: a folder of it may
hold its state, so nothing is ever removed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.app.compose import DEFAULT_PROVIDER_VERSIONS
from planner.app.files import write_whole
from planner.iam.aws import literal
from planner.model.control import ControlScope
from planner.model.diagnostic import Diagnostic, ordered
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.stack import CiEntry, CiFederation, ControlIdentity, FoundationInput, PolicyDocument
from planner.spec.patterns import matches
from planner.spec.targets import ACCOUNT_WORD

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.project import CiSettings, Project, Target

#: the `aud` that a cloud's own CI guides ask for (2026-11); Google's is the provider's own name, which only Google makes up, so a word of ours
AUDIENCES = {
    Cloud.AWS: "sts.amazonaws.com",
    Cloud.GCP: "skyplan",
    Cloud.AZURE: "api://AzureADTokenExchange",
    Cloud.NEBIUS: "skyplan",
}
#: backend whose store lies in the cloud -> settings that name the place
_STORES = {Cloud.AWS: ("s3", ("bucket",)), Cloud.GCP: ("gcs", ("bucket",)), Cloud.AZURE: ("azurerm", ("storage_account_name", "container_name"))}  # fmt: skip
#: clouds whose rights on data can be kept to the project's own prefixes
_SCHEMES = {Cloud.AWS: "s3://", Cloud.AZURE: "az://"}
_DEPLOYING = (Identity.DEPLOYER, Identity.ORCHESTRATOR)


def foundation_name(target: Target) -> str:
    """`fnd-CLOUD-TARGET`."""
    return f"fnd-{target.cloud.value}-{target.name}"


def foundation_input(project: Project, market: Market, cloud: Cloud, name: str | None) -> FoundationInput:
    """The foundation of one target.  Raises InputError with all that is missing."""
    target = _target(project, cloud, name)
    problems = list(_problems(project, target, market))
    regions = _regions(project, target, market)
    scope = scope_of(project, target, market)
    identities: tuple[ControlIdentity, ...] = ()
    boundaries: tuple[PolicyDocument, ...] = ()
    try:
        identities, boundaries = _rendered(scope)
    except InputError as error:
        problems += error.diagnostics
    except ValueError as error:
        hint = "allow fewer `regions` or `instance_types`, or write the types as globs"
        problems.append(
            Diagnostic(code="SKY-SPEC-105", summary=f"the rights are too long for {cloud.value}: {error}", hint=hint)
        )
    if problems:
        raise InputError(ordered(problems))
    return FoundationInput(
        name=foundation_name(target),
        project=project.name,
        cloud=cloud,
        target=target.name,
        region=regions[0],
        account=target.account,
        role_arn=None,
        backend=project.backend,
        provider_version=dict(project.provider_versions).get(cloud.value, DEFAULT_PROVIDER_VERSIONS[cloud]),
        tags=(("skyplan:project", project.name), ("skyplan:managed", "true"), *project.tags),
        resource_group=target.resource_group,
        tenant=target.tenant,
        identities=tuple(_trusting(one, project, target) for one in identities),
        boundaries=boundaries,
        ci=_federation(project.ci, target),
        entry=_entry(project.ci, scope),
    )


def left_out(given: FoundationInput) -> tuple[tuple[Identity, str], ...]:
    """The identities that the stack does not make, and why: on AWS a role has to trust somebody."""
    if given.cloud is not Cloud.AWS:
        return ()
    opened = given.entry.opens if given.entry else ()
    why = "nobody may become it: name who may in `foundation.trusted.{}` of the target"
    return tuple(
        (one.identity, why.format(one.identity.value))
        for one in given.identities
        if not (one.trusted or (given.ci and one.subjects) or one.identity in opened)
    )


def write(given: FoundationInput, folder: Path) -> Path:
    """`FOLDER/NAME/cdk.tf.json`; what else is in the folder stays.  Raises MissingPart without a CDK or Node."""
    from stacks.app import document  # noqa: PLC0415 - starts node

    path = folder / given.name / "cdk.tf.json"
    write_whole(path, pretty(document(given)))
    return path


def how_to_apply(given: FoundationInput, path: Path) -> tuple[str, ...]:
    """The commands by which an administrator applies it, the state in the project's own backend."""
    from stacks.naming import state_key  # noqa: PLC0415 - rarely needed
    from stacks.runner import backend_config  # noqa: PLC0415

    place: tuple[tuple[str, str], ...] = ()
    if given.backend.kind != "local":
        place = backend_config(given.backend, state_key(given.project, given.name), root=Path())
    flags = "".join(f" {shlex.quote(f'-backend-config={name}={value}')}" for name, value in place)
    terraform = f"terraform -chdir={shlex.quote(str(path.parent))}"
    commands = (f"{terraform} init{flags}", f"{terraform} apply", f"{terraform} output -raw skyplan_yaml")
    return (*commands, f"{terraform} output ci") if ci_lines(given) else commands


def ci_lines(given: FoundationInput) -> tuple[str, ...]:
    """What CI's configuration names, as far as it is known before the stack stands; () where no CI comes in."""
    if given.ci is None or given.cloud is Cloud.NEBIUS:
        return ()
    branch = f"jobs of `{given.ci.branch}`" if given.ci.branch else "jobs of the protected branch"
    match given.cloud:
        case Cloud.AWS:
            entry = given.entry.arn if given.entry else ""
            planner = next(one.name for one in given.identities if one.identity is Identity.PLANNER)
            return (
                f"{branch}: role-to-assume: {entry}",
                f"pull requests: role-to-assume: {entry.rpartition('/')[0]}/{planner}",
            )
        case Cloud.GCP:
            return (
                f"all jobs: workload_identity_provider: see the output `ci`; audience: {given.ci.audience}; no service_account",
            )
        case _:
            return ("all jobs: ARM_USE_OIDC=true, ARM_TENANT_ID; identities come from skyplan.yaml",)


def scope_of(project: Project, target: Target, market: Market) -> ControlScope:
    """Within what the control identities of this target may act: what the project file allows, and nothing that it does not."""
    cloud, settings = target.cloud, target.foundation
    regions = _regions(project, target, market)
    aws = cloud is Cloud.AWS
    keys = {literal(key) for key, _ in project.tags} | set(settings.tag_keys if settings else ())
    return ControlScope(
        cloud=cloud,
        project=project.name,
        target=target.name,
        account=target.account or "",
        regions=regions,
        instance_types=_types(project, market, cloud),
        state=_state(project, cloud),
        kms_key=target.kms_key_arn or "",
        resource_group=target.resource_group or "",
        tenant=target.tenant or "",
        partition=_partition(regions),
        tag_keys=tuple(sorted(keys)) if aws else (),
        own=tuple(sorted(set(_own(project, target)))) if aws else (),
        state_account=settings.state_account if settings else "",
        data_prefixes=tuple(sorted(uri for uri in project.data_prefixes if uri.startswith(_SCHEMES.get(cloud, "-")))),
    )


def _target(project: Project, cloud: Cloud, name: str | None) -> Target:
    """The one that is meant.  Raises InputError."""
    mine = [target for target in project.targets if target.cloud is cloud]
    if not mine:
        summary = f"skyplan.yaml has no target on {cloud.value}"
        hint = (
            f"add a target with `cloud: {cloud.value}` and its `{ACCOUNT_WORD[cloud.value]}`: docs/iam.md, Setting up"
        )
        raise InputError([Diagnostic(code="SKY-SPEC-103", summary=summary, hint=hint)])
    found = [target for target in mine if name in {None, target.name}]
    if len(found) == 1:
        return found[0]
    names = ", ".join(target.name for target in mine)
    summary = (
        f"{cloud.value} has no target `{name}`" if name else f"{cloud.value} has {len(mine)} targets, and none is named"
    )
    raise InputError([Diagnostic(code="SKY-SPEC-103", summary=summary, hint=f"--target: {names}")])


def _problems(project: Project, target: Target, market: Market) -> Iterator[Diagnostic]:
    where = f"target {target.name} of {target.cloud.value}"
    word = ACCOUNT_WORD[target.cloud.value]
    if not target.account:
        hint = f"name it in skyplan.yaml: rights are bound to one {word}"
        yield Diagnostic(code="SKY-SPEC-103", summary=f"{where}: `{word}` is missing", hint=hint)
    if not _regions(project, target, market):
        hint = "see `regions` of the target and of `limits`"
        yield Diagnostic(code="SKY-SPEC-105", summary=f"{where}: no region is allowed", hint=hint)
    if target.cloud is Cloud.AWS:
        for identity in (Identity.PLANNER, *_DEPLOYING):
            if not _trusted(target, identity) and not project.ci:
                hint = f"say `foundation.ci`, or `foundation.trusted.{identity.value}` of the target"
                yield Diagnostic(
                    code="SKY-SPEC-103", summary=f"{where}: nobody may become the {identity.value}", hint=hint
                )
    same = [other.name for other in project.targets if other is not target and _one_account(other, target)]
    if same:
        # roles are named by project and cloud, so that a second stack in the account would fail on the first one's
        summary = f"{where}: {', '.join(same)} is the same account; one foundation serves an account"
        hint = "make one target of them, with all their `regions`"
        yield Diagnostic(code="SKY-SPEC-113", summary=summary, hint=hint)


def _one_account(one: Target, other: Target) -> bool:
    """Whether the foundations of both would make identities of the same names."""
    place = ("cloud", "account", "resource_group")
    return one.account is not None and all(getattr(one, word) == getattr(other, word) for word in place)


def _regions(project: Project, target: Target, market: Market) -> tuple[str, ...]:
    allowed = (target.regions or ("*",), project.limits.regions or ("*",))
    names = {region.name for region in market.regions if region.cloud is target.cloud}
    return tuple(sorted(name for name in names if all(matches(patterns, name) for patterns in allowed)))


def _types(project: Project, market: Market, cloud: Cloud) -> tuple[str, ...]:
    """What may be launched: the project's own patterns as far as they mean something in this cloud, else, on AWS, the families of the catalog."""
    names = {kind.name for kind in market.types if kind.cloud is cloud}
    if project.limits.instance_types:
        return tuple(p for p in project.limits.instance_types if any(matches((p,), name) for name in names))
    return tuple(sorted({f"{name.split('.')[0]}.*" for name in names})) if cloud is Cloud.AWS else ()


def _state(project: Project, cloud: Cloud) -> str:
    """Where Terraform's state lies, if in this cloud."""
    kind, names = _STORES.get(cloud, ("", ()))
    settings = dict(project.backend.settings)
    if project.backend.kind != kind or not all(name in settings for name in names):
        return ""
    return "/".join(settings[name] for name in names)


def _partition(regions: tuple[str, ...]) -> str:
    if regions and all(region.startswith("us-gov-") for region in regions):
        return "aws-us-gov"
    return "aws-cn" if regions and all(region.startswith("cn-") for region in regions) else "aws"


def _own(project: Project, target: Target) -> Iterator[str]:
    """The user's own places: jobs may be launched into them, though they carry no tag of ours."""
    for network in target.networks:
        yield f"{network.region}/vpc/{network.vpc_id}"
        yield from (f"{network.region}/subnet/{subnet}" for _, subnet in network.subnets)
        yield from (f"{network.region}/security-group/{group}" for group in network.security_group_ids)
    for held in project.reserved:
        if held.target == target.name:
            yield f"{held.region}/capacity-reservation/{held.id}"


def _rendered(scope: ControlScope) -> tuple[tuple[ControlIdentity, ...], tuple[PolicyDocument, ...]]:
    """Identities and boundaries in the cloud's own shape; only AWS has boundaries."""
    cloud: Any = import_module(f"planner.iam.foundation.{scope.cloud.value}")
    return cloud.identities(scope), (cloud.boundaries(scope) if hasattr(cloud, "boundaries") else ())


def _trusted(target: Target, identity: Identity) -> tuple[str, ...]:
    if target.foundation is None:
        return ()
    return tuple(who for word, who in target.foundation.trusted if word == identity.value)


def _trusting(one: ControlIdentity, project: Project, target: Target) -> ControlIdentity:
    """With who may become it: the named, and the CI's tokens."""
    subjects = ci_subjects(project.ci, one.identity, target.cloud) if project.ci else ()
    return replace(one, trusted=_trusted(target, one.identity), subjects=subjects)


def _entry(ci: CiSettings | None, scope: ControlScope) -> CiEntry | None:
    """AWS: what the protected branch's tokens open."""
    if ci is None or scope.cloud is not Cloud.AWS:
        return None
    from planner.iam.foundation.aws_entry import entry  # noqa: PLC0415 - of one cloud

    return entry(scope, (_claims(ci)[1],))


def ci_subjects(ci: CiSettings, identity: Identity, cloud: Cloud) -> tuple[str, ...]:
    """The `sub` claims that may become an identity: pull requests the planner and nothing else, the protected branch planner, deployer and orchestrator.

    On AWS the protected branch comes in by the entry, so no identity believes its tokens.  A merge request of GitLab runs as its own branch: on AWS any branch
    of the project may plan; elsewhere only the protected one, since those clouds compare subjects whole.
    """
    request, branch = _claims(ci)
    aws = cloud is Cloud.AWS
    if ci.provider == "gitlab" and not aws:
        request = branch
    if identity is Identity.PLANNER:
        return (request,) if aws else tuple(dict.fromkeys((request, branch)))
    return (branch,) if identity in _DEPLOYING and not aws else ()


def _claims(ci: CiSettings) -> tuple[str, str]:
    """`sub` of a pull request's token, which may be a pattern, and of the protected branch's."""
    match ci.provider:
        case "github":
            return f"repo:{ci.repository}:pull_request", f"repo:{ci.repository}:ref:refs/heads/{ci.branch}"
        case "gitlab":
            base = f"project_path:{ci.repository}:ref_type:branch:ref:"
            return f"{base}*", base + ci.branch
        case _:
            return ci.pull_request_subject, ci.branch_subject


def _federation(ci: CiSettings | None, target: Target) -> CiFederation | None:
    if ci is None:
        return None
    return CiFederation(
        issuer=ci.issuer,
        audience=ci.audience or AUDIENCES[target.cloud],
        repository=ci.repository,
        branch=ci.branch,
        provider=target.foundation.ci_provider if target.foundation else "",
    )
