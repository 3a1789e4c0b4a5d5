"""The page of docs on what GCP, Azure and Nebius give the control identities, and what they cannot say: written from the renderers, never by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.model.offer import Cloud
from tests.stacks.control_inputs import CLOUDS, renderer, scope

TITLES = {Cloud.GCP: "GCP", Cloud.AZURE: "Azure", Cloud.NEBIUS: "Nebius"}
INTRODUCTION = """# Control identities on GCP, Azure and Nebius

`skyplan foundation` writes them; the platform team applies the stack once. The tables are of a project `acme` on a target `prod` whose Terraform state is in the
same cloud. Nothing of this was run against a live cloud: stacks are held to the providers' schemas, conditions are judged by skyplan's own evaluator.

What a target must have before: on GCP a project of the cloud that skyplan has for itself, as far as that can be; on Azure a resource group (`resource_group`); on
Nebius a project without buckets, and `tenant`. Beside the tables, a job's access stack gives the orchestrator what is one job's own: on GCP
`roles/iam.serviceAccountUser` on the nodes' service account, on Azure the roles `identity-user` and `node-join` on the job's identity, rules and group. That needs
`orchestrator_role` of the target, which is what the foundation's output `skyplan_yaml` says.

CI comes in without a key where the cloud compares issuer, audience and subject of a token: pull requests become the planner, the protected branch the deployer and
the orchestrator. Nebius compares no audience, so there it gets nothing (SKY-IAM-402).
"""


def page() -> str:
    """All of it, as Markdown."""
    return "\n".join([INTRODUCTION, *(line for cloud in CLOUDS for line in _cloud(cloud))])


def _cloud(cloud: Cloud) -> Iterator[str]:
    made = renderer(cloud)
    yield from (
        f"## {TITLES[cloud]}",
        "",
        "| role | rights | where | on which condition | why |",
        "|---|---|---|---|---|",
    )
    limits: dict[str, list[str]] = {}
    for one in made.identities(scope(cloud)):
        if not one.policies:
            yield f"| {one.identity.value} | none yet | | | see what is not given |"
        for policy in one.policies:
            document = policy.document
            for limit in document["limits"]:
                limits.setdefault(limit, []).append(policy.name)
            cells = (policy.name, _rights(document), _where(document), _condition(document), document["reason"])
            yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"
    yield from ("", f"What {TITLES[cloud]} cannot say:", "")
    yield from (f"- {limit} ({', '.join(names)})." for limit, names in limits.items())
    yield from ("", "What an operation takes and is not given here:", "")
    yield from (f"- `{action}`: {why}." for action, why in made.WITHHELD.items())
    yield ""


def _rights(document: dict[str, Any]) -> str:
    found = [
        *document.get("permissions", ()),
        *document.get("actions", ()),
        *document.get("data_actions", ()),
        *document.get("roles", ()),
        *(
            (document["role"],)
            if "permissions" not in document and "actions" not in document and "role" in document
            else ()
        ),
    ]
    return " ".join(f"`{one}`" for one in found)


def _where(document: dict[str, Any]) -> str:
    if "bucket" in document:
        return f"bucket {document['bucket']}: {' '.join(document['paths'])}"
    on = document["on"]
    if on is None:
        return "one thing of a job, by its access stack"
    text = on if isinstance(on, str) else " ".join(f"{key} {value}" for key, value in on.items())
    return f"{text}; `{document['elsewhere']}`" if "elsewhere" in document else text


def _condition(document: dict[str, Any]) -> str:
    found = document.get("condition", "")
    text = found if isinstance(found, str) else found["expression"]
    return f"`{text}`" if text else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
