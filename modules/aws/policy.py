"""IAM policy documents as `aws_iam_policy_document` data sources, so that scanners of Terraform code see every statement."""

# pyright: basic

from __future__ import annotations

import re
from typing import Any

from modules import cdk

#: `${…}` that is not a reference to something in the stack is a policy variable
_VARIABLE = re.compile(r"\$\{(?!(?:data\.)?aws_[a-z0-9_]+\.)")


def policy_document(scope: cdk.Construct, name: str, document: dict[str, Any]) -> cdk.DataSource:
    """The data source that renders a policy document given in IAM's own JSON shape."""
    return cdk.DataSource(
        scope,
        name,
        "aws_iam_policy_document",
        {"statement": [_statement(statement) for statement in document["Statement"]]},
    )


def _statement(statement: dict[str, Any]) -> dict[str, Any]:
    conditions = [
        {"test": test, "variable": variable, "values": _many(values)}
        for test, variables in sorted(statement.get("Condition", {}).items())
        for variable, values in sorted(variables.items())
    ]
    principals = [
        {"type": kind, "identifiers": _many(names)} for kind, names in sorted(statement.get("Principal", {}).items())
    ]
    return {
        "sid": statement.get("Sid"),
        "effect": statement["Effect"],
        "actions": _many(statement["Action"]),
        "resources": _many(statement["Resource"]) if "Resource" in statement else None,
        "not_resources": _many(statement["NotResource"]) if "NotResource" in statement else None,
        "condition": conditions or None,
        "principals": principals or None,
    }


def _many(value: str | list[str]) -> list[str]:
    """A list; policy variables `${…}` become `&{…}`, as the data source wants them.  References to what the stack makes stay."""
    return [_VARIABLE.sub("&{", item) for item in ([value] if isinstance(value, str) else value)]
