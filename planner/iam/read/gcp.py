"""What Google blocks of a Terraform document say of rights: service accounts with their bindings, members of stores, federation, keys, machines.

A resource that sets a whole policy, or a whole binding, counts as the rights that it names: what it takes away from others is not told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.iam.read.expressions import unknown
from planner.iam.read.gcp_made import COMPUTED as COMPUTED  # noqa: PLC0414 - each reader has them
from planner.iam.read.gcp_made import project_of
from planner.iam.read.packed import runs_containers
from planner.iam.read.references import Block, Document, many, objects, words
from planner.iam.read.whose import identity_of, is_node, job_of, stranger_identity, tags_of
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, Machine, Provider, RoleBinding, Subject

ACCOUNT = "google_service_account"
ROLES = ("google_project_iam_custom_role", "google_organization_iam_custom_role")
_GIVING = re.compile(r"google_(.+)_iam_(member|binding|policy)")
_KEYS = {"google_service_account_key": "service account key", "google_storage_hmac_key": "HMAC key"}
_KEY_OWNERS = ("service_account_id", "service_account_email")
#: kind of thing -> how its full name is made of arguments
_PLACES = {
    "project": "projects/{project}",
    "folder": "{folder}",
    "organization": "organizations/{org_id}",
    "service_account": "{service_account_id}",
    "storage_bucket": "projects/_/buckets/{bucket}",
    "storage_managed_folder": "projects/_/buckets/{bucket}/managedFolders/{managed_folder}",
    "secret_manager_secret": "projects/{project}/secrets/{secret_id}",
    "kms_crypto_key": "{crypto_key_id}",
    "kms_key_ring": "{key_ring_id}",
    "compute_subnetwork": "projects/{project}/regions/{region}/subnetworks/{subnetwork}",
    "compute_instance": "projects/{project}/zones/{zone}/instances/{instance_name}",
}
_STORES = ("storage_bucket", "storage_managed_folder", "secret_manager_secret", "kms_crypto_key", "kms_key_ring")
_SCRIPTS = ("user-data", "startup-script")
_CONTAINER = "gce-container-declaration"


@dataclass(frozen=True, slots=True)
class _Given:
    """One right, with the account of this document that has it."""

    block: Block
    kind: str
    binding: RoleBinding
    account: Block | None


def read(document: Document) -> Audited:
    """All that it says of Google Cloud."""
    given = [one for block in document.blocks for one in _given(document, block)]
    subjects = [_subject(document, block, given) for block in document.of(ACCOUNT)]
    strangers = [one for one in given if one.account is None]
    minted = [one for one in strangers if _is_minted(document, one)]
    return Audited(
        subjects=(
            *subjects,
            *_strangers(document, [one for one in strangers if one.kind not in _STORES]),
            *_of_broker(document, minted),
        ),
        public=tuple(one.binding for one in strangers if one.kind in _STORES and one not in minted),
        machines=tuple(_machines(document)),
        providers=tuple(_providers(document)),
    )


def _given(document: Document, block: Block) -> Iterator[_Given]:
    found = _GIVING.fullmatch(block.type)
    if found is None or block.is_data:
        return
    kind, form = found[1], found[2]
    on = _place(document, block, kind)
    if form == "policy":
        yield from _of_policy(document, block, kind, on)
        return
    right = _Right(block=block, kind=kind, on=on, role=block.values.get("role"), condition=_condition(block.values))
    for raw in many(block.values.get("member" if form == "member" else "members")):
        yield from _one(document, right, raw)


def _condition(values: Mapping[str, Any]) -> str:
    return next((str(item.get("expression") or "") for item in objects(values.get("condition"))), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Right:
    """What somebody is given: role and condition as they are written in `block`."""

    block: Block
    kind: str
    on: str
    role: Any
    condition: str


def _one(document: Document, right: _Right, raw: Any) -> Iterator[_Given]:
    block = right.block
    custom = document.aimed(right.role, block, *ROLES)
    for member in words(document.resolved(raw, block)):
        binding = RoleBinding(
            member=member,
            role=str(document.resolved(right.role, block) or ""),
            on=right.on,
            permissions=document.words(custom, "permissions") if custom else (),
            condition=str(document.resolved(right.condition, block)),
            location=document.location(block),
        )
        yield _Given(block, right.kind, binding, _account(document, block, raw))


def _account(document: Document, block: Block, raw: Any) -> Block | None:
    if isinstance(raw, str) and raw.startswith("serviceAccount:") and not unknown(raw):
        found = document.aimed(raw.removeprefix("serviceAccount:"), block, ACCOUNT)
        if found:
            return found
    return document.aimed(raw, block, ACCOUNT)


def _of_policy(document: Document, block: Block, kind: str, on: str) -> Iterator[_Given]:
    source = document.target(block, "policy_data", "google_iam_policy")
    if source is not None:
        place, bindings = replace(source, address=block.address), source.values.get("binding")
    else:
        text = document.value(block, "policy_data")
        try:
            place, bindings = replace(block, literal=True), json.loads(str(text))["bindings"]
        except (ValueError, KeyError, TypeError):
            document.unread.append(f"{document.origin(block)}: policy_data cannot be read: {text}")
            return
    for item in objects(bindings):
        right = _Right(block=place, kind=kind, on=on, role=item.get("role"), condition=_condition(item))
        for raw in many(item.get("members")):
            yield from _one(document, right, raw)


def _place(document: Document, block: Block, kind: str) -> str:
    """The full name of what the right is on."""
    form = _PLACES.get(kind)
    if form is None:
        return f"{kind}/{block.name}"
    names = {name: document.text(block, name) for name in re.findall(r"{(\w+)}", form)}
    if "project" in names:
        names["project"] = names["project"].removeprefix("projects/") or project_of(document, block)
    if names.get("secret_id", "").startswith("projects/"):
        return names["secret_id"]
    if names.get("bucket", "").startswith("b/"):
        names["bucket"] = names["bucket"].removeprefix("b/")
    return form.format(**names)


def _subject(document: Document, block: Block, given: list[_Given]) -> Subject:
    name = document.text(block, "account_id") or block.address
    tags, description = tags_of(document, block), document.text(block, "description")
    identity = identity_of(document, block, name)
    if identity is None and is_node(path="", tags=tags, stack=document.stack, description=description):
        identity = Identity.NODE_DATA
    node = identity is Identity.NODE_DATA
    return Subject(
        cloud=Cloud.GCP,
        name=name,
        origin=document.origin(block),
        identity=identity,
        job=job_of(tags=tags, stack=document.stack, description=description) if node else "",
        bindings=tuple(
            one.binding for one in given if one.account is not None and one.account.address == block.address
        ),
        keys=tuple(_keys(document, block)),
        location=document.location(block),
    )


def _keys(document: Document, block: Block) -> Iterator[str]:
    for other in document.of(*_KEYS):
        for argument in _KEY_OWNERS:
            owner = document.target(other, argument, ACCOUNT)
            if owner is not None and owner.address == block.address:
                yield f"{_KEYS[other.type]} {other.address}"


def _is_minted(document: Document, one: _Given) -> bool:
    """Given by a job's access stack to an account of ours that is made elsewhere: what the broker becomes for that job's nodes."""
    ours = one.binding.member.startswith("serviceAccount:skyplan-")
    return ours and one.kind in _STORES and document.stack.startswith("acc-")


def _of_broker(document: Document, minted: list[_Given]) -> Iterator[Subject]:
    """As a node's: one identity, with what this job gives it."""
    for member in dict.fromkeys(one.binding.member for one in minted):
        mine = [one for one in minted if one.binding.member == member]
        yield Subject(
            cloud=Cloud.GCP,
            name=member.removeprefix("serviceAccount:").split("@")[0],
            origin=f"{document.stack} {ACCOUNT}.data",
            identity=Identity.NODE_DATA,
            job=job_of(tags={}, stack=document.stack),
            bindings=tuple(one.binding for one in mine),
            location=mine[0].binding.location,
        )


