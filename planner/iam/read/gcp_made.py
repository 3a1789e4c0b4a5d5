"""What Google makes of a block, as far as it follows from what is written: emails, members, names of roles.  Raises KeyError for the rest."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from planner.iam.read.references import Block, Computed, Document


def project_of(document: Document, block: Block) -> str:
    """The project that a block is in: its own, the provider's, or a word for the one that is not said."""
    own = document.text(block, "project") or str(document.providers.get("google", {}).get("project") or "")
    return own or "${provider.google.project}"


def _account(document: Document, block: Block, name: str) -> Any:
    project, account = project_of(document, block), document.text(block, "account_id")
    if "${" in project or "${" in account or not account:
        raise KeyError(name)
    email = f"{account}@{project}.iam.gserviceaccount.com"
    made = {
        "email": email,
        "member": f"serviceAccount:{email}",
        "name": f"projects/{project}/serviceAccounts/{email}",
        "id": f"projects/{project}/serviceAccounts/{email}",
    }
    return made[name]


def _role(document: Document, block: Block, name: str) -> Any:
    if name not in {"id", "name"}:
        raise KeyError(name)
    return f"projects/{project_of(document, block)}/roles/{document.text(block, 'role_id')}"


def _organization_role(document: Document, block: Block, name: str) -> Any:
    if name not in {"id", "name"}:
        raise KeyError(name)
    return f"organizations/{document.text(block, 'org_id')}/roles/{document.text(block, 'role_id')}"


def _bucket(document: Document, block: Block, name: str) -> Any:
    if name not in {"id", "name"}:
        raise KeyError(name)
    return document.text(block, "name") or f"${{{block.address}.name}}"


def _secret(document: Document, block: Block, name: str) -> Any:
    full = f"projects/{project_of(document, block)}/secrets/{document.text(block, 'secret_id')}"
    return {"id": full, "name": full}[name]


def _policy(document: Document, block: Block, name: str) -> Any:
    if name != "policy_data":
        raise KeyError(name)
    return json.dumps({"bindings": document.items(block, "binding")})


COMPUTED: Mapping[str, Computed] = {
    "google_service_account": _account,
    "google_project_iam_custom_role": _role,
    "google_organization_iam_custom_role": _organization_role,
    "google_storage_bucket": _bucket,
    "google_secret_manager_secret": _secret,
    "data.google_iam_policy": _policy,
}
