"""What is for sale, which moto has not: spot prices over time, placement scores, the price list, vCPU quotas, and pages of all of them.

A test says what there is (`POST /strict/market`), in the words of `Market`.  Every answer is held to botocore's own service model before it leaves: a member
that a service does not have, or one of another type, is an error of the test.  Besides what is sold there is how it goes wrong: throttling, a region that is
down or refuses, pages that lead to themselves.  Without a market moto answers as ever.
"""

import io
import json
import urllib.parse
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any

import botocore.session
from botocore.validate import ParamValidator
from moto.core.responses import ActionResult
from moto.ec2.responses import EC2Response
from moto.ec2.responses.spot_instances import SpotInstances

LINUX = "Linux/UNIX"
EC2_XML = "<Response><Errors><Error><Code>{code}</Code><Message>{code} says it</Message></Error></Errors><RequestID>r</RequestID></Response>"
#: what goes wrong -> (status, code) of EC2 and of the JSON services
ERRORS = {
    "throttled": ((503, "RequestLimitExceeded"), (400, "ThrottlingException")),
    "down": ((500, "InternalError"), (500, "InternalServerException")),
    "denied": ((403, "UnauthorizedOperation"), (400, "AccessDeniedException")),
}
Reply = tuple[str, list[tuple[str, str]], list[bytes]]


@dataclass
class Market:
    """spot      region -> zone name -> type -> [[ISO time, price as text], …] in any order; Windows costs twice that
    scores     region -> AZ id -> type -> score
    products   lines of the price list, each as an object
    quotas     region -> rows of Service Quotas
    page       at most so many rows in an answer
    endless    a service's lists have always a next page, the same one: `ec2`, `pricing`, `service-quotas`
    turned     every list comes the other way round
    offerings  region -> rows instead of moto's
    """

    spot: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, Any] = field(default_factory=dict)
    products: list[Any] = field(default_factory=list)
    quotas: dict[str, Any] = field(default_factory=dict)
    offerings: dict[str, Any] = field(default_factory=dict)
    page: int = 1000
    endless: list[str] = field(default_factory=list)
    turned: bool = False
    throttle: int = 0
    after: float | None = None
    down: list[str] = field(default_factory=list)
    denied: list[str] = field(default_factory=list)
    config_limit: int | None = None


@dataclass
class State:
    """`scored`: (region, type) that scores were asked for; `market` None = there is none."""

    market: Market | None = None
    calls: int = 0
    scored: set[tuple[str, str]] = field(default_factory=set)


NOW = State()
MODELS = botocore.session.get_session()
MOTOS_HISTORY = SpotInstances.describe_spot_price_history
MOTOS_OFFERINGS = EC2Response.describe_instance_type_offerings


def sell(given: dict[str, Any]) -> None:
    """Replace the market; {} = none."""
    unknown = set(given) - {f.name for f in fields(Market)}
    if unknown:
        raise ValueError(f"no such words of a market: {unknown}")
    NOW.market = Market(**given) if given else None
    NOW.scored.clear()


def calls() -> int:
    return NOW.calls


