"""AWS' prices, capacity and quotas by boto3, which is imported when a feed is made, never before.

Prices: spot by DescribeSpotPriceHistory (Linux/UNIX, every zone), on demand by the Pricing API, whose one endpoint serves every region, for the zones where
the type is offered.  Capacity: DescribeInstanceTypeOfferings, and for spot GetSpotPlacementScores.  Quotas: Service Quotas, in vCPUs.  Zones are AZ ids: names
differ between accounts.  What rows mean is `aws_rows`'s; asking again is `again`'s alone, so boto3's own retries are off.
Never run against live AWS: against moto, and for what moto lacks against answers held to botocore's own service models.
"""

# pyright: basic

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from planner.clouds import errors_map
from planner.clouds.asked import of_aws
from planner.clouds.feeds.again import Again, Busy
from planner.clouds.feeds.aws_rows import FILTERED, PLAIN, Product, Trouble, asked_first, product, quota, word_of_score
from planner.clouds.feeds.gathering import Gathering, positive
from planner.clouds.feeds.port import Fed, Wanted
from planner.clouds.port import Where
from planner.model.errors import CloudError, Unavailable
from planner.model.readings import CapacityWord

T = TypeVar("T")

LINUX: Final = "Linux/UNIX"
#: the Pricing API is in few regions; each knows the prices of all
PRICING_REGION: Final = "us-east-1"
#: types in one call: a request's line must not grow without bound, and a filter takes 200 values
AT_ONCE: Final = 100
REGIONS_AT_ONCE: Final = 4
MOST_PAGES: Final = 5000
"""A spot history of 90 days has hundreds: a list that goes on for longer has no end."""
SERVER: Final = 500
TOO_MANY: Final = 429
#: what AWS' services call throttling besides what `errors_map` knows, some of them with status 400
THROTTLED: Final = frozenset(
    {
        "EC2ThrottledException",
        "PriorRequestNotComplete",
        "RequestThrottled",
        "RequestThrottledException",
        "SlowDown",
        "ThrottledException",
        "TooManyRequestsException",
    }
)
SPOT, ON_DEMAND, OFFERINGS = "EC2 spot price history", "AWS Price List", "EC2 instance type offerings"
SCORES, QUOTAS = "EC2 spot placement score", "AWS Service Quotas"


