"""The OpenAPI, and requests made from it: whatever is sent is answered by what the document says, and never by an error of ours."""

from __future__ import annotations

import json
import secrets
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable

from tests.unit.server.server_bed import Agent, Bed, bed, launch, sqlite

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    schemathesis = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def b(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bed]:
    from dataclasses import replace

    from tests.unit.server.server_bed import SETTINGS

    fast = replace(SETTINGS, rates=(("join", 1e6), ("node", 1e6), ("people", 1e6)))
    with bed(sqlite(tmp_path_factory.mktemp("openapi")), settings=fast) as made:
        launch(made.record)
        yield made


def test_the_document_names_every_route_and_holds_no_example_secret(b: Bed) -> None:
    document = b.client.get("/openapi.json").json()
    wanted = {"/v1/join", "/v1/session", "/v1/report", "/v1/cut", "/v1/peers", "/healthz"}
    assert wanted <= set(document["paths"])
    for path in wanted - {"/healthz"}:
        for operation in document["paths"][path].values():
            assert {"400", "401", "409", "410", "413", "425", "429", "503"} <= set(operation["responses"])
            assert "422" not in operation["responses"]
    assert b.client.get("/docs").status_code == 404


def _operations(b: Bed) -> list[Any]:
    schema = schemathesis.openapi.from_dict(b.client.get("/openapi.json").json())
    found = [r.ok() for r in schema.get_all_operations()]
    return [o for o in found if o.path.startswith("/v1/") or o.path == "/healthz"]


@pytest.mark.parametrize("joined", [True, False])
def test_whatever_is_sent_is_answered_as_documented(b: Bed, joined: bool) -> None:
    agent = Agent(b.client, key=secrets.token_hex(16), rank=int(joined))
    if joined:
        assert agent.join().status_code == 200
    statuses: list[int] = []
    for operation in _operations(b):
        modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]
        for mode in modes:
            statuses += _exercise(b, operation, mode, agent.headers if joined else {})
    assert len(statuses) > 60
    assert {200, 400} <= set(statuses)


def _exercise(b: Bed, operation: Any, mode: Any, headers: dict[str, str]) -> list[int]:
    strategy = operation.as_strategy(generation_mode=mode)
    statuses: list[int] = []

    @settings(
        max_examples=5,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def one(case: Any) -> None:
        sent = case.as_transport_kwargs(base_url="http://127.0.0.1:8443")
        raw = sent.get("data", sent.get("content"))
        body = raw if isinstance(raw, str | bytes) else json.dumps(sent.get("json")) if "json" in sent else None
        try:
            answer = b.client.request(
                sent["method"],
                sent["url"],
                params=sent.get("params"),
                headers={**sent.get("headers", {}), **headers},
                content=body,
            )
        except (UnicodeError, ValueError):  # what no client can send
            return
        statuses.append(answer.status_code)
        label = f"{operation.label}: {answer.status_code} {answer.text[:200]}"
        assert answer.status_code < 500 or answer.status_code == 503, label
        documented = operation.definition.raw["responses"]
        assert str(answer.status_code) in documented, label
        if answer.status_code >= 400 and operation.path != "/healthz":
            assert answer.headers["content-type"].startswith("application/json"), label

    with suppress(Unsatisfiable):  # some operations have nothing that could be wrong
        one()
    return statuses
