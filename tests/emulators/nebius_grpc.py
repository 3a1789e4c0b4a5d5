"""The parts of Nebius' API that feeds read, on loopback: a gRPC server made from the descriptors that the SDK carries.

Requests are decoded and answers made by Google's own protobuf, not by the SDK's: an unknown field, in a request or in what it packs, is refused, as is a missing
parent, a missing bearer token, a page that is not the next one, or a question to a project that is not there.  Answers are written as JSON of the API's own names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import grpc
from google.protobuf import json_format, message_factory, unknown_fields

from tests.emulators.retail_prices import Trouble

TOKEN = "secret"
HOUR = {"unit": "hour", "unit_type": "UNIT_TYPE_TIME_BASED"}
MACHINE = "type.googleapis.com/nebius.compute.v1.CreateInstanceRequest"


def platform(name: str, presets: dict[str, int], *, spot: bool = True, quota: str = "") -> dict[str, Any]:
    """GPUs by preset."""
    return {
        "metadata": {"id": f"computeplatform-{name}", "name": name},
        "spec": {
            "presets": [{"name": preset, "resources": {"gpu_count": gpus}} for preset, gpus in presets.items()],
            "gpu_count_quota_type": quota,
        },
        "status": {"allowed_for_preemptibles": spot},
    }


def advice(region: str, name: str, preset: str, **said: dict[str, Any]) -> dict[str, Any]:
    """`said`: on_demand, preemptible."""
    details = {"platform": name, "preset": {"name": preset}}
    return {"spec": {"region": region, "fabric": "fabric-1", "compute_instance": details}, "status": said}


def level(word: str, at: str, state: str = "FRESH") -> dict[str, Any]:
    return {
        "availability_level": f"AVAILABILITY_LEVEL_{word}",
        "data_state": f"DATA_STATE_{state}",
        "effective_at": at,
    }


def allowance(name: str, region: str, limit: int | None, **status: Any) -> dict[str, Any]:
    spec = {"region": region, **({} if limit is None else {"limit": limit})}
    told = {"state": "STATE_ACTIVE", "usage_state": "USAGE_STATE_USED", "usage": 0, "unit": "count", **status}
    return {"metadata": {"name": name}, "spec": spec, "status": told}


def estimate(cost: str, parts: dict[str, tuple[str, str]] | None = None, **changed: Any) -> dict[str, Any]:
    """The calculator's answer on one machine; `parts`: quantity and cost by SKU."""
    skus = [{"sku_id": sku, "quantity": q, "cost": c} for sku, (q, c) in (parts or {}).items()]
    total = {"aggregation_unit": HOUR, "general": {"total": {"cost": cost, "cost_rounded": cost, "sku_costs": skus}}}
    return {"total_costs": [total], "currency": "usd", **changed}


def spot_price(region: str, name: str, sku: str, value: str, at: str, **changed: Any) -> dict[str, Any]:
    return {
        "sku_id": sku,
        "product_title": f"Preemptible {name}",
        "region": region,
        "compute_instance": {"platform": name},
        "price": {"value": value, "currency": "usd", "unit_title": "GPU hour", **changed},
        "effective_time": at,
    }