class AwsFeed:
    """See the module.  One account as one role; a client per region, made when it is first asked."""

    def __init__(self, where: Where, *, again: Again | None = None, at_once: int = REGIONS_AT_ONCE) -> None:
        try:
            import boto3  # noqa: PLC0415 - half a second, and optional
            from botocore.config import Config  # noqa: PLC0415
        except ImportError as error:
            raise errors_map.missing("AWS", "boto3", "aws") from error
        self._again = again or Again()
        self._config = Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=60)
        self._session = of_aws("the credentials", lambda: _session(boto3, self._config, where))
        self._clients: dict[tuple[str, str], Any] = {}
        self._making = threading.Lock()
        self._over = threading.Event()
        self._at_once = at_once

    def prices(self, wanted: Wanted) -> Iterator[Fed]:
        """See `PriceSource`."""
        return self._each(wanted, (self._spot, self._on_demand))

    def capacity(self, wanted: Wanted) -> Iterator[Fed]:
        """See `CapacitySource`."""
        return self._each(wanted, (self._offered,))

    def quotas(self, wanted: Wanted) -> Iterator[Fed]:
        """See `QuotaSource`."""
        return self._each(wanted, (self._limits,))

    def close(self) -> None:
        """Let the connections go; regions that are still being asked end with their next question."""
        self._over.set()
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _each(self, wanted: Wanted, parts: tuple[Callable[[Gathering], None], ...]) -> Iterator[Fed]:
        """In order; some regions ahead of the one that is given, for each is a dozen of slow questions."""
        pool = ThreadPoolExecutor(self._at_once)
        try:
            yield from pool.map(lambda region: self._region(region, wanted, parts), wanted.regions)
        finally:
            pool.shutdown(cancel_futures=True)

    @staticmethod
    def _region(region: str, wanted: Wanted, parts: tuple[Callable[[Gathering], None], ...]) -> Fed:
        found = Gathering(cloud="aws", region=region, wanted=wanted, source=SPOT)
        for part in parts if found.types else ():
            try:
                part(found)
            except CloudError as error:
                found.failed(part.__name__.strip("_").replace("_", " "), error)
            except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
                # botocore takes an answer of another form for granted, until a row of it is looked at
                what = part.__name__.strip("_").replace("_", " ")
                words = f"an answer of another form: {type(error).__name__} {error}"
                found.failed(what, errors_map.unexpected("AWS", what, words))
        return found.fed()

    def _spot(self, found: Gathering) -> None:
        ec2, zones = self._client("ec2", found.region), self._zones(found.region)
        since = found.wanted.since
        # with the time of asking as start, AWS tells the change before it, which is what holds now
        start = since or found.wanted.now
        newest: dict[tuple[str, str], tuple[datetime, dict[str, Any]]] = {}
        for types in _batches(found.types):
            asked = {"InstanceTypes": types, "ProductDescriptions": [LINUX], "StartTime": start, "MaxResults": 1000}
            for row in self._pages(ec2, "describe_spot_price_history", "SpotPriceHistory", asked):
                self._spot_row(found, row, zones, since, newest)
        for (zone, instance_type), (at, row) in newest.items():
            self._spot_price(found, zone, instance_type, at, row)

    def _spot_row(
        self,
        found: Gathering,
        row: dict[str, Any],
        zones: dict[str, str],
        since: datetime | None,
        newest: dict[tuple[str, str], tuple[datetime, dict[str, Any]]],
    ) -> None:
        instance_type, at = row.get("InstanceType", ""), row.get("Timestamp")
        zone = row.get("AvailabilityZoneId") or zones.get(row.get("AvailabilityZone", ""), "")
        if row.get("ProductDescription") != LINUX or not found.wants(zone, instance_type):
            return
        if not zone or not isinstance(at, datetime):
            found.senseless(f"a spot price of {instance_type} without zone or time: {row.get('AvailabilityZone')}")
        elif since is not None:
            if at >= since:
                self._spot_price(found, zone, instance_type, at, row)
        elif not found.from_the_future(f"spot {zone} {instance_type}", at):
            before = newest.get((zone, instance_type))
            if before is None or before[0] <= at:
                newest[zone, instance_type] = (at, row)

    @staticmethod
    def _spot_price(found: Gathering, zone: str, instance_type: str, at: datetime, row: dict[str, Any]) -> None:
        usd = positive(row.get("SpotPrice"))
        if usd is None:
            found.senseless(f"spot {zone} {instance_type}: the price is `{row.get('SpotPrice')}`")
        else:
            found.price(zone=zone, instance_type=instance_type, capacity="spot", usd=usd, at=at)

    def _on_demand(self, found: Gathering) -> None:
        offered, _ = self._offerings(found)
        if not offered:
            return
        filters = [{"Type": "TERM_MATCH", "Field": name, "Value": PLAIN[name]} for name in FILTERED]
        filters.append({"Type": "TERM_MATCH", "Field": "regionCode", "Value": found.region})
        asked = {"ServiceCode": "AmazonEC2", "FormatVersion": "aws_v1", "Filters": filters, "MaxResults": 100}
        pricing = self._client("pricing", PRICING_REGION)
        for text in self._pages(pricing, "get_products", "PriceList", asked):
            row = product(text)
            if row is not None and (not row.instance_type or row.instance_type in found.types):
                self._list_price(found, row, offered)

    @staticmethod
    def _list_price(found: Gathering, row: Product, offered: set[tuple[str, str]]) -> None:
        if row.trouble is Trouble.NOT_UNDERSTOOD:
            found.not_understood(row.words)
        elif row.usd is None:
            found.senseless(row.words)
        elif not (
            row.begins and (at := _moment(row.begins)) and found.from_the_future(f"{row.instance_type} on demand", at)
        ):
            for zone, _ in sorted(pair for pair in offered if pair[1] == row.instance_type):
                found.price(
                    zone=zone, instance_type=row.instance_type, capacity="on_demand", usd=row.usd, source=ON_DEMAND
                )

    def _offered(self, found: Gathering) -> None:
        offered, whole = self._offerings(found)
        # a local zone that the account has not opted in to lists nothing, which says nothing
        zones = sorted(z for z in set(self._zones(found.region).values()) if found.zones is None or z in found.zones)
        for zone in zones:
            for instance_type in found.types:
                here = (zone, instance_type) in offered
                if not here and not whole:
                    continue  # it may be what the broken row was about
                word = CapacityWord.OFFERED if here else CapacityWord.WITHDRAWN
                for capacity in ("on_demand", "spot"):
                    found.seen(zone=zone, instance_type=instance_type, capacity=capacity, word=word, source=OFFERINGS)
        for instance_type in sorted({t for _, t in offered}, key=asked_first):
            try:
                self._scored(found, instance_type, offered)
            except CloudError as error:
                # AWS limits new questions to so many a day: the rest would be refused as well
                found.failed("placement scores", error)
                return

    def _scored(self, found: Gathering, instance_type: str, offered: set[tuple[str, str]]) -> None:
        ec2 = self._client("ec2", found.region)
        asked = {
            "InstanceTypes": [instance_type],
            "TargetCapacity": 1,
            "SingleAvailabilityZone": True,
            "RegionNames": [found.region],
        }
        for row in self._pages(ec2, "get_spot_placement_scores", "SpotPlacementScores", asked):
            zone, score = row.get("AvailabilityZoneId", ""), row.get("Score")
            word = word_of_score(score)
            if not zone or word is None:
                found.senseless(f"{instance_type} scores `{score}` in `{zone}`")
            elif (zone, instance_type) in offered:
                found.seen(
                    zone=zone,
                    instance_type=instance_type,
                    capacity="spot",
                    word=word,
                    detail=f"score {score}",
                    source=SCORES,
                )

    def _limits(self, found: Gathering) -> None:
        client = self._client("service-quotas", found.region)
        for row in self._pages(client, "list_service_quotas", "Quotas", {"ServiceCode": "ec2", "MaxResults": 100}):
            limited = quota(row.get("QuotaName", ""), found.types)
            if limited is not None:
                capacity, instance_types = limited
                found.quota(
                    name=row.get("QuotaCode", ""),
                    capacity=capacity,
                    unit="vcpus",
                    limit=row.get("Value"),
                    used=None,
                    instance_types=instance_types,
                    source=QUOTAS,
                )

    def _offerings(self, found: Gathering) -> tuple[set[tuple[str, str]], bool]:
        """(AZ id, type) of what is wanted and sold; and whether every row could be read."""
        ec2, offered, whole = self._client("ec2", found.region), set[tuple[str, str]](), True
        for types in _batches(found.types):
            asked = {
                "LocationType": "availability-zone-id",
                "Filters": [{"Name": "instance-type", "Values": types}],
                "MaxResults": 1000,
            }
            for row in self._pages(ec2, "describe_instance_type_offerings", "InstanceTypeOfferings", asked):
                zone, instance_type = row.get("Location", ""), row.get("InstanceType", "")
                if not zone or not instance_type:
                    found.senseless(f"an offering of `{instance_type}` in `{zone}`")
                    whole = False
                elif found.wants(zone, instance_type):
                    offered.add((zone, instance_type))
        return offered, whole

    def _zones(self, region: str) -> dict[str, str]:
        """Names to ids, in this account."""
        ec2 = self._client("ec2", region)
        answer = self._ask("DescribeAvailabilityZones", ec2.describe_availability_zones)
        return {z["ZoneName"]: z["ZoneId"] for z in answer["AvailabilityZones"]}

    def _pages(self, client: Any, method: str, key: str, asked: dict[str, Any]) -> Iterator[Any]:
        """Every row.  Pages without end are an error, not a reason to ask for ever."""
        call, token, seen = getattr(client, method), "", set[str]()
        operation = client.meta.method_to_api_mapping[method]
        while True:
            with_token = {**asked, "NextToken": token} if token else asked
            answer = self._ask(operation, lambda given=with_token: call(**given))
            yield from answer.get(key, ())
            token = answer.get("NextToken") or ""
            if not token:
                return
            if token in seen or len(seen) >= MOST_PAGES:
                raise errors_map.unexpected("AWS", operation, "its pages have no end")
            seen.add(token)

    def _ask(self, operation: str, call: Callable[[], T]) -> T:
        if self._over.is_set():
            raise errors_map.unexpected("AWS", operation, "the feed was closed")
        return self._again.ask(lambda: _once(operation, call))

    def _client(self, service: str, region: str) -> Any:
        if (service, region) not in self._clients:
            made = of_aws("the client", lambda: self._session.client(service, region_name=region, config=self._config))
            self._clients[service, region] = made
        return self._clients[service, region]


