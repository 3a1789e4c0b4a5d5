"""One contract for the listers of all four clouds, each with its real SDK: AWS against moto, the others against servers of our own."""

from __future__ import annotations

import json
from contextlib import ExitStack

import grpc
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from moto import mock_aws

from planner.clouds.aws import AwsLister
from planner.clouds.azure import AzureLister, session_of
from planner.clouds.gcp import GcpLister
from planner.clouds.nebius import NebiusLister
from planner.clouds.port import Where
from planner.clouds.rest import Patience, retrying
from planner.model.errors import CloudError, PermissionDenied, Unavailable
from planner.model.labels import labels_of
from tests.unit.clouds import servers

DENIED, THROTTLED, UNREACHABLE = "denied", "throttled", "unreachable"


def patience(seconds=100.0):
    """A clock that goes on only while it is waited on."""
    at = [0.0]

    def pause(length):
        at[0] += length

    return Patience(seconds=seconds, now=lambda: at[0], pause=pause)


def tags(*, rank, generation=3, project="acme", job="train"):
    return {
        "skyplan:project": project,
        "skyplan:job": job,
        "skyplan:managed": "true",
        "skyplan:generation": str(generation),
        "skyplan:rank": rank,
    }


class Aws:
    unknown = "i-0123456789abcdef0"
    zone, kind = "use1-az", "p4d.24xlarge"

    def __init__(self, stack, monkeypatch, tmp_path):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "x")
        monkeypatch.delenv("AWS_CA_BUNDLE", raising=False)
        stack.enter_context(mock_aws())
        self.monkeypatch, self.tmp_path = monkeypatch, tmp_path
        self.made = AwsLister(Where(cloud="aws", target="prod", region="us-east-1"))
        stack.callback(self.made._ec2.close)

    def lister(self):
        return self.made

    def launch(self, **given):
        pairs = [{"Key": key, "Value": value} for key, value in tags(**given).items()]
        answer = self.made._ec2.run_instances(
            ImageId="ami-12c6146b",  # one of moto's own,
            InstanceType=self.kind,
            MinCount=1,
            MaxCount=1,
            InstanceMarketOptions={"MarketType": "spot"},
            TagSpecifications=[{"ResourceType": "instance", "Tags": pairs}],
        )
        return answer["Instances"][0]["InstanceId"]

    def refuse(self, how):
        answers = {DENIED: "UnauthorizedOperation", THROTTLED: "RequestLimitExceeded"}

        def fail(*_, **__):
            if how == UNREACHABLE:
                raise EndpointConnectionError(endpoint_url="http://127.0.0.1")
            raise ClientError({"Error": {"Code": answers[how], "Message": "its words"}}, "Any")

        self.monkeypatch.setattr(self.made._ec2, "_make_api_call", fail)

    def nobody(self):
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            self.monkeypatch.delenv(name)
        for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
            self.monkeypatch.setenv(name, str(self.tmp_path / "none"))
        self.monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        return AwsLister(Where(cloud="aws", target="prod", region="us-east-1", role="arn:aws:iam::1:role/x"))


class Gcp:
    unknown = "projects/acme-ml/zones/us-central1-a/instances/none"
    zone, kind = "us-central1-a", "a3-highgpu-8g"

    def __init__(self, stack, monkeypatch, tmp_path):
        self.api = servers.ComputeApi()
        self.running = stack.enter_context(ExitStack())
        self.running.enter_context(servers.serving(self.api))
        self.monkeypatch, self.tmp_path, self.stack = monkeypatch, tmp_path, stack
        self.where = Where(cloud="gcp", target="prod", region="us-central1", account=self.api.project)

    def lister(self, **changed):
        from google.auth.transport.requests import AuthorizedSession
        from google.oauth2.credentials import Credentials

        session = retrying(AuthorizedSession(Credentials(token="secret")), 0)
        self.stack.callback(session.close)
        given = {"session": session, "base": self.api.base, "patience": patience(), **changed}
        return GcpLister(self.where, **given)

    def launch(self, **given):
        return self.api.launch(labels=labels_of(tags(**given).items()))

    def refuse(self, how):
        if how == UNREACHABLE:
            self.running.close()
        elif how == DENIED:
            self.api.refusing = (403, self.api.error(403, "forbidden", "Required 'compute.instances.list'"), {})
        else:
            self.api.refusing = (403, self.api.error(403, "rateLimitExceeded", "Quota exceeded for quota metric"), {})

    def nobody(self):
        self.monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(self.tmp_path / "none.json"))
        return GcpLister(self.where)