class Nebius(grpc.GenericRpcHandler):
    """A tenant.

    projects   region by id
    platforms  by region
    costs      what the calculator says, by region, platform, preset and whether it is preemptible
    """

    tenant = "tenant-e00acme"

    def __init__(self) -> None:
        self.projects: dict[str, str] = {}
        self.platforms: dict[str, list[dict[str, Any]]] = {}
        self.advice: list[dict[str, Any]] = []
        self.allowances: list[dict[str, Any]] = []
        self.spot_prices: list[dict[str, Any]] = []
        self.series: list[dict[str, Any]] = []
        self.costs: dict[tuple[str, str, str, bool], dict[str, Any]] = {}
        self.trouble = Trouble()
        self.asked: list[tuple[str, Any]] = []
        self.refused: dict[str, tuple[grpc.StatusCode, str]] = {}
        self.lists: dict[str, Callable[[Any, grpc.ServicerContext], tuple[list[Any], str]]] = {
            "iam.v2.ProjectService/List": self.projects_of,
            "compute.v1.PlatformService/List": self.platforms_of,
            "capacity.v1.ResourceAdviceService/List": lambda *a: self.of_tenant(self.advice, *a),
            "quotas.v1.QuotaAllowanceService/List": lambda *a: self.of_tenant(self.allowances, *a),
            "billing.v1alpha1.SpotPriceService/List": lambda *_: (self.spot_prices, ""),
            "billing.v1alpha1.SpotPriceService/ListSeries": lambda *a: (self.past(*a), ""),
        }

    def service(self, details: Any) -> Any:
        token = dict(details.invocation_metadata).get("authorization")

        def answer(request: bytes, context: grpc.ServicerContext) -> bytes:
            if token != f"Bearer {TOKEN}":
                context.abort(grpc.StatusCode.UNAUTHENTICATED, "no such token")
            asked, said = kinds(details.method)
            question = strictly(asked, request, context)
            self.asked.append((details.method.removeprefix("/nebius."), question))
            found = self.answer(details.method.removeprefix("/nebius."), question, context)
            return json_format.ParseDict(found, said()).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)

    def answer(self, method: str, asked: Any, context: grpc.ServicerContext) -> dict[str, Any]:
        if method in self.refused:
            context.abort(*self.refused[method])
        if method in self.lists:
            return self.listed(*self.lists[method](asked, context), asked, context)
        if method == "iam.v2.ProjectService/Get":
            self.may("", context)
            return self.project(self.known(asked.id, context))
        if method == "billing.v1.CalculatorService/EstimateBatch":
            return self.estimate(asked, context)
        return context.abort(grpc.StatusCode.UNIMPLEMENTED, method)

    def projects_of(self, asked: Any, context: grpc.ServicerContext) -> tuple[list[Any], str]:
        return self.of_tenant([self.project(one) for one in self.projects], asked, context)

    def platforms_of(self, asked: Any, context: grpc.ServicerContext) -> tuple[list[Any], str]:
        region = self.projects[self.known(asked.parent_id, context)]
        return self.platforms.get(region, []), region

    def of_tenant(self, found: list[Any], asked: Any, context: grpc.ServicerContext) -> tuple[list[Any], str]:
        if asked.parent_id != self.tenant:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"parent_id: {asked.parent_id!r} is no tenant")
        return found, ""

    def estimate(self, asked: Any, context: grpc.ServicerContext) -> dict[str, Any]:
        (packed,) = [one.spec for one in asked.resource_specs]
        if packed.type_url != MACHINE or asked.currency != "usd":
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"a price in {asked.currency!r} of {packed.type_url!r}")
        create, _ = kinds("/nebius.compute.v1.InstanceService/Create")
        machine = strictly(create, packed.value, context)
        region = self.projects[self.known(machine.metadata.parent_id, context)]
        self.may(region, context)
        resources, spot = machine.spec.resources, machine.spec.HasField("preemptible")
        if spot and machine.spec.preemptible.on_preemption != 1:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "on_preemption: value must be STOP")
        found = self.costs.get((region, resources.platform, resources.preset, spot))
        if found is None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"no price of {resources.platform} {resources.preset}")
        return found

    def past(self, asked: Any, context: grpc.ServicerContext) -> list[dict[str, Any]]:
        """Points of the asked-for time, ends of its steps."""
        since, until = asked.filters.start_time.ToDatetime(), asked.filters.end_time.ToDatetime()
        step = {1: 15 * 60, 2: 60 * 60}.get(asked.aggregation.granularity)
        if step is None or not asked.aggregation.method or since >= until or until.timestamp() % step:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"{asked}")
        first, last = asked.filters.start_time.ToJsonString(), asked.filters.end_time.ToJsonString()
        return [
            {**one, "points": [p for p in one["points"] if first < p.get("timestamp", last) <= last]}
            for one in self.series
        ]

    def listed(self, found: list[Any], region: str, asked: Any, context: grpc.ServicerContext) -> dict[str, Any]:
        self.may(region, context)
        if not 1 <= asked.page_size <= 1000:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"page_size: {asked.page_size}")
        part, more = self.trouble.part(found, int(asked.page_token or 0))
        return {"items": part, "next_page_token": "" if more is None else str(more)}

    def may(self, region: str, context: grpc.ServicerContext) -> None:
        if (refused := self.trouble.refused(region)) is None:
            return
        code = {429: grpc.StatusCode.RESOURCE_EXHAUSTED, 403: grpc.StatusCode.PERMISSION_DENIED}
        context.abort(code.get(refused[0], grpc.StatusCode.UNAVAILABLE), "its words")

    def known(self, project: str, context: grpc.ServicerContext) -> str:
        if project not in self.projects:
            context.abort(grpc.StatusCode.NOT_FOUND, f"project {project!r}")
        return project

    def project(self, name: str) -> dict[str, Any]:
        return {"metadata": {"id": name, "parent_id": self.tenant}, "spec": {"region": self.projects[name]}}


def kinds(method: str) -> tuple[Any, Any]:
    """What a method is asked and what it answers, as Google's protobuf has them."""
    from nebius.base.protos.dynamic import REGISTRY

    service, _, name = method.removeprefix("/").rpartition("/")
    found = REGISTRY.service_descriptor(service).provider_descriptor.methods_by_name[name]
    return message_factory.GetMessageClass(found.input_type), message_factory.GetMessageClass(found.output_type)


def strictly(kind: Any, sent: bytes, context: grpc.ServicerContext) -> Any:
    """The message, if every field of it is known."""
    found = kind.FromString(sent)
    if len(unknown_fields.UnknownFieldSet(found)):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, f"unknown fields in {kind.DESCRIPTOR.full_name}")
    return found


@contextmanager
def serving(api: Nebius) -> Iterator[str]:
    pool = ThreadPoolExecutor(4)
    server = grpc.server(pool, handlers=(api,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()
        pool.shutdown()
