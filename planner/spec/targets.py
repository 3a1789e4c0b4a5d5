"""`targets` of the project file: accounts, roles, own networks, quotas.

Decides whether each is well formed and its names exist.  Asks no cloud whether an account or role is there.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Final

from planner.model.offer import Cloud
from planner.model.project import OwnNetwork, Quota, Target
from planner.spec import units
from planner.spec.constraints import CLOUDS, all_regions, patterns
from planner.spec.federation import UUID
from planner.spec.foundation import account_settings
from planner.spec.near import did_you_mean
from planner.spec.patterns import is_pattern, matches, specific_first
from planner.spec.secret import shown

if TYPE_CHECKING:
    from planner.model.words import Words
    from planner.spec.fields import Fields

#: what each cloud calls the thing a target points at
ACCOUNT_WORD: Final = {"aws": "account", "gcp": "project", "azure": "subscription", "nebius": "project"}
_ACCOUNT: Final = {
    "aws": (r"[0-9]{12}", "12 digits, such as 123456789012"),
    "gcp": (r"[a-z][a-z0-9-]{4,28}[a-z0-9]", "a project id, such as acme-ml-prod"),
    "azure": (UUID, "a subscription id (a UUID)"),
    "nebius": (r"[a-z0-9-]{3,64}", "a project id, such as project-e00example"),
}
_TENANT: Final = {
    "azure": (UUID, "a tenant id (a UUID)"),
    "nebius": (r"tenant-[a-z0-9-]{1,60}", "a tenant id, such as tenant-e00example"),
}
_DISK_KEY: Final = {
    "gcp": (
        r"projects/[^/]+/locations/[^/]+/keyRings/[^/]+/cryptoKeys/[^/]+",
        "a key such as projects/acme/locations/us-central1/keyRings/disks/cryptoKeys/nodes",
    ),
    "azure": (
        r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/diskEncryptionSets/[^/]+",
        "the id of a disk encryption set, /subscriptions/…/diskEncryptionSets/NAME",
    ),
}
#: clouds whose subnets and prices are regional: the zone is written `-`
REGIONAL: Final = ("azure", "nebius")
_RESOURCE_GROUP: Final = r"[A-Za-z0-9_().-]{0,89}[A-Za-z0-9_()-]"
_TARGET: Final = r"[a-z][a-z0-9-]{0,18}[a-z0-9]|[a-z]"
_ARN: Final = r"arn:aws[a-z-]*:{service}:[a-z0-9-]*:[0-9]{{12}}:{kind}.+"
SMALLEST_SUBNET: Final = 32
MAX_NETWORKS: Final = 10_000
CAPACITIES: Final = ("on_demand", "spot")


def targets(project: Fields, words: Words) -> tuple[Target, ...]:
    """The targets in the order written."""
    out: list[Target] = []
    seen: set[tuple[str, str]] = set()
    for f in project.records("targets"):
        found = _target(f, words)
        f.finish()
        if found is None:
            continue
        if (found.cloud.value, found.name) in seen:
            f.report.error(
                f.node.at, "SKY-SPEC-112", f"target `{found.name}` of {found.cloud.value} stands twice", "rename one"
            )
            continue
        seen.add((found.cloud.value, found.name))
        out.append(found)
    return tuple(out)


def _target(f: Fields, words: Words) -> Target | None:
    name = f.read("name", _name, required="name the target, such as prod")
    cloud = f.choice("cloud", CLOUDS, required=f"say its cloud: {', '.join(CLOUDS)}")
    if cloud is None:
        f.known = list(f.node.entries)  # what the other fields mean depends on the cloud
        return None
    known = words.regions.get(cloud, ())
    found = Target(
        name=name or "",
        cloud=Cloud(cloud),
        account=_account(f, cloud),
        deployer_role=_role(f, "deployer_role", cloud),
        orchestrator_role=_role(f, "orchestrator_role", cloud),
        broker_role=_role(f, "broker_role", cloud),
        permissions_boundary=_arn(f, "permissions_boundary", "iam", "policy/") if cloud == "aws" else None,
        regions=patterns(f, "regions", known, f"region of {cloud}", strict=False),
        opt_in_zones=f.words("opt_in_zones", f.report.text),
        kms_key_arn=_disk_key(f, cloud),
        networks=tuple(n for n in (_network(one, cloud, known) for one in f.records("networks")) if n),
        quotas=tuple(q for q in (_quota(one, words, known) for one in f.records("quotas")) if q),
        resource_group=f.read("resource_group", _resource_group) if cloud == "azure" else None,
        tenant=_tenant(f, cloud) if cloud in _TENANT else None,
        network_quota=_network_quota(f, cloud, known),
        foundation=account_settings(f, cloud),
    )
    return found if name else None


def _name(text: str) -> str:
    if not re.fullmatch(_TARGET, text, re.ASCII):
        raise units.Malformed("is no name", "at most 20 lower-case letters, digits and `-`, such as prod")
    return text


def _account(f: Fields, cloud: str) -> str | None:
    form, example = _ACCOUNT[cloud]
    return f.read(ACCOUNT_WORD[cloud], lambda text: _formed(text, form, f"write {example}, in full"))


def _formed(text: str, form: str, hint: str) -> str:
    if not re.fullmatch(form, text, re.ASCII):
        raise units.Malformed("is malformed", hint)
    return text


def _tenant(f: Fields, cloud: str) -> str | None:
    form, example = _TENANT[cloud]
    return f.read("tenant", lambda text: _formed(text, form, f"write {example}"))


def _resource_group(text: str) -> str:
    return _formed(text, _RESOURCE_GROUP, "write the name of a resource group, such as rg-skyplan")


def _network_quota(f: Fields, cloud: str, known: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Region globs with how many networks skyplan may keep there, the most specific first.  0 is meaningful: none."""
    table = f.fields("network_quota")
    if table is None:
        return ()
    found: dict[str, int] = {}
    for pattern, entry in table.node.entries.items():
        name = table.name(pattern)
        if not is_pattern(pattern):
            hint = "write a region or a glob such as us-*, with at most 3 `*`"
            f.report.error(entry.key_at, "SKY-SPEC-105", f"`{table.path}`: {shown(pattern)} is no pattern", hint)
            continue
        if known and not any(matches((pattern,), region) for region in known):
            summary = f"`{table.path}`: {shown(pattern)} matches no region of {cloud} that is known"
            f.report.warning(entry.key_at, "SKY-SPEC-105", summary, did_you_mean(pattern, known))
        scalar = f.report.scalar(name, entry.value)
        if scalar is not None:
            with f.report.reading(name, scalar):
                found[pattern] = units.integer(scalar.text, 0, MAX_NETWORKS)
    return tuple(sorted(found.items(), key=lambda row: specific_first(row[0])))


