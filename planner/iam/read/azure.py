"""What Azure blocks of a Terraform document say of rights: identities with their role assignments, federation, keys, machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from planner.iam.read.azure_made import COMPUTED as COMPUTED  # noqa: PLC0414 - each reader has them
from planner.iam.read.expressions import reference
from planner.iam.read.packed import runs_containers
from planner.iam.read.references import Block, Document, many, words
from planner.iam.read.whose import identity_of, is_node, job_of, stranger_identity, tags_of
from planner.model.grants import Identity
from planner.model.offer import Cloud
from planner.model.policy import Audited, Machine, Provider, RoleAssignment, Subject

IDENTITY = "azurerm_user_assigned_identity"
DEFINITION = "azurerm_role_definition"
_VMS = ("azurerm_linux_virtual_machine", "azurerm_windows_virtual_machine")
_SETS = ("azurerm_linux_virtual_machine_scale_set", "azurerm_orchestrated_virtual_machine_scale_set")
#: secrets that stay good until somebody ends them
_KEYS = {
    "azuread_application_password": "client secret",
    "azuread_service_principal_password": "client secret",
}
_STORAGE_KEY = re.compile(
    r"(azurerm_storage_account\.[\w-]+)[^}]*\.(?:primary|secondary)_(?:access_key|connection_string|blob_connection_string)"
)


@dataclass(frozen=True, slots=True)
class _Given:
    block: Block
    assignment: RoleAssignment
    principal: str
    identity: Block | None


def read(document: Document) -> Audited:
    """All that it says of Azure."""
    given = [_given(document, block) for block in document.of("azurerm_role_assignment")]
    subjects = [_subject(document, block, given) for block in document.of(IDENTITY)]
    return Audited(
        subjects=(*subjects, *_strangers(document, given), *_keys(document)),
        machines=tuple(_machines(document)),
        providers=tuple(_providers(document)),
    )


def _given(document: Document, block: Block) -> _Given:
    definition = _definition(document, block)
    role = document.text(block, "role_definition_name") or document.text(block, "role_definition_id")
    lists: dict[str, tuple[str, ...]] = {}
    if definition is not None:
        role = document.text(definition, "name") or role
        for item in document.items(definition, "permissions"):
            for name in ("actions", "not_actions", "data_actions", "not_data_actions"):
                lists[name] = (*lists.get(name, ()), *words(item.get(name)))
    assignment = RoleAssignment(
        role=role,
        scope=document.text(block, "scope"),
        condition=document.text(block, "condition"),
        location=document.location(block),
        **lists,
    )
    raw = block.values.get("principal_id")
    identity = document.aimed(raw, block, IDENTITY)
    principal = reference(raw) if isinstance(raw, str) else ""
    return _Given(block, assignment, principal or document.text(block, "principal_id"), _made_here(identity))


def _made_here(identity: Block | None) -> Block | None:
    return None if identity is None or identity.is_data else identity


def _definition(document: Document, block: Block) -> Block | None:
    found = document.target(block, "role_definition_id", DEFINITION) or document.target(
        block, "role_definition_name", DEFINITION
    )
    if found is not None:
        return found
    known = document.text(block, "role_definition_id").rpartition("/")[2]
    for candidate in document.of(DEFINITION):
        ids = {
            document.text(candidate, name).rpartition("/")[2]
            for name in ("role_definition_id", "role_definition_resource_id")
        }
        if known and known in ids:
            return candidate
    return None


def _subject(document: Document, block: Block, given: list[_Given]) -> Subject:
    name = document.text(block, "name") or block.address
    tags = tags_of(document, block)
    identity = identity_of(document, block, name)
    if identity is None and is_node(path="", tags=tags, stack=document.stack):
        identity = Identity.NODE_DATA
    node = identity is Identity.NODE_DATA
    return Subject(
        cloud=Cloud.AZURE,
        name=name,
        origin=document.origin(block),
        identity=identity,
        job=job_of(tags=tags, stack=document.stack) if node else "",
        assignments=tuple(
            one.assignment for one in given if one.identity is not None and one.identity.address == block.address
        ),
        location=document.location(block),
    )


def _strangers(document: Document, given: list[_Given]) -> Iterator[Subject]:
    for one in given:
        if one.identity is not None:
            continue
        known = document.aimed(one.block.values.get("principal_id"), one.block, IDENTITY)
        name = document.text(known, "name") if known else one.principal
        yield Subject(
            cloud=Cloud.AZURE,
            name=name or one.block.address,
            origin=document.origin(one.block),
            identity=stranger_identity(document, name),
            assignments=(one.assignment,),
            location=one.assignment.location,
        )


def _keys(document: Document) -> Iterator[Subject]:
    """Client secrets, SAS tokens, and the use of a storage account's own key."""
    for block in document.blocks:
        kind = _KEYS.get(block.type, "")
        if block.type == "azurerm_storage_account_sas":
            kind = "account SAS"
        used = {found[1] for text in _texts(block.values) for found in _STORAGE_KEY.finditer(text)}
        keys = ([f"{kind} {block.address}"] if kind else []) + [
            f"storage account key of {name}" for name in sorted(used)
        ]
        if keys:
            yield Subject(
                cloud=Cloud.AZURE,
                name=block.address,
                origin=document.origin(block),
                keys=tuple(keys),
                location=document.location(block),
            )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():  # pyright: ignore[reportUnknownVariableType]
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in many(value):
            yield from _texts(inner)


def _machines(document: Document) -> Iterator[Machine]:
    for block in document.of(*_VMS, *_SETS):
        # of machines that others join, or none: their own identity says it
        if block.type in _SETS and not block.values.get("custom_data") and not block.values.get("os_profile"):
            continue
        data = document.text(block, "custom_data") or document.text(block, "user_data")
        yield Machine(
            cloud=Cloud.AZURE,
            origin=document.origin(block),
            job=job_of(tags=tags_of(document, block), stack=document.stack),
            containers=runs_containers(data),
            has_identity=bool(block.values.get("identity")),
            spot=document.text(block, "priority") == "Spot",
            location=document.location(block),
        )


def _providers(document: Document) -> Iterator[Provider]:
    for block in document.of(
        "azurerm_federated_identity_credential", "azuread_application_federated_identity_credential"
    ):
        subject = document.text(block, "subject")
        owner = next(
            (o for name in ("parent_id", "user_assigned_identity_id") if (o := document.target(block, name, IDENTITY))),
            None,
        )
        yield Provider(
            cloud=Cloud.AZURE,
            origin=document.origin(block),
            issuer=document.text(block, "issuer"),
            audiences=document.words(block, "audience") or document.words(block, "audiences"),
            condition=f"sub == '{subject}'" if subject else "",
            opens=document.origin(owner) if owner else "",
            location=document.location(block),
        )
