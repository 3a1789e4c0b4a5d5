"""The AWS adapter against botocore's own stubs: pages, zones, ends, and every error as one of ours."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

from planner.clouds.aws import AwsLister
from planner.clouds.choose import RealClouds
from planner.clouds.fake import FakeCloud
from planner.clouds.port import Where
from planner.model.errors import CloudError, MissingPart, PermissionDenied, Unavailable

WHERE = Where(cloud="aws", target="prod", region="us-east-1")
AT = datetime(2026, 1, 1, tzinfo=UTC)
FILTERS = [
    {"Name": "tag:skyplan:project", "Values": ["acme"]},
    {"Name": "tag:skyplan:job", "Values": ["train"]},
    {"Name": "tag:skyplan:generation", "Values": ["3"]},
    {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
]


@pytest.fixture
def stubbed(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[AwsLister, Stubber]]:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
    client = boto3.client("ec2")
    monkeypatch.setattr("planner.clouds.aws._client", lambda *_: client)
    with Stubber(client) as stub:
        yield AwsLister(WHERE), stub
        stub.assert_no_pending_responses()
    client.close()


def instance(name: str, rank: str, **more: Any) -> dict[str, Any]:
    tags = [{"Key": "skyplan:rank", "Value": rank}, {"Key": "team", "Value": "llm"}]
    return {
        "InstanceId": name,
        "State": {"Name": "running"},
        "InstanceType": "p5.48xlarge",
        "LaunchTime": AT,
        "PrivateIpAddress": "10.0.0.1",
        "Placement": {"AvailabilityZone": "us-east-1a"},
        "Tags": tags,
        **more,
    }


def test_machines_of_every_page_by_rank_with_the_zones_id(stubbed: tuple[AwsLister, Stubber]) -> None:
    lister, stub = stubbed
    pages = [{"Reservations": [{"Instances": [instance("i-2", "r01", InstanceLifecycle="spot")]}], "NextToken": "t"}]
    pages.append({"Reservations": [{"Instances": [instance("i-1", "r00")]}]})
    stub.add_response("describe_instances", pages[0], {"Filters": FILTERS})
    stub.add_response("describe_instances", pages[1], {"Filters": FILTERS, "NextToken": "t"})
    zones = {"AvailabilityZones": [{"ZoneName": "us-east-1a", "ZoneId": "use1-az4"}]}
    stub.add_response("describe_availability_zones", zones, {"AllAvailabilityZones": True})
    found = lister.instances(project="acme", job="train", generation=3)
    assert [(i.id, i.rank, i.capacity, i.zone) for i in found] == [
        ("i-1", "r00", "on_demand", "use1-az4"),
        ("i-2", "r01", "spot", "use1-az4"),
    ]
    assert found[0].tags == {"skyplan:rank": "r00"}


def test_one_unknown_machine_does_not_keep_the_others_alive(stubbed: tuple[AwsLister, Stubber]) -> None:
    lister, stub = stubbed
    stub.add_client_error(
        "terminate_instances", "InvalidInstanceID.NotFound", expected_params={"InstanceIds": ["i-1", "i-2"]}
    )
    stub.add_client_error("terminate_instances", "InvalidInstanceID.NotFound", expected_params={"InstanceIds": ["i-1"]})
    stub.add_response("terminate_instances", {}, {"InstanceIds": ["i-2"]})
    lister.terminate(["i-1", "i-2"])


@pytest.mark.parametrize(
    ("code", "kind", "ours"),
    [
        ("UnauthorizedOperation", PermissionDenied, "SKY-APPLY-317"),
        ("ExpiredToken", PermissionDenied, "SKY-APPLY-317"),
        ("RequestLimitExceeded", Unavailable, "SKY-APPLY-326"),
        ("SomethingNew", CloudError, "SKY-APPLY-326"),
    ],
)
def test_no_sdk_error_escapes(stubbed: tuple[AwsLister, Stubber], code: str, kind: type[CloudError], ours: str) -> None:
    lister, stub = stubbed
    stub.add_client_error("describe_instances", code, "its words")
    with pytest.raises(kind) as caught:
        lister.instances(project="acme", job="train")
    assert caught.value.diagnostics[0].code == ours
    assert code in str(caught.value)
    assert "its words" in str(caught.value)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(NoCredentialsError(), PermissionDenied), (EndpointConnectionError(endpoint_url="http://x"), Unavailable)],
)
def test_neither_do_missing_credentials_nor_a_dead_network(
    stubbed: tuple[AwsLister, Stubber], monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[CloudError]
) -> None:
    lister, _ = stubbed

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(lister._ec2, "_make_api_call", fail)
    with pytest.raises(kind):
        lister.terminate(["i-1"])


def test_without_boto3_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_boto3(name: str, *rest: Any, **more: Any) -> Any:
        if name == "boto3":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "boto3")
    monkeypatch.setattr(builtins, "__import__", no_boto3)
    with pytest.raises(MissingPart, match=r"\.\[aws\]"):
        RealClouds().lister(WHERE)


def test_the_fake_lists_by_the_same_tags() -> None:
    cloud = FakeCloud()
    tags = {"skyplan:project": "acme", "skyplan:job": "train", "skyplan:generation": "3"}
    made = [
        cloud.launch("us-east-1", rank=r, zone="z", instance_type="t", capacity="spot", tags=tags)
        for r in ("r01", "r00")
    ]
    lister = cloud.lister(WHERE)
    assert [i.id for i in lister.instances(project="acme", job="train", generation=3)] == made[::-1]
    assert not lister.instances(project="acme", job="train", generation=2)
    assert not cloud.lister(Where(cloud="aws", target="prod", region="eu-west-1")).instances(
        project="acme", job="train"
    )
    lister.terminate([*made, "i-none"])
    assert not cloud.machines