def _role(f: Fields, key: str, cloud: str) -> str | None:
    return _arn(f, key, "iam", "role/") if cloud == "aws" else f.text(key)


def _arn(f: Fields, key: str, service: str, kind: str) -> str | None:
    region = "us-east-1" if service == "kms" else ""
    hint = f"write an ARN such as arn:aws:{service}:{region}:123456789012:{kind}example"
    return f.read(key, lambda text: _formed(text, _ARN.format(service=service, kind=kind), hint))


def _disk_key(f: Fields, cloud: str) -> str | None:
    """The user's own key for disks, by the cloud's name for it; Nebius has none."""
    if cloud == "aws":
        return _arn(f, "kms_key", "kms", "key/")
    if cloud not in _DISK_KEY:
        return None
    form, example = _DISK_KEY[cloud]
    return f.read("kms_key", lambda text: _formed(text, form, f"write {example}"))


def one_region(f: Fields, key: str, known: tuple[str, ...], *, required: str) -> str | None:
    """A region that exists."""
    text = f.text(key, required=required)
    if text is None or text in known or not known:
        return text
    at = f.report.places[f.name(key)]
    f.report.error(
        at, "SKY-SPEC-105", f"`{f.name(key)}`: {shown(text)} is no region that is known", did_you_mean(text, known)
    )
    return None


def _network(f: Fields, cloud: str, known: tuple[str, ...]) -> OwnNetwork | None:
    region = one_region(f, "region", known, required="say the network's region")
    vpc = f.text("vpc_id", required=f"say the network's id{', such as vpc-0abc' if cloud == 'aws' else ''}")
    subnets = f.strings("subnets")
    example = "{-: SUBNET_ID}: subnets are regional there" if cloud in REGIONAL else "{use1-az4: subnet-0abc}"
    if not subnets:
        f.missing("`subnets`", f"write {{zone: subnet id}}, such as {example}")
    elif cloud in REGIONAL and [zone for zone, _ in subnets] != ["-"]:
        f.report.error(
            f.report.places[f.name("subnets")], "SKY-SPEC-105", f"`{f.name('subnets')}` names zones", f"write {example}"
        )
    cidrs = _cidrs(f, dict(subnets))
    groups = f.words("security_groups", f.report.text)
    f.finish()
    if not (region and vpc and subnets):
        return None
    return OwnNetwork(
        region=region, vpc_id=vpc, subnets=_zoned(subnets), security_group_ids=groups, cidrs=_zoned(cidrs)
    )


def _zoned(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """With "" for the region's own, which a file writes `-`."""
    return tuple(("" if zone == "-" else zone, value) for zone, value in pairs)


def _cidrs(f: Fields, subnets: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Of subnets that are named, each an IPv4 network of at least 32 addresses."""
    found = f.strings("cidrs")
    for zone, cidr in found:
        problem = "" if zone in subnets else f"`cidrs`: no subnet is named for {shown(zone)}"
        try:
            if IPv4Network(cidr).num_addresses < SMALLEST_SUBNET:
                problem = problem or f"`cidrs`: {shown(cidr)} is too small for addresses of nodes"
        except ValueError:
            problem = problem or f"`cidrs`: {shown(cidr)} is no IPv4 network"
        if problem:
            f.report.error(f.node.at, "SKY-SPEC-105", problem, "write {zone: CIDR}, such as {use1-az4: 10.20.0.0/20}")
    return found


def _quota(f: Fields, words: Words, known: tuple[str, ...]) -> Quota | None:
    """A limit of 0 is meaningful: nothing of it may run."""
    limit = {
        key: f.read(key, lambda text: units.integer(text, 0, 10**7)) for key in ("max_nodes", "max_gpus", "max_vcpus")
    }
    types = patterns(f, "instance_types", words.instance_types, "instance type", strict=False)
    regions = patterns(f, "regions", known or all_regions(words), "region", strict=False)
    capacity = f.choice("capacity", CAPACITIES)
    if not limit.keys() & f.node.entries.keys():
        f.missing("`max_nodes`, `max_gpus` or `max_vcpus`", "say how much is granted, such as max_nodes: 4")
    if "instance_types" not in f.node.entries:
        f.missing("`instance_types`", 'say which types it counts, such as ["p5*"]')
    f.finish()
    return Quota(instance_types=types, regions=regions or ("*",), capacity=capacity, **limit) if types else None