def _once(operation: str, call: Callable[[], T]) -> T:
    """The answer.  Raises CloudError, of which those worth asking again are Unavailable; and Busy where AWS says when."""
    try:
        return of_aws(operation, call)
    except CloudError as error:
        response = getattr(error.__cause__, "response", None)
        if response is None:
            raise
        told = response.get("ResponseMetadata", {})
        status = told.get("HTTPStatusCode", 0)
        if not isinstance(error, Unavailable):
            if status != TOO_MANY and status < SERVER and response.get("Error", {}).get("Code") not in THROTTLED:
                raise
            error = Unavailable(error.diagnostics)
        after = _seconds(told.get("HTTPHeaders", {}).get("retry-after"))
        raise (error if after is None else Busy(error, after)) from error.__cause__


def _seconds(text: str | None) -> float | None:
    """AWS seldom says, and then in seconds."""
    try:
        return float(text or "")
    except ValueError:
        return None


def _batches(types: tuple[str, ...]) -> list[list[str]]:
    return [list(types[start : start + AT_ONCE]) for start in range(0, len(types), AT_ONCE)]


def _moment(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _session(boto3: Any, config: Any, where: Where) -> Any:
    """With credentials, the caller's own or the role's.  Raises what botocore raises, NoCredentialsError where there are none."""
    from botocore.exceptions import NoCredentialsError  # noqa: PLC0415 - optional

    session = boto3.session.Session(region_name=where.region)
    if session.get_credentials() is None:
        raise NoCredentialsError
    if where.role is None:
        return session
    given = session.client("sts", config=config).assume_role(RoleArn=where.role, RoleSessionName="skyplan")[
        "Credentials"
    ]
    return boto3.session.Session(
        region_name=where.region,
        aws_access_key_id=given["AccessKeyId"],
        aws_secret_access_key=given["SecretAccessKey"],
        aws_session_token=given["SessionToken"],
    )
