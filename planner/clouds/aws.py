"""AWS by boto3: listing and ending machines by tag.  boto3 is imported when a lister is made, never before.

Pagination, retries of throttled calls and the mapping of errors are here; which machines are wanted is the caller's business.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from planner.clouds.asked import of_aws
from planner.clouds.port import RANK_TAG, Instance, Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart

T = TypeVar("T")

#: a machine that ends is no machine any more: it takes no capacity and cannot be kept
EXISTING = ["pending", "running", "stopping", "stopped"]
GONE = "InvalidInstanceID.NotFound"
TERMINATED_AT_ONCE = 100


class AwsLister:
    """One region as one role."""

    def __init__(self, where: Where) -> None:
        try:
            import boto3  # noqa: PLC0415 - half a second, and optional
            from botocore.config import Config  # noqa: PLC0415
        except ImportError as error:
            summary = "looking at AWS needs boto3; install the extra `aws` from your checkout of skyplan: pip install '.[aws]'"
            raise MissingPart([Diagnostic(code="SKY-APPLY-316", summary=summary)]) from error
        config = Config(retries={"mode": "standard", "max_attempts": 5}, connect_timeout=10, read_timeout=60)
        self._ec2: Any = of_aws("the client", lambda: _client(boto3, config, where))
        self._zones: dict[str, str] | None = None

    def instances(self, *, project: str, job: str | None, generation: int | None = None) -> tuple[Instance, ...]:
        """See `ResourceLister`."""
        tags = {"skyplan:project": project} | ({"skyplan:job": job} if job is not None else {})
        if generation is not None:
            tags["skyplan:generation"] = str(generation)
        filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in tags.items()]
        filters.append({"Name": "instance-state-name", "Values": EXISTING})

        def ask() -> list[dict[str, Any]]:
            pages = self._ec2.get_paginator("describe_instances").paginate(Filters=filters)
            return [i for page in pages for r in page["Reservations"] for i in r["Instances"]]

        found = [self._instance(i) for i in of_aws("DescribeInstances", ask)]
        return tuple(sorted(found, key=lambda i: (i.rank, i.launched_at, i.id)))

    def terminate(self, ids: Sequence[str]) -> None:
        """See `ResourceLister`.  AWS ends none of a batch in which one is unknown, so after such an answer each is ended alone."""
        for start in range(0, len(ids), TERMINATED_AT_ONCE):
            batch = list(ids[start : start + TERMINATED_AT_ONCE])
            if not self._ended(batch) and len(batch) > 1:
                for one in batch:
                    self._ended([one])

    def _ended(self, ids: list[str]) -> bool:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - optional

        def ask() -> bool:
            try:
                self._ec2.terminate_instances(InstanceIds=ids)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") == GONE:
                    return False
                raise
            return True

        return of_aws("TerminateInstances", ask)

    def _instance(self, found: dict[str, Any]) -> Instance:
        placement = found.get("Placement", {})
        tags = {t["Key"]: t["Value"] for t in found.get("Tags", [])}
        return Instance(
            id=found["InstanceId"],
            state=found["State"]["Name"],
            zone=placement.get("AvailabilityZoneId") or self._zone_id(placement.get("AvailabilityZone", "")),
            instance_type=found.get("InstanceType", ""),
            capacity="spot" if found.get("InstanceLifecycle") == "spot" else "on_demand",
            address=found.get("PrivateIpAddress", ""),
            launched_at=str(found.get("LaunchTime", "")),
            tags={k: v for k, v in tags.items() if k.startswith("skyplan:") or k == RANK_TAG},
        )

    def _zone_id(self, name: str) -> str:
        """Zone names differ between accounts; ids do not."""
        if self._zones is None:
            answer = of_aws(
                "DescribeAvailabilityZones", lambda: self._ec2.describe_availability_zones(AllAvailabilityZones=True)
            )
            self._zones = {z["ZoneName"]: z["ZoneId"] for z in answer["AvailabilityZones"]}
        return self._zones.get(name, name)


def _client(boto3: Any, config: Any, where: Where) -> Any:
    session = boto3.session.Session(region_name=where.region)
    if where.role is None:
        return session.client("ec2", config=config)
    answer = session.client("sts", config=config).assume_role(RoleArn=where.role, RoleSessionName="skyplan")
    given = answer["Credentials"]
    return session.client(
        "ec2",
        config=config,
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
