"""What AWS makes of a block, as far as it follows from what is written: names, ARNs, the JSON of a policy document.  Raises KeyError for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.iam.read.aws_documents import as_json
from planner.iam.read.aws_policies import DOCUMENT, POLICY, statements_of
from planner.iam.read.expressions import reference
from planner.iam.read.references import Block, Computed, Document, many


def _account(document: Document) -> str:
    """The one account that the provider is bound to.  Raises KeyError."""
    given = document.providers.get("aws", {}).get("allowed_account_ids")
    accounts = [str(item) for item in many(given)]
    if len(accounts) != 1 or not accounts[0].isdigit():
        raise KeyError("account")
    return accounts[0]


def partition(document: Document) -> str:
    """Of the provider's region."""
    region = str(document.providers.get("aws", {}).get("region") or "")
    return {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(region.rpartition("-")[0].rpartition("-")[0], "aws")


def _iam(resource: str) -> Computed:
    def made(document: Document, block: Block, name: str) -> Any:
        if name in {"id", "name"} and resource != "policy":
            return _named(document, block)
        if name in {"arn", "id"}:
            path = document.text(block, "path") or "/"
            return f"arn:{partition(document)}:iam::{_account(document)}:{resource}{path}{_named(document, block)}"
        raise KeyError(name)

    return made


def _named(document: Document, block: Block) -> str:
    name = document.text(block, "name")
    if not name or reference(name):
        raise KeyError("name")
    return name


def _json(document: Document, block: Block, name: str) -> Any:
    if name in {"json", "minified_json"}:
        try:
            return as_json(statements_of(document, block), document.text(block, "version"))
        except ValueError as error:
            raise KeyError(name) from error
    raise KeyError(name)


def _bucket(document: Document, block: Block, name: str) -> Any:
    bucket = document.text(block, "bucket")
    if not bucket or name not in {"id", "arn"}:
        raise KeyError(name)
    return bucket if name == "id" else f"arn:{partition(document)}:s3:::{bucket}"


def _caller(document: Document, block: Block, name: str) -> Any:
    del block
    if name in {"account_id", "id"}:
        return _account(document)
    raise KeyError(name)


def _here(document: Document, block: Block, name: str) -> Any:
    del block
    if name in {"partition", "id"}:
        return partition(document)
    raise KeyError(name)


COMPUTED: Mapping[str, Computed] = {
    "aws_iam_role": _iam("role"),
    "aws_iam_user": _iam("user"),
    "aws_iam_group": _iam("group"),
    "aws_iam_instance_profile": _iam("instance-profile"),
    POLICY: _iam("policy"),
    "aws_s3_bucket": _bucket,
    f"data.{DOCUMENT}": _json,
    "data.aws_caller_identity": _caller,
    "data.aws_partition": _here,
}
