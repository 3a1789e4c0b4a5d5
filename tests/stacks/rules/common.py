"""Rules that are the same on every cloud.  A rule is a function of the three rendered stacks of one placement; it yields what breaks it."""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

from planner.model.labels import label_key, label_value
from planner.model.offer import Cloud
from planner.model.stack import rank_key, spot_key
from stacks.wiring import ACCESS_VARIABLES, TUNNEL_VARIABLES
from tests.stacks.cases import Rendered
from tests.stacks.checker import resources, taggable
from tests.stacks.references import expressions

Found = Iterator[str]

#: the resource that is a node, and the argument that holds what it boots
NODES = {
    Cloud.AWS: ("aws_instance", "user_data"),
    Cloud.GCP: ("google_compute_instance", "metadata"),
    Cloud.AZURE: ("azurerm_linux_virtual_machine", "custom_data"),
    Cloud.NEBIUS: ("nebius_compute_v1_instance", "cloud_init_user_data"),
}
#: what may stand in a compute stack: its identity can make, delete and describe these
LAUNCHED = {
    Cloud.AWS: {"aws_instance"},
    Cloud.GCP: {"google_compute_instance"},
    Cloud.AZURE: {
        "azurerm_linux_virtual_machine",
        "azurerm_network_interface",
        "azurerm_network_interface_security_group_association",
        "azurerm_network_interface_application_security_group_association",
    },
    Cloud.NEBIUS: {"nebius_compute_v1_instance", "nebius_vpc_v1_allocation"},
}
#: the only types that say who may do what: each adds, none replaces what somebody else has set
ADDITIVE = {
    "aws_iam_role",  # the nodes' own
    "aws_iam_role_policy",  # of that role
    "aws_iam_instance_profile",
    "google_service_account",
    "google_storage_bucket_iam_member",
    "google_storage_managed_folder_iam_member",
    "google_secret_manager_secret_iam_member",
    "google_service_account_iam_member",
    "azurerm_user_assigned_identity",
    "azurerm_role_assignment",
    "azurerm_role_definition",
    "nebius_iam_v1_service_account",
    "nebius_iam_v1_group",
    "nebius_iam_v1_group_membership",
    "nebius_iam_v1_access_permit",
}
#: words of types that decide over access
_ABOUT_ACCESS = re.compile(r"iam|polic|binding|acl|grant|permission|access_permit|role|credential|key_vault|kms|bucket")
#: about placing machines, not about access
_NOT_ACCESS = {"google_compute_resource_policy"}
#: types and data sources through which a secret's value would get into a plan or a state
_SECRETIVE = re.compile(r"secret_version|access_key|account_key|password|private_key|vault_secret|payload|credential")
_SECRET_ARGUMENTS = {"admin_password", "password", "secret_string", "secret_data", "private_key", "key_name"}
#: text that looks like a key: AWS, Google, Azure, GitHub, Hugging Face, Slack, JWT, PEM, assignments of long literals
_KEY_LIKE = re.compile(
    r"(?:A3T|AKIA|ASIA)[0-9A-Z]{16}|AIza[\w-]{35}|AccountKey=|SharedAccessSignature|[?&]sig=|gh[pousr]_\w{36}|hf_\w{30,}"
    r"|xox[abpr]-|\beyJ[\w-]{10,}\.eyJ|-----BEGIN [A-Z ]*PRIVATE KEY|\bya29\.|\bsk-[A-Za-z0-9]{20,}"
    r"|(?i:password|passwd|secret|token|api_?key)\s*[=:]\s*[\"']?[A-Za-z0-9+/]{24,}"
)


