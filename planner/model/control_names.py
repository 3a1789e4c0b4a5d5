"""Names that the foundation stack gives and a job's access stack looks for: control identities, their roles, where state lies.  Pure.

Both sides derive them from the project, so that neither has to be told the other's outputs.
"""

from __future__ import annotations

import hashlib
import uuid

from planner.model.grants import Identity

#: what each kind of stack's name begins with, by who keeps its state
STATE_OF = {Identity.DEPLOYER: ("acc-", "adr-", "net-"), Identity.ORCHESTRATOR: ("cmp-",)}
#: Azure: roles that an access stack assigns, made once by the foundation
CHECKPOINTS, IDENTITY_USER, NODE_JOIN = "checkpoints", "identity-user", "node-join"
_DIGITS = 8


def control_name(project: str, word: str, *, limit: int = 63) -> str:
    """`skyplan-PROJECT-WORD`; where that is too long, the end is 8 hex digits of the whole."""
    text = f"skyplan-{project}-{word}"
    if len(text) <= limit:
        return text
    return f"{text[: limit - _DIGITS - 1].rstrip('-')}-{hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]}"


def state_prefixes(project: str, identity: Identity) -> tuple[str, ...]:
    """What the keys of the states begin with that the identity reads and writes: `skyplan/acme/cmp-`."""
    return tuple(f"skyplan/{project}/{kind}" for kind in STATE_OF.get(identity, ()))


def role_id(project: str, word: str) -> str:
    """GCP: `skyplan_acme_orchestrator_owns`: a custom role's id has no dash and at most 64 characters."""
    return control_name(project, word, limit=64).replace("-", "_")


def role_name(project: str, target: str, word: str) -> str:
    """Azure: name of a role that the foundation makes.  Names are one space for all subscriptions of a tenant, so the target is in it."""
    return control_name(project, f"{target}-{word}", limit=128)


def role_guid(subscription: str, project: str, target: str, word: str) -> str:
    """Azure: id of a role that the foundation makes, known before it is made, so that a condition can name it."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"skyplan:{subscription.lower()}/{project}/{target}/{word}"))