class NoCredential:
    def get_token(self, *_, **__):
        from azure.identity import EnvironmentCredential

        return EnvironmentCredential().get_token("any")


class Token:
    """A credential of azure-identity's form."""

    def __init__(self):
        self.asked = 0

    def get_token(self, *_, **__):
        from azure.core.credentials import AccessToken

        self.asked += 1
        return AccessToken("secret", 4_000_000_000)


class Azure:
    zone, kind = "eastus-2", "Standard_ND96isr_H100_v5"

    def __init__(self, stack, monkeypatch, tmp_path):
        self.api = servers.ArmApi()
        self.unknown = self.api.path("none")
        self.running = stack.enter_context(ExitStack())
        self.running.enter_context(servers.serving(self.api))
        self.monkeypatch, self.stack = monkeypatch, stack
        self.where = Where(
            cloud="azure",
            target="prod",
            region="eastus",
            account=self.api.subscription,
            resource_group=self.api.group,
        )
        for name in ("AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_SECRET", "AZURE_USERNAME"):
            monkeypatch.delenv(name, raising=False)

    def lister(self, credential=None, **changed):
        session = session_of(credential or Token(), retries=0)
        self.stack.callback(session.close)
        given = {"session": session, "base": self.api.base, "patience": patience(), **changed}
        return AzureLister(self.where, **given)

    def launch(self, **given):
        return self.api.launch(tags=tags(**given))

    def refuse(self, how):
        if how == UNREACHABLE:
            self.running.close()
        elif how == DENIED:
            self.api.refusing = (403, {"error": {"code": "AuthorizationFailed", "message": "its words"}}, {})
        else:
            self.api.refusing = (429, {"error": {"code": "TooManyRequests", "message": "its words"}}, {})

    def nobody(self):
        return self.lister(credential=NoCredential())


class Nebius:
    unknown = "computeinstance-e00none"
    cut = False  # gRPC tries for as long as it may
    zone, kind = "", "gpu-h100-sxm_8gpu-128vcpu-1600gb"

    def __init__(self, stack, monkeypatch, tmp_path):
        self.api = servers.NebiusApi()
        self.running = stack.enter_context(ExitStack())
        self.address = self.running.enter_context(servers.serving_grpc(self.api))
        self.monkeypatch, self.tmp_path = monkeypatch, tmp_path
        self.where = Where(cloud="nebius", target="prod", region="eu-north1", account=self.api.parent)

    def lister(self):
        from nebius.base.options import INSECURE
        from nebius.base.resolver import Constant
        from nebius.sdk import SDK

        def opened():
            return SDK(
                resolver=Constant(self.address),
                options=[(INSECURE, True)],
                credentials="secret",
                user_agent_prefix="skyplan",
            )

        return NebiusLister(self.where, open_sdk=opened, retries=0, seconds=1 if self.cut else 30)

    def launch(self, **given):
        return self.api.launch(labels=labels_of(tags(**given).items()))

    def refuse(self, how):
        if how == UNREACHABLE:
            self.cut = True
            self.running.close()
        elif how == DENIED:
            self.api.refusing = (grpc.StatusCode.PERMISSION_DENIED, "its words")
        else:
            self.api.refusing = (grpc.StatusCode.RESOURCE_EXHAUSTED, "its words")

    def nobody(self):
        self.monkeypatch.delenv("NEBIUS_IAM_TOKEN", raising=False)
        self.monkeypatch.setenv("HOME", str(self.tmp_path))
        return NebiusLister(self.where)


@pytest.fixture(params=[Aws, Gcp, Azure, Nebius], ids=["aws", "gcp", "azure", "nebius"])
def cloud(request, monkeypatch, tmp_path):
    with ExitStack() as stack:
        yield request.param(stack, monkeypatch, tmp_path)


@pytest.fixture(params=[Gcp, Azure, Nebius], ids=["gcp", "azure", "nebius"])
def ours(request, monkeypatch, tmp_path):
    with ExitStack() as stack:
        yield request.param(stack, monkeypatch, tmp_path)