def held(service: str, operation: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, if the service's model allows it."""
    shape = MODELS.get_service_model(service).operation_model(operation).output_shape
    report = ParamValidator().validate(answer, shape)
    assert not report.has_errors(), report.generate_report()
    return answer


def paged(service: str, key: str, rows: list[Any], token: str | None, most: int | None) -> dict[str, Any]:
    market = NOW.market or Market()
    rows = rows[::-1] if market.turned else rows
    start, size = int(token or 0), min(market.page, most or market.page)
    answer: dict[str, Any] = {key: rows[start : start + size]}
    if service in market.endless:
        answer["NextToken"] = "0"
    elif start + size < len(rows):
        answer["NextToken"] = str(start + size)
    return answer


def moment(text: Any) -> datetime:
    at = text if isinstance(text, datetime) else datetime.fromisoformat(str(text))
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def history(self: Any) -> ActionResult:
    if NOW.market is None:
        return MOTOS_HISTORY(self)
    types, wanted = self._get_param("InstanceTypes", []), self._get_param("ProductDescriptions", [])
    start, end = self._get_param("StartTime"), self._get_param("EndTime")
    rows: list[dict[str, Any]] = []
    for zone, by_type in NOW.market.spot.get(self.region, {}).items():
        for instance_type, changes in by_type.items():
            if types and instance_type not in types:
                continue
            told = sorted((moment(at), price) for at, price in changes)
            # with a start, the change before it is told as well: it is what held then
            first = max((n for n, (at, _) in enumerate(told) if start and at <= moment(start)), default=0)
            for at, price in told[first:]:
                if end and at > moment(end):
                    continue
                for system, factor in ((LINUX, 1), ("Windows", 2)):
                    if not wanted or system in wanted:
                        row = {"InstanceType": instance_type, "ProductDescription": system, "Timestamp": at}
                        row["SpotPrice"] = price if factor == 1 else str(float(price) * factor)
                        rows.append({**row, **({"AvailabilityZone": zone} if zone else {})})
    rows.sort(key=lambda row: row["Timestamp"], reverse=True)
    answer = paged("ec2", "SpotPriceHistory", rows, self._get_param("NextToken"), self._get_int_param("MaxResults"))
    return ActionResult(held("ec2", "DescribeSpotPriceHistory", answer))


def scores(self: Any) -> ActionResult:
    if NOW.market is None:
        raise NotImplementedError("no market was set")
    types, regions = self._get_param("InstanceTypes", []), self._get_param("RegionNames", [])
    assert str(self._get_param("SingleAvailabilityZone")).lower() == "true", "only zones are scored here"
    NOW.scored.update((region, instance_type) for region in regions for instance_type in types)
    rows = [
        {"Region": region, "AvailabilityZoneId": zone, "Score": max(by_type[t] for t in types if t in by_type)}
        for region in regions
        for zone, by_type in NOW.market.scores.get(region, {}).items()
        if any(t in by_type for t in types)
    ]
    # the ten best, as AWS tells no others
    best = sorted(rows, key=lambda row: -row["Score"])[:10]
    answer = paged("ec2", "SpotPlacementScores", best, self._get_param("NextToken"), self._get_int_param("MaxResults"))
    return ActionResult(held("ec2", "GetSpotPlacementScores", answer))


def offerings(self: Any) -> ActionResult:
    if NOW.market is None:
        return MOTOS_OFFERINGS(self)
    filters = self._filters_from_querystring()
    rows = NOW.market.offerings.get(self.region)
    if rows is None:
        found = self.ec2_backend.describe_instance_type_offerings(self._get_param("LocationType"), filters)
        rows = [{k: row[k] for k in ("InstanceType", "LocationType", "Location") if k in row} for row in found]
    wanted = filters.get("instance-type")
    rows = [row for row in rows if not wanted or row.get("InstanceType", wanted[0]) in wanted]
    token, most = self._get_param("NextToken"), self._get_int_param("MaxResults")
    answer = paged("ec2", "InstanceTypeOfferings", rows, token, most)
    return ActionResult(held("ec2", "DescribeInstanceTypeOfferings", answer))


def install() -> None:
    SpotInstances.describe_spot_price_history = history  # type: ignore[method-assign]
    SpotInstances.get_spot_placement_scores = scores  # type: ignore[attr-defined]
    EC2Response.describe_instance_type_offerings = offerings  # type: ignore[method-assign]


def answered(environ: dict[str, Any]) -> Reply | None:
    """What moto is not asked at all: faults, and the services that it has not."""
    if NOW.market is None:
        return None
    target = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
    mine = {"GetProducts": get_products, "ListServiceQuotas": list_quotas}.get(target)
    scope = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].split("/")
    if len(scope) < 4:
        return None
    region, service = scope[2], scope[3]
    NOW.calls += 1
    body: dict[str, Any] = {}
    if mine is not None:
        body = json.loads(environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)))
        if service == "pricing":
            region = {f["Field"]: f["Value"] for f in body.get("Filters", [])}.get("regionCode", region)
    wrong = fault(region)
    if wrong:
        status, code = ERRORS[wrong][mine is not None]
        headers = [("Content-Type", "application/x-amz-json-1.1" if mine else "text/xml")]
        if wrong == "throttled" and NOW.market.after is not None:
            headers.append(("Retry-After", f"{NOW.market.after:g}"))
        words = json.dumps({"__type": code, "message": "its words"}) if mine else EC2_XML.format(code=code)
        return f"{status} wrong", headers, [words.encode()]
    if service == "ec2" and (limited := config_limit(environ, region)):
        return limited
    if mine is None:
        return None
    answer = held("pricing" if target == "GetProducts" else "service-quotas", target, mine(region, body))
    return "200 OK", [("Content-Type", "application/x-amz-json-1.1")], [json.dumps(answer).encode()]


def fault(region: str) -> str:
    assert NOW.market is not None
    if NOW.market.throttle > 0:
        NOW.market.throttle -= 1
        return "throttled"
    return "down" if region in NOW.market.down else "denied" if region in NOW.market.denied else ""


def config_limit(environ: dict[str, Any], region: str) -> Reply | None:
    """Only so many different questions for scores a day."""
    assert NOW.market is not None
    if NOW.market.config_limit is None:
        return None
    length = int(environ.get("CONTENT_LENGTH") or 0)
    form = environ["wsgi.input"].read(length)
    environ["wsgi.input"] = io.BytesIO(form)
    params = dict(urllib.parse.parse_qsl(form.decode()))
    if params.get("Action") != "GetSpotPlacementScores" or len(NOW.scored) < NOW.market.config_limit:
        return None
    if (region, params.get("InstanceType.1", "")) in NOW.scored:
        return None
    return "400 wrong", [("Content-Type", "text/xml")], [EC2_XML.format(code="MaxConfigLimitExceeded").encode()]


def get_products(region: str, body: dict[str, Any]) -> dict[str, Any]:
    assert NOW.market is not None
    wanted = {f["Field"]: f["Value"] for f in body.get("Filters", [])}

    def fits(row: Any) -> bool:
        attributes = row.get("product", {}).get("attributes", {}) if isinstance(row, dict) else {}
        return not attributes or all(attributes.get(name) == value for name, value in wanted.items())

    assert wanted["regionCode"] == region
    rows = [json.dumps(row) for row in NOW.market.products if fits(row)]
    return {
        "FormatVersion": "aws_v1",
        **paged("pricing", "PriceList", rows, body.get("NextToken"), body.get("MaxResults")),
    }


def list_quotas(region: str, body: dict[str, Any]) -> dict[str, Any]:
    assert NOW.market is not None
    assert body["ServiceCode"] == "ec2"
    rows = NOW.market.quotas.get(region, [])
    return paged("service-quotas", "Quotas", rows, body.get("NextToken"), body.get("MaxResults"))
