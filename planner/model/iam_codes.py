"""The rules of the audit as codes: what each means and what to do.  How a rule is found, and how bad it is, stands with the rule (`planner.iam.audit`)."""

from __future__ import annotations

ROWS: tuple[tuple[str, str, str], ...] = (
    # 1xx: launch scope
    ("SKY-IAM-101", "machines may be launched without the project's tag", "require aws:RequestTag/skyplan:project"),
    ("SKY-IAM-102", "machines of others may be ended", "bind ending to the project's tag, name or resource group"),
    ("SKY-IAM-103", "tags may be put on what exists: anything can be made one's own", "require ec2:CreateAction"),
    ("SKY-IAM-104", "any machine type may be launched: cost has no bound", "list the types"),
    ("SKY-IAM-105", "machines may be launched with any identity, or with none", "name the one they carry"),
    ("SKY-IAM-106", "machines may be launched in any region", "bind the region"),
    ("SKY-IAM-107", "machines may be launched from anybody's image", "bind the image's owner"),
    ("SKY-IAM-108", "a Nebius role that also reaches data", "keep compute and buckets in projects of their own"),
    ("SKY-IAM-109", "a wildcard where the list of actions is known", "name the actions"),
    ("SKY-IAM-110", "spot is planned but spot requests may not be made or tagged", "add spot-instances-request/*"),
    # 2xx: privilege escalation
    ("SKY-IAM-201", "any role may be handed to a machine that one can start", "name the one role"),
    ("SKY-IAM-202", "a role may be handed to any service", "require iam:PassedToService"),
    ("SKY-IAM-203", "a role with more rights than one's own may be handed on", "hand on a smaller role"),
    ("SKY-IAM-204", "any role may be handed to a spot request", "name the one role"),
    ("SKY-IAM-205", "a machine's user data may be changed and run", "drop ModifyInstanceAttribute"),
    ("SKY-IAM-206", "a launch template may be rewritten and made the default", "drop one of the two"),
    ("SKY-IAM-207", "a running machine's role may be swapped", "drop the association actions"),
    ("SKY-IAM-208", "policies may be written or attached: one can give oneself anything", "require a boundary"),
    ("SKY-IAM-209", "who may assume a role may be changed", "drop iam:UpdateAssumeRolePolicy"),
    ("SKY-IAM-210", "credentials of others may be made", "drop the credential makers"),
    ("SKY-IAM-211", "a role may be handed to a service that runs code", "drop PassRole or the service's create action"),
    ("SKY-IAM-212", "code may be run on machines", "drop it, or bind it to tagged machines"),
    (
        "SKY-IAM-213",
        "a permission that lets a Google identity become another",
        "bind it to the one account, or drop it",
    ),
    (
        "SKY-IAM-214",
        "a permission that lets an Azure identity become another",
        "bind it to the one identity, or drop it",
    ),
    ("SKY-IAM-215", "roles may be made without a permissions boundary", "require iam:PermissionsBoundary"),
    ("SKY-IAM-216", "administrator", "give what is needed"),
    # 3xx: data access
    ("SKY-IAM-301", "objects may be read beyond the prefix that the job names", "name the prefix"),
    ("SKY-IAM-302", "a whole bucket may be listed", "require s3:prefix"),
    (
        "SKY-IAM-303",
        "an action and its resource never meet: a dead grant",
        "objects for objects, the bucket for the bucket",
    ),
    ("SKY-IAM-304", "listing under a condition on object names: it fails, or tells all names", "use a managed folder"),
    ("SKY-IAM-305", "a node's identity reaches the control plane", "keep data and control apart"),
    ("SKY-IAM-306", "a node may write or delete beyond its checkpoints", "bound it to the checkpoint prefix"),
    ("SKY-IAM-307", "a key may be used without bound", "name the key, require kms:ViaService"),
    ("SKY-IAM-308", "the public has access", "name who"),
    ("SKY-IAM-309", "a bucket of any account of that name is trusted", "require s3:ResourceAccount"),
    # 4xx: trust and federation
    ("SKY-IAM-401", "anybody, or a whole account, may become this identity", "name the principals"),
    ("SKY-IAM-402", "a web identity is trusted without audience and subject", "require both"),
    ("SKY-IAM-403", "a provider of identities has no condition", "add attribute_condition"),
    (
        "SKY-IAM-404",
        "another account or service is trusted without a second key",
        "require ExternalId or SourceAccount",
    ),
    # 5xx: lifetime and secrets
    ("SKY-IAM-501", "a long-lived key", "use short-lived credentials"),
    ("SKY-IAM-502", "a credential's lifetime is too short to renew or longer than the cloud gives", "30 to 60 minutes"),
    ("SKY-IAM-503", "the run outlives its credential, which is not renewed", "renew it without a restart"),
    ("SKY-IAM-504", "a secret where it can be read", "give a reference"),
    ("SKY-IAM-505", "a machine's credentials can be had by a forged request", "IMDSv2 with hop limit 1"),
    # 6xx: meaning and change
    ("SKY-IAM-601", "a condition key that this action never has: a dead grant", "drop it or use the key that is there"),
    ("SKY-IAM-602", "a guard that is open where its key is missing", "use the operator without IfExists or with Null"),
    ("SKY-IAM-603", "an Allow by exclusion", "name what is allowed"),
    ("SKY-IAM-604", "not a well-formed policy", "see the message"),
    ("SKY-IAM-605", "this change grants more than its base", "review it"),
    ("SKY-IAM-606", "granted, but no planned operation needs it", "drop it"),
    # the audit itself
    ("SKY-IAM-901", "a suppression has expired", "remove it, or have it renewed by the owner of skyplan.yaml"),
    (
        "SKY-IAM-902",
        "what is to be audited cannot be read",
        "no rule judges it: give a form that is read, or review it by hand",
    ),
    ("SKY-IAM-903", "a live account differs from its plan", "apply the plan, or take the change into it"),
    ("SKY-IAM-904", "a suppression matches nothing", "remove it"),
    (
        "SKY-IAM-905",
        "a suppression without `grant` accepts what its rule finds anywhere, also what is not there yet",
        "add `grant`: where the finding stands, as its line `in:` shows it, or whose right it is",
    ),
    ("SKY-IAM-906", "a plan is not of what its job file asks for now", "plan again, and audit again"),
    ("SKY-IAM-907", "nobody of that name was read", "name one of those that are known here"),
)