def walk(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value with its path, leaves and branches."""
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, (*path, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from walk(inner, (*path, str(number)))


def node(r: Rendered) -> dict[str, Any]:
    """The one resource that the nodes are."""
    return r.cmp.get("resource", {}).get(NODES[r.case.cloud][0], {}).get("node", {})


def of_type(document: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    """Resources of a type by name."""
    return document.get("resource", {}).get(kind, {})


def texts_booted(r: Rendered) -> Iterator[str]:
    """What the nodes boot, in clear; nothing for golden files that leave it out."""
    match r.case.cloud:
        case Cloud.AWS:
            packed = [body.get("user_data", "") for body in of_type(r.acc, "aws_launch_template").values()]
        case Cloud.AZURE:
            packed = [node(r).get("custom_data", "")]
        case Cloud.GCP:
            yield node(r).get("metadata", {}).get("user-data", "")
            return
        case Cloud.NEBIUS:
            yield node(r).get("cloud_init_user_data", "")
            return
    for text in packed:
        if text.startswith("("):
            yield text
            continue
        data = base64.b64decode(text)
        yield (gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data).decode()


def tags(r: Rendered) -> Found:
    """Project, job and `managed` on everything that takes tags, with the user's own; the job not on what jobs share."""
    for stack, document in r.documents.items():
        given = {"net": r.case.network, "acc": r.case.access, "cmp": r.case.compute}[stack]
        for kind, name, body in resources(document):
            field = taggable(kind)
            held = body.get(field or "tags", {})
            if field is None:
                if held and kind != "google_compute_instance":
                    yield f"{kind}.{name} has tags, which its type does not take"
                continue
            written = as_written(kind, given.tags)
            if lost := {key: text for key, text in written.items() if held.get(key) != text}:
                yield f"{stack} {kind}.{name}: {lost} not in {held}"
            if len(held) < len(written) or (stack == "net" and held.keys() & {"skyplan:job", "skyplan-job"}):
                yield f"{stack} {kind}.{name}: {sorted(held)}"
    field = taggable(NODES[r.case.cloud][0]) or ""
    rank = node(r).get(field, {}).get("skyplan-rank" if field == "labels" else "skyplan:rank")
    if rank != "${each.key}":
        yield f"rank of the node: {rank}"


def as_written(kind: str, given: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Tags as a resource of that type must carry them, where their form is plain: what Azure and IAM do not take is only counted by their own tests."""
    expected = dict(reversed(given))
    if kind.startswith(("google_", "nebius_")):
        own = {key.replace(":", "-") if key.startswith("skyplan:") else label_key(key): key for key in expected}
        return {label: label_value(expected[key]) for label, key in own.items()}
    if kind.startswith(("azurerm_", "aws_iam_")):
        in_order = {key.lower(): key for key, _ in reversed(given)}
        strange = _STRANGE_TO_AZURE if kind.startswith("azurerm_") else _STRANGE_TO_IAM
        plain = {key: expected[key] for key in in_order.values() if not strange.search(key + expected[key])}
        return {_literal(key): _literal(value) for key, value in plain.items()}
    return {_literal(key): _literal(value) for key, value in expected.items()}


_STRANGE_TO_AZURE = re.compile(r"[<>%&\\?/]|.{257}")
_STRANGE_TO_IAM = re.compile(r"[^\w .:/=+@-]")


def _literal(text: str) -> str:
    return text.replace("${", "$${").replace("%{", "%%{")


def no_secret(r: Rendered) -> Found:
    """No value of a secret, no way for one into the state, nothing that looks like a key; in what nodes boot neither."""
    for stack, document in r.documents.items():
        for section in ("resource", "data"):
            for kind in document.get(section, {}):
                if _SECRETIVE.search(kind) and kind != "azurerm_federated_identity_credential":
                    yield f"{stack}: {kind} reads or makes a secret"
        for path, value in walk(document):
            if path and path[-1] in _SECRET_ARGUMENTS:
                yield f"{stack}: {'.'.join(path)}"
            if isinstance(value, str) and (found := _KEY_LIKE.search(value)):
                yield f"{stack}: {'.'.join(path)} looks like a key: {found[0][:12]}…"
    for text in texts_booted(r):
        if found := _KEY_LIKE.search(text):
            yield f"user data looks like a key: {found[0][:12]}…"


def additive_only(r: Rendered) -> Found:
    """Never an authoritative policy, binding or ACL on what the stack did not make; nothing at all about access but in the access stack."""
    for stack, document in r.documents.items():
        for kind, name, _ in resources(document):
            if not _ABOUT_ACCESS.search(kind) or kind in _NOT_ACCESS:
                continue
            if kind not in ADDITIVE:
                yield f"{stack}: {kind}.{name} may replace what its owner has set"
            elif stack != "acc":
                yield f"{stack}: {kind}.{name} is about access, in another stack than the reviewed one"
        for path, _ in walk(document.get("resource", {})):
            if path and path[-1] in {"bucket_policy", "access_policy", "managed_policy_arns", "inline_policy"}:
                yield f"{stack}: {'.'.join(path)}"


def outputs(r: Rendered) -> Found:
    """What the next stack and the reviewer need is put out, and fits: net → acc → cmp → nodes, plan, end of billing."""
    wiring = ACCESS_VARIABLES[r.case.cloud]
    if missing := (wiring.keys() | TUNNEL_VARIABLES[r.case.cloud].keys()) - r.net.get("output", {}).keys():
        yield f"net does not put out {sorted(missing)}"
    if r.acc.get("variable", {}).keys() != wiring.keys():
        yield f"acc asks for {sorted(r.acc.get('variable', {}))}"
    out = {name: body.get("value") for name, body in r.acc.get("output", {}).items()}
    launch = out.get("launch") or {}
    spot = {spot_key(key) for key in r.case.access.spot_templates}
    if set(launch) != {template.key for template in r.case.access.templates} | spot:
        yield f"launch has {sorted(launch)}"
    for key, values in launch.items():
        if values.keys() != r.cmp.get("variable", {}).keys():
            yield f"launch of {key} gives {sorted(values)}, compute asks for {sorted(r.cmp.get('variable', {}))}"
    if not str(out.get("node_identity", "")).startswith("${"):
        yield "node_identity is not put out"
    if r.case.cloud is Cloud.AZURE and not {"node_principal_id", "node_client_id"} <= out.keys():
        yield "who the nodes are to owners of stores and to other clouds is not put out"
    if out.get("data_snippets") != list(r.case.access.snippets):
        yield "data_snippets are not put out"
    out = {name: body.get("value") for name, body in r.cmp.get("output", {}).items()}
    if out.get("plan_id") != r.case.compute.plan_id:
        yield "plan_id is not put out"
    if len(str(out.get("billing_end") or "")) < 40:
        yield "billing_end does not say how billing ends"
    nodes = str(out.get("nodes"))
    fields = re.findall(r"[{,]\s*(\w+) = ", nodes)
    address = f"{NODES[r.case.cloud][0]}.node :"
    if fields != ["instance_id", "private_ip", "zone", "cloud"] or address not in nodes:
        yield f"nodes are {nodes}"
    if f'zone = "{r.case.compute.zone}"' not in nodes or f'cloud = "{r.case.cloud.value}"' not in nodes:
        yield "nodes are said to be elsewhere"


def launched(r: Rendered) -> Found:
    """The compute stack is the nodes, one resource however many; a running one is never touched; the plan is in no tag."""
    if strange := set(r.cmp.get("resource", {})) - LAUNCHED[r.case.cloud]:
        yield f"compute makes {sorted(strange)}"
    given = r.case.compute
    ranks = [rank_key(rank) for rank in range(given.first_rank, given.first_rank + given.nodes)]
    planned = dict(zip(ranks, given.addresses or ("",) * given.nodes, strict=True))
    for kind, name, body in resources(r.cmp):
        if name != "node":
            yield f"compute has {kind}.{name}"
        if kind.endswith("_association"):
            continue
        if body.get("for_each") != planned:
            yield f"{kind}.{name} is for {body.get('for_each')}, not {planned}"
        if body.get("lifecycle") != {"ignore_changes": "all"}:
            yield f"{kind}.{name} may be changed while it runs"
        if given.plan_id in json.dumps(body):
            yield f"{kind}.{name} carries the plan's id"
    if not of_type(r.cmp, NODES[given.cloud][0]):
        yield "compute has no nodes"


def provider(r: Rendered) -> Found:
    """Every stack acts in the planned account, as the planned role, and nowhere else."""
    for stack, document in r.documents.items():
        given = {"net": r.case.network, "acc": r.case.access, "cmp": r.case.compute}[stack]
        role = given.role_arn
        wanted: dict[str, Any] = {
            Cloud.AWS: {
                "region": given.region,
                "allowed_account_ids": [given.account] if given.account else None,
                "assume_role": [{"role_arn": role, "session_name": "skyplan"}] if role else None,
            },
            Cloud.GCP: {"region": given.region, "project": given.account, "impersonate_service_account": role},
            Cloud.AZURE: {
                "subscription_id": given.account,
                "tenant_id": given.tenant,
                "resource_provider_registrations": "none",
                "storage_use_azuread": True,
            },
            Cloud.NEBIUS: {"parent_id": given.account, "impersonate_service_account_id": role},
        }[given.cloud]
        (settings,) = [one for configured in document["provider"].values() for one in configured if "alias" not in one]
        if {key: settings.get(key) for key in wanted} != wanted:
            yield f"{stack}: {settings}"
        if document["terraform"]["backend"] != {given.backend.kind: {}}:
            yield f"{stack}: the backend holds settings"
        (name,) = [n for n, configured in document["provider"].items() if any("alias" not in one for one in configured)]
        source = document["terraform"]["required_providers"][name]
        if source["version"] != given.provider_version:
            yield f"{stack}: provider {source}"


def differs(where: str, body: dict[str, Any], wanted: dict[str, Any]) -> Found:
    """Arguments that are not as planned."""
    held = {key: body.get(key) for key in wanted}
    if held != wanted:
        yield f"{where}: { ({key: held[key] for key in wanted if held[key] != wanted[key]}) }"


def named(where: str, body: dict[str, Any], *parts: str, field: str = "name") -> Found:
    """A name of skyplan's own, always the same: a second create fails instead of doubling."""
    name = str(body.get(field) or "")
    if not name or not all(part in name for part in parts):
        yield f"{where}: {field} {name!r} lacks {parts}"


def own_network(r: Rendered) -> Found:
    """The user's own network: nothing is made in it, its ids are handed on."""
    own = r.case.network.own
    if own is None:
        return
    made = {kind for kind, _, _ in resources(r.net)} - {"azurerm_resource_group"}
    if made:
        yield f"the network stack makes {sorted(made)} in the user's network"
    if r.net["output"]["subnet_ids"]["value"] != dict(own.subnets):
        yield "the user's subnets are not handed on"


def shared_by_nobody(r: Rendered) -> Found:
    """What jobs share says nothing of who reaches whom."""
    for kind, name, _ in resources(r.net):
        if re.search(r"security|firewall|acl|peering", kind):
            yield f"net: {kind}.{name} would hold for every job in the network"


def is_expression(value: Any) -> bool:
    return isinstance(value, str) and any(True for _ in expressions(value))


def ends_in_user_data(r: Rendered) -> Found:
    """The hard end on the node itself; a golden file without user data says nothing."""
    hours = r.case.template.stop_after_hours
    for text in texts_booted(r):
        if not text.startswith("(") and ("stop-at" in text) != (hours is not None):
            yield "the hard end is not the plan's"
        if hours is not None and not text.startswith("(") and f"+ {round(hours * 60)} * 60" not in text:
            yield "the hard end is at another time"


def data_rights(r: Rendered, *, minted: bool = False) -> set[tuple[str, str, str]]:
    """What the job's nodes need in stores of the cloud that it runs in, from the job itself: (read or write, bucket, prefix); not what is `minted`."""
    without = set() if minted else {path.uri for path in r.case.access.data_paths if path.minted}
    job, here = r.case.workload, r.case.cloud.value
    wanted = {("read", d.at) for d in job.data}
    wanted |= {("write", part.at) for part in (job.checkpoint, job.output) if part}
    return {(right, at.bucket, at.prefix) for right, at in wanted if at.store.cloud == here and at.uri not in without}


def secrets(r: Rendered) -> set[str]:
    """Names of the job's secrets in the cloud that it runs in."""
    stores = {
        "aws": "aws-secretsmanager",
        "gcp": "gcp-secretmanager",
        "azure": "azure-keyvault",
        "nebius": "nebius-mysterybox",
    }
    job = r.case.workload
    asked = (*job.secrets, *([job.registry_auth] if job.registry_auth else []))
    return {secret.path for secret in asked if secret.store == stores[r.case.cloud.value]}