class TestEveryLister:
    def test_finds_a_jobs_machines_by_rank_over_all_pages(self, cloud):
        ids = {rank: cloud.launch(rank=rank) for rank in ("r03", "r01", "r04", "r00", "r02")}
        cloud.launch(rank="r00", job="other")
        cloud.launch(rank="r00", project="other")
        found = cloud.lister().instances(project="acme", job="train")
        assert [(i.rank, i.id) for i in found] == sorted(ids.items())

    def test_finds_the_machines_of_all_jobs_of_a_project(self, cloud):
        mine, theirs = cloud.launch(rank="r00"), cloud.launch(rank="r00", job="other", generation=7)
        cloud.launch(rank="r00", project="other")
        found = cloud.lister().instances(project="acme", job=None)
        assert {i.id: (i.tags["skyplan:job"], i.tags["skyplan:generation"]) for i in found} == {
            mine: ("train", "3"),
            theirs: ("other", "7"),
        }

    def test_tells_generations_apart(self, cloud):
        old, new = cloud.launch(rank="r00", generation=2), cloud.launch(rank="r00", generation=3)
        lister = cloud.lister()
        assert [i.id for i in lister.instances(project="acme", job="train", generation=3)] == [new]
        assert {i.id for i in lister.instances(project="acme", job="train")} == {old, new}
        assert lister.instances(project="acme", job="train", generation=4) == ()

    def test_says_what_a_machine_is(self, cloud):
        cloud.launch(rank="r00")
        (found,) = cloud.lister().instances(project="acme", job="train")
        assert found.zone.startswith(cloud.zone)
        assert (found.state, found.capacity, found.instance_type) == ("running", "spot", cloud.kind)
        assert found.address.startswith("10.") or found.address.startswith("172.")
        assert found.launched_at
        assert found.tags == tags(rank="r00")

    def test_ends_machines_and_does_not_list_them_any_more(self, cloud):
        first, second, kept = (cloud.launch(rank=rank) for rank in ("r00", "r01", "r02"))
        lister = cloud.lister()
        lister.terminate([first, second])
        assert [i.id for i in lister.instances(project="acme", job="train")] == [kept]

    def test_ending_again_is_no_error_and_keeps_no_other_alive(self, cloud):
        first, second = cloud.launch(rank="r00"), cloud.launch(rank="r01")
        lister = cloud.lister()
        lister.terminate([first])
        lister.terminate([first, cloud.unknown, second])
        lister.terminate([])
        assert lister.instances(project="acme", job="train") == ()

    @pytest.mark.parametrize("doing", ["list", "end"])
    @pytest.mark.parametrize(
        ("how", "kind", "code"),
        [
            (DENIED, PermissionDenied, "SKY-APPLY-317"),
            (THROTTLED, Unavailable, "SKY-APPLY-326"),
            (UNREACHABLE, Unavailable, "SKY-APPLY-326"),
        ],
    )
    def test_raises_our_errors_only(self, cloud, how, kind, code, doing):
        one = cloud.launch(rank="r00")
        cloud.refuse(how)
        lister = cloud.lister()
        with pytest.raises(CloudError) as caught:
            lister.instances(project="acme", job="train") if doing == "list" else lister.terminate([one])
        assert type(caught.value) is kind
        assert caught.value.diagnostics[0].code == code

    def test_says_when_there_are_no_credentials(self, cloud):
        with pytest.raises(PermissionDenied, match=r"no usable \w+ credentials"):
            cloud.nobody().instances(project="acme", job="train")


class TestListersOfOurServers:
    """What moto cannot be made to do."""

    def test_a_refused_ending_keeps_no_other_alive(self, ours):
        first, second = ours.launch(rank="r00"), ours.launch(rank="r01")
        ours.api.kept.add(first.rpartition("/")[2])
        lister = ours.lister()
        with pytest.raises(CloudError):
            lister.terminate([first, second])
        assert [i.id for i in lister.instances(project="acme", job="train")] == [first]

    def test_every_request_is_signed(self, ours):
        one = ours.launch(rank="r00")
        ours.lister().instances(project="acme", job="train")
        ours.lister().terminate([one])
        assert ours.api.tokens == {"Bearer secret"}

    def test_names_that_no_label_can_hold_are_found_and_told_apart(self, ours):
        mine = ours.launch(rank="r00", job="Train.It", project="ACME")
        ours.launch(rank="r00", job="train-it", project="acme")
        (found,) = ours.lister().instances(project="ACME", job="Train.It")
        assert found.id == mine
        assert found.tags["skyplan:job"] == "Train.It"

    def test_what_it_says_is_plain_data(self, ours):
        ours.launch(rank="r00")
        (found,) = ours.lister().instances(project="acme", job="train")
        assert json.loads(json.dumps(found.tags)) == found.tags
        assert type(found.address) is str
        assert type(found.launched_at) is str
