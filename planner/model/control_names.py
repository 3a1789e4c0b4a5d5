"""Names that the foundation stack gives and a job's access stack looks for: control identities, their roles, where state lies.  Pure.

Both sides derive them from the project, so that neither has to be told the other's outputs.
"""

from __future__ import annotations

import hashlib
import uuid

from planner.model.grants import Identity
from planner.model.offer import Cloud

#: what each kind of stack's name begins with, by who keeps its state
STATE_OF = {Identity.DEPLOYER: ("acc-", "adr-", "net-"), Identity.ORCHESTRATOR: ("cmp-",)}
#: Azure: roles that an access stack assigns, made once by the foundation
CHECKPOINTS, IDENTITY_USER, NODE_JOIN = "checkpoints", "identity-user", "node-join"
#: Azure: the broker's role: to sign, and what it signs for.  GCP: word of the account that the broker becomes
MINTS, DATA_ACCOUNT = "broker-mints", "data"
_DIGITS = 8
#: keys of the tags that a session of a data identity carries, and no others; AWS: its trust policy says so
SESSION_TAGS = ("skyplan:generation", "skyplan:job", "skyplan:project", "skyplan:rank")
#: seconds: a broker that became one role holds the next for an hour at most (role chaining; STS, AssumeRole, 2026-11)
DATA_SESSION_SECONDS = 3600


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


def data_identity_name(cloud: Cloud, project: str, job: str, place: tuple[str, str, str]) -> str:
    """What the broker becomes for a job's nodes, in the store's `cloud`.

    place  (cloud, target, region) that the nodes run in: on AWS and Nebius each access stack makes an identity of its own
    AWS    a role's name
    GCP    an account's id: one for the project, made by the foundation, so that whoever deploys can let nobody become anything; access stacks give it prefixes
    Azure  "": nothing can be become there; the broker signs with its own rights, which the foundation gives it
    Nebius a service account's name, whose keys the broker makes
    """
    text = f"skyplan-{project}-dat-{job}--{'-'.join(place)}"
    digits = hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]
    match cloud:
        case Cloud.AWS:
            return text if len(text) <= 64 else f"{text[:55]}-{digits}"  # noqa: PLR2004 - IAM: a role's name
        case Cloud.GCP:
            return control_name(project, DATA_ACCOUNT, limit=30)
        case Cloud.NEBIUS:
            return text if len(text) <= 63 else f"{text[:54]}-{digits}"  # noqa: PLR2004 - Nebius: any name
        case Cloud.AZURE:
            return ""


def data_identity(
    cloud: Cloud, account: str, project: str, job: str, place: tuple[str, str, str], *, partition: str = "aws"
) -> str:
    """The same in full, as the broker asks the cloud for it: a role's ARN, an account's email; on Nebius and Azure as `data_identity_name`.

    account  of the target that holds it: 12 digits, the GCP project
    """
    name = data_identity_name(cloud, project, job, place)
    match cloud:
        case Cloud.AWS:
            return f"arn:{partition}:iam::{account}:role{data_path(project)}{name}"
        case Cloud.GCP:
            return f"{name}@{account}.iam.gserviceaccount.com"
        case _:
            return name


def data_path(project: str) -> str:
    """AWS: where data identities live; apart from the nodes' roles, since their boundary is another."""
    return f"/skyplan/{project}/data/"
