"""Why a lease has a floor, asked of the botocore and google-auth that are installed: how often a client comes for credentials that are short."""

from __future__ import annotations

import time

import boto3
import pytest

from modules.agent.cred import timing
from modules.agent.cred.endpoint import Endpoint
from modules.agent.cred.holder import Holder
from modules.agent.cred.lease import Wanted
from tests.unit.agent.cred.conftest import FakeBroker

SIGNATURES = 20


class Counting(Endpoint):
    asked = 0

    def answer(self, grant):
        self.asked += 1
        return super().answer(grant)


@pytest.mark.parametrize(
    ("life", "fetches"),
    [(timing.FLOOR_SECONDS, 1), (3600, 1), (14 * 60, 1 + SIGNATURES)],
    ids=["the floor", "an hour", "under botocore's quarter of an hour"],
)
def test_fetches_of_a_boto3_client(tmp_path, monkeypatch: pytest.MonkeyPatch, life: int, fetches: int) -> None:
    broker = FakeBroker(time.time)
    broker.life = life
    holder = Holder(broker, [Wanted("s3", "s3://acme-data/", "read")])
    endpoint = Counting(holder, str(tmp_path / "credentials"))
    endpoint.start()
    try:
        holder.step()
        for name, value in endpoint.environment().items():
            monkeypatch.delenv(name, raising=False) if value is None else monkeypatch.setenv(name, value)
        client = boto3.Session().client("s3", region_name="us-east-1")
        for _ in range(SIGNATURES):
            client.generate_presigned_url("get_object", Params={"Bucket": "acme-data", "Key": "train/0"})
    finally:
        endpoint.stop()
    assert endpoint.asked == fetches
    assert broker.asked == 1