def _strangers(document: Document, given: list[_Given]) -> Iterator[Subject]:
    """Those who are made elsewhere: each right with the place where it is given."""
    for one in given:
        name = one.binding.member.removeprefix("serviceAccount:").split("@")[0]
        name = name if one.binding.member.startswith("serviceAccount:") else one.binding.member
        federated = name.startswith(("principal:", "principalSet:"))
        yield Subject(
            cloud=Cloud.GCP,
            name=name,
            origin=document.origin(one.block),
            identity=None if federated else stranger_identity(document, name),
            bindings=(one.binding,),
            location=one.binding.location,
        )
    for other in document.of(*_KEYS):
        if not any(document.target(other, argument, ACCOUNT) for argument in _KEY_OWNERS):
            name = document.text(other, _KEY_OWNERS[0]) or document.text(other, _KEY_OWNERS[1])
            yield Subject(
                cloud=Cloud.GCP,
                name=name or other.address,
                origin=document.origin(other),
                keys=(f"{_KEYS[other.type]} {other.address}",),
                location=document.location(other),
            )


def _machines(document: Document) -> Iterator[Machine]:
    for block in document.of("google_compute_instance", "google_compute_instance_template"):
        metadata = next(iter(document.items(block, "metadata")), dict[str, Any]())
        scripts = [str(metadata.get(name) or "") for name in _SCRIPTS]
        scripts.append(document.text(block, "metadata_startup_script"))
        declared = bool(metadata.get(_CONTAINER))
        bought = [
            item.get("provisioning_model") or item.get("preemptible") for item in document.items(block, "scheduling")
        ]
        template = block.type.endswith("_template")
        yield Machine(
            cloud=Cloud.GCP,
            origin=document.origin(block),
            job=job_of(tags=tags_of(document, block), stack=document.stack),
            containers=declared or any(map(runs_containers, scripts)),
            has_identity=bool(block.values.get("service_account")),
            spot=None if template and not bought else any(one in {"SPOT", True} for one in bought),
            location=document.location(block),
        )


def _providers(document: Document) -> Iterator[Provider]:
    for block in document.of("google_iam_workload_identity_pool_provider"):
        oidc = next(iter(document.items(block, "oidc")), dict[str, Any]())
        aws = next(iter(document.items(block, "aws")), dict[str, Any]())
        issuer = oidc.get("issuer_uri") or (f"aws:{aws['account_id']}" if aws.get("account_id") else "saml")
        yield Provider(
            cloud=Cloud.GCP,
            origin=document.origin(block),
            issuer=str(issuer),
            audiences=words(oidc.get("allowed_audiences")),
            condition=document.text(block, "attribute_condition"),
            location=document.location(block),
        )
