"""The page of docs on what GCP, Azure and Nebius give the control identities, what they cannot say, and how CI comes in: tables from the renderers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.model.offer import Cloud
from tests.stacks.control_inputs import CLOUDS, renderer, scope

TITLES = {Cloud.GCP: "GCP", Cloud.AZURE: "Azure", Cloud.NEBIUS: "Nebius"}
AWS_ROLE = "arn:aws:iam::123456789012:role/skyplan-foundation/acme/skyplan-acme"
INTRODUCTION = f"""# Control identities, and how CI becomes them

`skyplan foundation` writes them; the platform team applies the stack once. The tables are of a project `acme` on a target `prod` whose Terraform state is in the
same cloud; what AWS is granted, and what for, is in [iam-proof.md](iam-proof.md). Nothing of this was run against a live cloud: stacks are held to the providers'
schemas, conditions are judged by skyplan's own evaluator.

What a target must have before: on GCP a project of the cloud that skyplan has for itself, as far as that can be; on Azure a resource group (`resource_group`); on
Nebius a project without buckets, and `tenant`. Beside the tables, a job's access stack gives the orchestrator what is one job's own: on GCP
`roles/iam.serviceAccountUser` on the nodes' service account, on Azure the roles `identity-user` and `node-join` on the job's identity, rules and group. That needs
`orchestrator_role` of the target, which is what the foundation's output `skyplan_yaml` says.

## CI

CI comes in without a key where the cloud compares issuer, audience and subject of a token. Pull requests become the planner and nothing else; `plan` and `audit`
work from files, so in this version a pull request needs no cloud credentials at all. A job of the protected branch that runs `skyplan apply` needs two identities in
one process: the deployer for the stacks `net`, `adr` and `acc`, the orchestrator for `cmp` and for listing and ending machines. skyplan takes each of them on by the
target's `deployer_role` and `orchestrator_role`; what CI itself is configured with only begins the session. Terraform's state is kept by the role that applies the
stack, where the backend lies in the stack's own cloud (S3 for AWS, GCS for GCP, azurerm for Azure). State of a stack on another cloud than the backend's is reached
with the job's first credentials, to which the foundation gives nothing there: keep state in the cloud that jobs run in, or give that right yourself.

`repo:OWNER/NAME:ref:refs/heads/main` is compared whole, so a job that names a GitHub `environment`, or a repository whose subjects are customised, does not come in
(use `provider: other` and write both subjects). Never run a pull request's code in a workflow on `pull_request_target`, `workflow_run` or `issue_comment`: such jobs
may carry the branch's token. Every job needs `permissions: {{id-token: write, contents: read}}`.

### AWS

A session that a CI token began has one role for good, so the token of the protected branch opens `skyplan-PROJECT-ci`. It may become planner, deployer and
orchestrator of the project (`sts:AssumeRole` on three ARNs) and do nothing else; their trust names it, and no longer believes the token. The broker is not behind it.
The output `ci` has both ARNs.

<!-- fragment: GitHub workflow -->
```yaml
apply:    # on push to main
  - uses: aws-actions/configure-aws-credentials@v4
    with:
      role-to-assume: {AWS_ROLE}-ci
      aws-region: us-east-1
  - run: skyplan apply plans/sft.plan.json
pull-request:    # only where something in it asks AWS
  - uses: aws-actions/configure-aws-credentials@v4
    with:
      role-to-assume: {AWS_ROLE}-planner
      aws-region: us-east-1
```

AWS holds a session that one role begins as another ("role chaining") to one hour. Terraform's provider and its S3 backend begin a new one when it ends, and skyplan
begins one per place that it lists, as long as the first session lives. That one lasts an hour as well: the action asks for no more, and the foundation leaves the
role's longest session at AWS's default. An apply that takes longer is refused in the middle (`ExpiredToken`); what it made is in the record and in the state, and the
next `skyplan apply` goes on from there. GitLab: `AWS_ROLE_ARN` and `AWS_WEB_IDENTITY_TOKEN_FILE`, with a token for `sts.amazonaws.com`.

### GCP

The job's token is traded for one of the pool's (direct federation: no `service_account` here); with that, Terraform's provider, its GCS backend and skyplan each take
on the service account that the stack names. `iamcredentials.googleapis.com` and `sts.googleapis.com` must be enabled. Tokens are renewed as long as the job runs. The
output `ci` has the provider's name.

<!-- fragment: GitHub workflow -->
```yaml
apply:
  - uses: google-github-actions/auth@v2
    with:
      workload_identity_provider: projects/123456789012/locations/global/workloadIdentityPools/skyplan-acme/providers/ci
      audience: skyplan
  - run: skyplan apply plans/sft.plan.json
```

### Azure

Each identity believes the token itself; the stack's provider and backend, and skyplan's own calls, are told which client id to be, and ask GitHub for a new token each
time. No login action, and no `ARM_CLIENT_ID`. The output `ci` has the client ids.

<!-- fragment: GitHub workflow -->
```yaml
apply:
  - run: skyplan apply plans/sft.plan.json
    env:
      ARM_USE_OIDC: "true"
      ARM_USE_AZUREAD: "true"    # state by role, not by the storage account's key
      ARM_TENANT_ID: 00000000-0000-0000-0000-000000000000
```

GitLab: a token for `api://AzureADTokenExchange` in `ARM_OIDC_TOKEN`, which is not renewed. Whoever is signed in to the Azure CLI instead acts as himself.

### Nebius

It compares no audience of a token, so CI gets nothing there (SKY-IAM-402): a person, or a machine with a service account of its own, runs `apply` by a profile.
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
