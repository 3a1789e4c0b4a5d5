"""AWS' checkup by boto3: GetCallerIdentity, the feeds' calls with one row each, ListObjectsV2 with one key.

GetSpotPlacementScores is left out: AWS counts new questions by the day.  Never run against live AWS: against moto.
"""

# pyright: basic

from __future__ import annotations

from typing import Any

from planner.clouds import errors_map
from planner.clouds.asked import of_aws
from planner.clouds.checkup.port import ANSWER_SECONDS, CONNECT_SECONDS, Caller, Now, Right, Seen, here, skew, tried
from planner.clouds.feeds.aws import LINUX, PRICING_REGION
from planner.clouds.port import Where
from planner.model.errors import CloudError
from planner.model.project import Backend


class AwsCheckup:
    """One account; a client for each service when it is first asked."""

    def __init__(self, where: Where, *, now: Now = here) -> None:
        try:
            import boto3  # noqa: PLC0415 - half a second, and optional
            from botocore.config import Config  # noqa: PLC0415
        except ImportError as error:
            raise errors_map.missing("AWS", "boto3", "aws") from error
        self._config = Config(
            retries={"total_max_attempts": 2}, connect_timeout=CONNECT_SECONDS, read_timeout=ANSWER_SECONDS
        )
        self._session = of_aws("the credentials", lambda: _session(boto3, where))
        self._region = where.region
        self._now = now
        self._clients: list[Any] = []

    def caller(self) -> Seen:
        """See `Checkup`."""
        try:
            sts = self._client("sts", self._region)
            answer = of_aws("GetCallerIdentity", sts.get_caller_identity)
        except CloudError as error:
            response = getattr(error.__cause__, "response", None) or {}
            return Seen(error=error, skew_seconds=self._skew(response))
        found = Caller(who=str(answer.get("Arn", "")), account=str(answer.get("Account", "")))
        return Seen(caller=found, skew_seconds=self._skew(answer))

    def rights(self, region: str, instance_type: str) -> tuple[Right, ...]:
        """See `Checkup`."""
        ec2, pricing = self._client("ec2", region), self._client("pricing", PRICING_REGION)
        quotas = self._client("service-quotas", region)
        spot = {"InstanceTypes": [instance_type], "ProductDescriptions": [LINUX], "StartTime": self._now()}
        sold_here = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": region}]
        return (
            _tried("DescribeAvailabilityZones", ec2.describe_availability_zones),
            _tried("DescribeSpotPriceHistory", ec2.describe_spot_price_history, MaxResults=5, **spot),
            _tried(
                "DescribeInstanceTypeOfferings",
                ec2.describe_instance_type_offerings,
                LocationType="availability-zone-id",
                MaxResults=5,
            ),
            _tried("GetProducts", pricing.get_products, ServiceCode="AmazonEC2", Filters=sold_here, MaxResults=1),
            _tried("ListServiceQuotas", quotas.list_service_quotas, ServiceCode="ec2", MaxResults=1),
        )

    def backend(self, backend: Backend, prefix: str) -> None:
        """See `Checkup`.  As the caller: a role or profile of the backend's own is Terraform's to take on."""
        settings = dict(backend.settings)
        s3 = self._client("s3", settings.get("region") or self._region)
        asked = {"Bucket": settings["bucket"], "Prefix": prefix, "MaxKeys": 1}
        of_aws("ListObjectsV2", lambda: s3.list_objects_v2(**asked))

    def close(self) -> None:
        """See `Checkup`."""
        for client in self._clients:
            client.close()
        self._clients.clear()

    def _client(self, service: str, region: str) -> Any:
        made = of_aws("the client", lambda: self._session.client(service, region_name=region, config=self._config))
        self._clients.append(made)
        return made

    def _skew(self, answer: dict[str, Any]) -> float | None:
        return skew(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date"), self._now())


def _tried(operation: str, call: Any, **asked: Any) -> Right:
    return tried(operation, lambda: of_aws(operation, lambda: call(**asked)))


def _session(boto3: Any, where: Where) -> Any:
    from botocore.exceptions import NoCredentialsError  # noqa: PLC0415 - optional

    session = boto3.session.Session(region_name=where.region)
    if session.get_credentials() is None:
        raise NoCredentialsError
    return session
