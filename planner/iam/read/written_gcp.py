"""The blocks with rights in them that skyplan's Google stacks are made of, from their inputs: `modules.gcp` without a CDK."""

from __future__ import annotations

import re
from typing import Any

from planner.iam.read.written import Blocks, add, boots, digits, empty, labels, literal
from planner.model.control_names import DATA_ACCOUNT, data_identity_name, role_id
from planner.model.grants import Identity
from planner.model.offer import CapacityType, Cloud
from planner.model.stack import AccessInput, AnyStack, ComputeInput, ControlIdentity, FoundationInput, PolicyDocument

_MEMBERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "managed_folder": ("google_storage_managed_folder_iam_member", ("bucket", "managed_folder")),
    "bucket": ("google_storage_bucket_iam_member", ("bucket",)),
    "secret": ("google_secret_manager_secret_iam_member", ("project", "secret_id")),
}
_GIVEN_TO_ACCOUNT = "google_service_account_iam_member"
_CUSTOM = "google_project_iam_custom_role"
_ILLEGAL = re.compile(r"[^a-z0-9-]+")
_ROOM = 30 - len("skyplan--") - 8


def blocks(given: AnyStack) -> Blocks:
    """Of a stack of any kind."""
    out = empty()
    if isinstance(given, AccessInput):
        _access(out, given)
    elif isinstance(given, ComputeInput):
        _compute(out, given)
    elif isinstance(given, FoundationInput):
        for one in given.identities:
            _control(out, given, one)
            if one.identity is Identity.BROKER:
                _data(out, given)
        _federation(out, given)
    return out


def provider(given: AnyStack) -> dict[str, Any]:
    """Its arguments, as far as names are made of them."""
    return {"google": {"project": given.account}} if given.account else {"google": {}}


def _access(out: Blocks, given: AccessInput) -> None:
    job = given.workload.name
    kept = _ILLEGAL.sub("-", job.lower()).strip("-")[:_ROOM].strip("-")
    add(
        out,
        "google_service_account",
        "nodes",
        {
            "account_id": f"skyplan-{kept}-{digits(f'{given.project}/{given.name}')}",
            "description": literal(f"skyplan-managed; project {given.project}; job {job}; data rights only"),
        },
    )
    for policy in given.policies:
        for binding in policy.document["bindings"]:
            kind, keys = _MEMBERS[binding["kind"]]
            place = {key: literal(binding[key]) for key in keys if binding.get(key)}
            # each right once, whichever identities need it
            name = digits("/".join((binding["role"], *place.values())))
            add(out, kind, name, {**place, "role": binding["role"], "member": "${google_service_account.nodes.member}"})
    if given.orchestrator:
        values = {
            "service_account_id": "${google_service_account.nodes.name}",
            "role": "roles/iam.serviceAccountUser",
            "member": literal(f"serviceAccount:{given.orchestrator}"),
        }
        add(out, _GIVEN_TO_ACCOUNT, "orchestrator", values)


def _compute(out: Blocks, given: ComputeInput) -> None:
    spot = given.capacity is CapacityType.SPOT
    values = {
        "service_account": {"email": "${var.node_account}"},
        "scheduling": {"provisioning_model": "SPOT" if spot else "STANDARD"},
        "metadata": {"user-data": boots(given.workload, given.node)},
        "labels": labels(given),
    }
    add(out, "google_compute_instance", "node", values)


def _control(out: Blocks, given: FoundationInput, one: ControlIdentity) -> None:
    word = one.identity.value
    described = f"skyplan-managed; project {given.project}; {word}; no key is ever made"
    add(out, "google_service_account", word, {"account_id": one.name, "description": described})
    for policy in one.policies:
        _role(out, given, policy, f"${{google_service_account.{word}.member}}")
    account = {"service_account_id": f"${{google_service_account.{word}.name}}"}
    for number, member in enumerate(one.trusted, start=1):
        _become(out, given)
        values = {**account, "role": f"${{{_CUSTOM}.become.name}}", "member": literal(member)}
        add(out, _GIVEN_TO_ACCOUNT, f"{word}-{number}", values)
    for number, subject in enumerate(one.subjects if given.ci else (), start=1):
        pool = "${google_iam_workload_identity_pool.ci.name}"
        member = f"principal://iam.googleapis.com/{pool}/subject/{literal(subject)}"
        values = {**account, "role": "roles/iam.workloadIdentityUser", "member": member}
        add(out, _GIVEN_TO_ACCOUNT, f"{word}-ci-{number}", values)


def _become(out: Blocks, given: FoundationInput) -> None:
    values = {
        "project": given.account,
        "role_id": role_id(given.project, "become"),
        "permissions": ["iam.serviceAccounts.getAccessToken"],
    }
    add(out, _CUSTOM, "become", values)


def _data(out: Blocks, given: FoundationInput) -> None:
    """What the broker becomes."""
    name = data_identity_name(Cloud.GCP, given.project, "", ("", "", ""))
    described = f"skyplan-managed; project {given.project}; data of jobs, by the broker; no key is ever made"
    add(out, "google_service_account", DATA_ACCOUNT, {"account_id": name, "description": described})
    _become(out, given)
    values = {
        "service_account_id": f"${{google_service_account.{DATA_ACCOUNT}.name}}",
        "role": f"${{{_CUSTOM}.become.name}}",
        "member": "serviceAccount:${google_service_account.broker.email}",
    }
    add(out, _GIVEN_TO_ACCOUNT, f"{DATA_ACCOUNT}-broker", values)


def _role(out: Blocks, given: FoundationInput, policy: PolicyDocument, member: str) -> None:
    document = policy.document
    values = {"project": given.account, "role_id": document["role"], "permissions": document["permissions"]}
    add(out, _CUSTOM, policy.name, values)
    condition = document.get("condition")
    bound = {
        "role": f"${{{_CUSTOM}.{policy.name}.name}}",
        "member": member,
        "condition": {"expression": literal(condition["expression"])} if condition else None,
        **document["on"],
    }
    kind = "google_storage_bucket_iam_member" if "bucket" in document["on"] else "google_project_iam_member"
    add(out, kind, policy.name, bound)


def _federation(out: Blocks, given: FoundationInput) -> None:
    subjects = sorted({subject for one in given.identities for subject in one.subjects})
    if given.ci is None or not subjects:
        return
    listed = ", ".join(f"'{subject}'" for subject in subjects)
    values = {
        "attribute_condition": literal(f"assertion.sub in [{listed}]"),
        "oidc": {"issuer_uri": given.ci.issuer, "allowed_audiences": [given.ci.audience]},
    }
    add(out, "google_iam_workload_identity_pool_provider", "ci", values)
