"""What is particular to GCP, Azure and Nebius: their states, their names for things, their slow endings, and their SDKs when they are not there."""

from __future__ import annotations

import builtins
from contextlib import ExitStack

import pytest

from planner.clouds import errors_map
from planner.clouds.azure import AzureLister
from planner.clouds.choose import RealClouds
from planner.clouds.gcp import GcpLister
from planner.clouds.nebius import NebiusLister
from planner.clouds.port import Where
from planner.clouds.rest import Patience
from planner.model.errors import CloudError, InputError, MissingPart, PermissionDenied, Unavailable
from planner.model.labels import labels_of
from tests.unit.clouds.servers import AT
from tests.unit.clouds.test_contract import Azure, Gcp, Nebius, Token, patience, tags

JOB = {"project": "acme", "job": "train"}


@pytest.fixture
def stack():
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def gcp(stack, monkeypatch, tmp_path):
    return Gcp(stack, monkeypatch, tmp_path)


@pytest.fixture
def azure(stack, monkeypatch, tmp_path):
    return Azure(stack, monkeypatch, tmp_path)


@pytest.fixture
def nebius(stack, monkeypatch, tmp_path):
    return Nebius(stack, monkeypatch, tmp_path)


def states(found):
    return {i.rank: i.state for i in found}


class TestGcp:
    def launch(self, gcp, rank, **given):
        return gcp.api.launch(labels=labels_of(tags(rank=rank).items()), **given)

    def test_terminated_is_a_machine_that_is_off(self, gcp):
        for rank, status in enumerate(("PROVISIONING", "RUNNING", "STOPPING", "TERMINATED", "WHATEVER")):
            self.launch(gcp, f"r{rank:02}", status=status)
        expected = ["pending", "running", "stopping", "stopped", "pending"]
        assert list(states(gcp.lister().instances(**JOB)).values()) == expected

    def test_other_regions_are_not_looked_at(self, gcp):
        self.launch(gcp, "r00", zone="us-central2-a")
        here = self.launch(gcp, "r01", zone="us-central1-f", spot=False)
        (found,) = gcp.lister().instances(**JOB)
        assert (found.id, found.zone, found.capacity) == (here, "us-central1-f", "on_demand")

    def test_a_zone_that_does_not_answer_is_not_taken_for_empty(self, gcp):
        gcp.api.unreachable = ("europe-west4-b",)
        assert gcp.lister().instances(**JOB) == ()
        gcp.api.unreachable = ("us-central1-b",)
        with pytest.raises(Unavailable, match="us-central1-b"):
            gcp.lister().instances(**JOB)

    def test_what_the_filter_let_through_is_looked_at_again(self, gcp, monkeypatch):
        self.launch(gcp, "r00")
        gcp.launch(rank="r01", job="other")
        everything = {"zones/us-central1-a": {"instances": list(gcp.api.machines.values())}}
        monkeypatch.setattr(gcp.api, "listed", lambda _: {"items": everything})
        assert states(gcp.lister().instances(**JOB)) == {"r00": "running"}

    def test_the_id_is_what_terraform_imports(self, gcp):
        self.launch(gcp, "r00")
        (found,) = gcp.lister().instances(**JOB)
        assert found.id == "projects/acme-ml/zones/us-central1-a/instances/skyplan-0"

    def test_what_is_no_id_is_not_sent(self, gcp):
        with pytest.raises(CloudError, match="no machine's id"):
            gcp.lister().terminate(["projects/acme-ml/zones/z/instances/a/../../b"])
        assert not gcp.api.asked

    def test_an_ending_that_began_elsewhere_is_waited_for(self, gcp, monkeypatch):
        one = self.launch(gcp, "r00")
        busy = [(400, gcp.api.error(400, "resourceNotReady", "is not ready"), {})] * 3
        delete = gcp.api.delete
        monkeypatch.setattr(gcp.api, "delete", lambda name: busy.pop() if busy else delete(name))
        gcp.lister().terminate([one])
        assert not gcp.api.machines

    def test_patience_has_an_end(self, gcp, monkeypatch):
        one = self.launch(gcp, "r00")
        monkeypatch.setattr(gcp.api, "wait", lambda name: {"name": name, "status": "RUNNING"})
        with pytest.raises(Unavailable, match="not done"):
            gcp.lister().terminate([one])
        monkeypatch.setattr(
            gcp.api, "delete", lambda _: (400, gcp.api.error(400, "resourceNotReady", "is not ready"), {})
        )
        with pytest.raises(Unavailable, match="another operation"):
            gcp.lister().terminate([one])

    @pytest.mark.parametrize(("code", "fails"), [("RESOURCE_IN_USE", True), ("RESOURCE_NOT_FOUND", False)])
    def test_an_operation_may_fail(self, gcp, monkeypatch, code, fails):
        one = self.launch(gcp, "r00")
        done = {"status": "DONE", "error": {"errors": [{"code": code, "message": "its words"}]}}
        monkeypatch.setattr(gcp.api, "wait", lambda _: done)
        with ExitStack() as stack:
            if fails:
                stack.enter_context(pytest.raises(CloudError, match="RESOURCE_IN_USE: its words"))
            gcp.lister().terminate([one])

    def test_without_a_project_nothing_is_asked(self, gcp):
        gcp.where = Where(cloud="gcp", target="prod", region="us-central1")
        with pytest.raises(PermissionDenied, match="which GCP project"):
            gcp.lister()

    def test_as_a_service_account_with_the_project_of_the_credentials(self, gcp, monkeypatch, tmp_path):
        import google.auth
        from google.oauth2.credentials import Credentials

        asked = []

        def default(scopes):
            asked.append(scopes)
            return Credentials(token="secret"), "acme-default"

        monkeypatch.setattr(google.auth, "default", default)
        made = GcpLister(Where(cloud="gcp", target="prod", region="us-central1", role="x@acme.iam.gserviceaccount.com"))
        session = made._rest._session
        assert session.credentials.service_account_email == "x@acme.iam.gserviceaccount.com"
        assert asked == [("https://www.googleapis.com/auth/cloud-platform",)]
        assert made._project == "acme-default"
        session.close()


class TestAzure:
    def test_the_power_state_counts(self, azure):
        powers = ("starting", "running", "deallocating", "deallocated", "stopped", "")
        for rank, power in enumerate(powers):
            azure.api.launch(tags=tags(rank=f"r{rank:02}"), power=power, spot=False)
        found = azure.lister().instances(**JOB)
        assert list(states(found).values()) == ["pending", "running", "stopping", "stopped", "stopped", "pending"]
        assert {i.capacity for i in found} == {"on_demand"}

    def test_neither_other_regions_nor_machines_on_their_way_out(self, azure):
        azure.api.launch(tags=tags(rank="r00"), location="westus")
        azure.api.launch(tags=tags(rank="r01"), provisioning="Deleting")
        azure.api.gone_while_looking.add(azure.api.launch(tags=tags(rank="r02")).rpartition("/")[2])
        azure.api.launch(tags=None)
        here = azure.api.launch(tags=tags(rank="r03"), location="East US")
        assert [i.id for i in azure.lister().instances(**JOB)] == [here]

    def test_the_id_is_terraforms_though_azure_shouts(self, azure):
        azure.api.launch(tags={key.title(): value for key, value in tags(rank="r00").items()})
        (found,) = azure.lister().instances(**JOB)
        assert found.id == azure.api.path("skyplan-0")
        assert found.tags == tags(rank="r00")

    def test_without_a_group_the_subscription_is_read_and_the_group_is_named_as_skyplan_made_it(self, azure):
        here = azure.launch(rank="r00")
        azure.where = Where(cloud="azure", target="prod", region="eastus", account=azure.api.subscription)
        assert [i.id for i in azure.lister().instances(**JOB)] == [here]
        subscription = f"/subscriptions/{azure.api.subscription}"
        assert f"GET {subscription}/providers/Microsoft.Compute/virtualMachines" in azure.api.asked

    def test_an_interface_of_nobody_is_a_leftover_and_ends(self, azure):
        azure.launch(rank="r00")
        lost = azure.api.lay(tags={key.title(): value for key, value in tags(rank="r01").items()})
        azure.api.lay(tags=tags(rank="r02"), virtualMachine={"id": azure.api.path("elsewhere")})
        azure.api.lay(tags=tags(rank="r03"), location="westus")
        azure.api.lay(tags=tags(rank="r04"), provisioningState="Deleting")
        azure.api.lay(tags=tags(rank="r05", job="other"))
        azure.api.lay(tags=None)
        endpoint = {key: value for key, value in tags(rank="r06").items() if key != "skyplan:generation"}
        azure.api.lay(tags=endpoint)
        lister = azure.lister()
        assert states(lister.instances(**JOB)) == {"r00": "running", "r01": "leftover"}
        assert lister.instances(**JOB)[1].id == lost
        assert lister.instances(**JOB, generation=2) == ()
        lister.terminate([lost])
        lister.terminate([lost])
        assert states(lister.instances(**JOB)) == {"r00": "running"}
        assert len(azure.api.machines) == 1

    def test_an_interface_that_a_machine_names_is_no_leftover(self, azure, monkeypatch):
        azure.launch(rank="r00")
        card = {**azure.api.card("skyplan-0"), "name": "skyplan-0", "location": "eastus", "tags": tags(rank="r00")}
        monkeypatch.setitem(azure.api.cards, "skyplan-0", card)
        assert states(azure.lister().instances(**JOB)) == {"r00": "running"}

    def test_a_group_that_is_gone_holds_nothing(self, azure):
        azure.api.refusing = (404, {"error": {"code": "ResourceGroupNotFound", "message": "gone"}}, {})
        assert azure.lister().instances(**JOB) == ()

    @pytest.mark.parametrize("by_location", [True, False])
    def test_the_os_disk_ends_with_the_machine(self, azure, by_location):
        azure.api.by_location = by_location
        one, _ = azure.launch(rank="r00"), azure.launch(rank="r01")
        azure.api.kept.add("skyplan-1")
        lister = azure.lister()
        lister.terminate([one])
        with pytest.raises(CloudError, match="ScopeLocked"):
            lister.terminate([azure.api.path("skyplan-1")])
        assert azure.api.disks == {azure.api.path("skyplan-1-os", "Microsoft.Compute/disks")}

    def test_an_operation_may_fail_and_patience_has_an_end(self, azure, monkeypatch):
        one = azure.launch(rank="r00")
        failed = {"status": "Failed", "error": {"code": "InternalExecutionError", "message": "its words"}}
        monkeypatch.setattr(azure.api, "poll", lambda _: (200, failed, {}))
        with pytest.raises(CloudError, match="InternalExecutionError: its words"):
            azure.lister().terminate([one])
        monkeypatch.setattr(azure.api, "poll", lambda _: (200, {"status": "InProgress"}, {}))
        with pytest.raises(Unavailable, match="not gone yet"):
            azure.lister().terminate([one])

    def test_the_token_goes_nowhere_else(self, azure, monkeypatch):
        azure.launch(rank="r00")
        page = {"value": [], "nextLink": "http://127.0.0.1:9/elsewhere"}
        monkeypatch.setattr(azure.api, "listed", lambda *_: page)
        with pytest.raises(CloudError, match="leads elsewhere"):
            azure.lister().instances(**JOB)

    def test_a_token_is_asked_for_once(self, azure):
        azure.launch(rank="r00")
        token = Token()
        azure.lister(credential=token).instances(**JOB)
        assert token.asked == 1
        assert len(azure.api.asked) > 2

    def test_the_subscription_may_come_from_the_environment(self, azure, monkeypatch):
        azure.where = Where(cloud="azure", target="prod", region="eastus")
        for name in ("ARM_SUBSCRIPTION_ID", "AZURE_SUBSCRIPTION_ID"):
            monkeypatch.delenv(name, raising=False)
        with pytest.raises(PermissionDenied, match="which Azure subscription"):
            azure.lister()
        monkeypatch.setenv("ARM_SUBSCRIPTION_ID", azure.api.subscription)
        azure.launch(rank="r00")
        assert len(azure.lister().instances(**JOB)) == 1

    def test_a_proxys_page_is_an_error_too(self, azure, monkeypatch):
        monkeypatch.setattr(azure.api, "answer", lambda *_: (502, ["not what was asked for"], {}))
        with pytest.raises(Unavailable, match="HTTP 502"):
            azure.lister().instances(**JOB)

    @pytest.mark.parametrize(("status", "body"), [(200, ["a page"]), (302, {}), (200, "")])
    def test_nor_does_it_pass_for_an_empty_list(self, azure, monkeypatch, status, body):
        azure.launch(rank="r00")
        monkeypatch.setattr(azure.api, "answer", lambda *_: (status, body, {"Location": f"{azure.api.base}/login"}))
        with pytest.raises(CloudError):
            azure.lister().instances(**JOB)
        assert len(azure.api.asked) == 1

    def test_as_itself_or_as_a_managed_identity(self, monkeypatch):
        import azure.identity

        given = []
        monkeypatch.setattr(azure.identity, "DefaultAzureCredential", lambda **words: given.append(words))
        for role in (None, "22222222-2222-2222-2222-222222222222"):
            made = AzureLister(Where(cloud="azure", target="p", region="eastus", account="s", role=role))
            made._rest._session.close()
        assert given == [
            {},
            {"managed_identity_client_id": role, "workload_identity_client_id": role},
        ]


class TestNebius:
    def launch(self, nebius, rank, **given):
        return nebius.api.launch(labels=labels_of(tags(rank=rank).items()), **given)

    def test_what_is_being_deleted_is_no_machine(self, nebius):
        for rank, state in enumerate(("CREATING", "RUNNING", "STOPPING", "STOPPED", "ERROR", "DELETING")):
            self.launch(nebius, f"r{rank:02}", state=state, spot=False)
        found = nebius.lister().instances(**JOB)
        assert list(states(found).values()) == ["pending", "running", "stopping", "stopped", "stopped"]
        assert {i.capacity for i in found} == {"on_demand"}

    def test_a_reserved_address_of_nobody_is_a_leftover_and_ends(self, nebius):
        self.launch(nebius, "r00")
        lost = nebius.api.reserve(labels=labels_of(tags(rank="r01").items()))
        for rank, state in (("r02", "ASSIGNED"), ("r03", "DELETING")):
            nebius.api.reserve(labels=labels_of(tags(rank=rank).items()), state=state)
        endpoint = {key: value for key, value in tags(rank="r04").items() if key != "skyplan:generation"}
        nebius.api.reserve(labels=labels_of(endpoint.items()))
        lister = nebius.lister()
        found = lister.instances(**JOB)
        assert states(found) == {"r00": "running", "r01": "leftover"}
        assert (found[1].id, found[1].address) == (lost, "10.0.0.1")
        lister.terminate([lost])
        lister.terminate([lost])
        assert states(lister.instances(**JOB)) == {"r00": "running"}

    def test_an_address_that_a_machine_names_is_no_leftover(self, nebius):
        from nebius.api.nebius.compute import v1

        address = nebius.api.reserve(labels=labels_of(tags(rank="r00").items()))
        machine = nebius.api.machines[self.launch(nebius, "r00")]
        card = v1.NetworkInterfaceSpec(ip_address=v1.IPAddress(allocation_id=address))
        machine.spec.network_interfaces.append(card)
        assert states(nebius.lister().instances(**JOB)) == {"r00": "running"}

    def test_an_operation_may_fail(self, nebius, monkeypatch):
        from nebius.api.nebius.common.v1 import Operation
        from nebius.base.protos.dynamic import REGISTRY

        one = self.launch(nebius, "r00")
        failed = REGISTRY.message_class("google.rpc.Status")(code=9, message="its words")
        answer = Operation(id="computeoperation-1", resource_id=one, finished_at=AT, status=failed)
        monkeypatch.setattr(nebius.api, "operation", lambda _: answer)
        with pytest.raises(CloudError, match=r"FAILED_PRECONDITION.*its words"):
            nebius.lister().terminate([one])

    def test_without_a_project_nothing_is_asked(self, nebius):
        nebius.where = Where(cloud="nebius", target="prod", region="eu-north1")
        with pytest.raises(PermissionDenied, match="which Nebius project"):
            nebius.lister().instances(**JOB)

    def test_a_role_is_refused_rather_than_ignored(self):
        with pytest.raises(PermissionDenied, match="role"):
            NebiusLister(Where(cloud="nebius", target="prod", region="eu-north1", role="serviceaccount-1"))

    def test_the_token_of_the_environment_or_the_clis_profile(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        made = NebiusLister(Where(cloud="nebius", target="prod", region="eu-north1", account="project-1"))
        monkeypatch.setenv("NEBIUS_IAM_TOKEN", "secret")
        sdk = made._open()
        assert sdk.parent_id() == "project-1"
        sdk.sync_close()
        monkeypatch.delenv("NEBIUS_IAM_TOKEN")
        folder = tmp_path / ".nebius"
        folder.mkdir()
        (folder / "config.yaml").write_text("default: [")
        with pytest.raises(PermissionDenied, match="no usable Nebius credentials"):
            made.instances(**JOB)


@pytest.mark.parametrize(
    ("cloud", "package"), [("gcp", "google.auth"), ("azure", "azure.identity"), ("nebius", "nebius.sdk")]
)
def test_without_its_sdk_a_cloud_says_what_to_install(monkeypatch, cloud, package):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == package:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingPart, match=rf"\.\[{cloud}\]"):
        RealClouds().lister(Where(cloud=cloud, target="t", region="r", account="a"))


def test_a_cloud_without_an_adapter_is_named():
    with pytest.raises(InputError, match="oracle"):
        RealClouds().lister(Where(cloud="oracle", target="t", region="r"))


def test_a_lister_is_made_once_a_place(monkeypatch):
    monkeypatch.setenv("NEBIUS_IAM_TOKEN", "secret")
    clouds = RealClouds()
    one = Where(cloud="nebius", target="t", region="r", account="a")
    assert clouds.lister(one) is clouds.lister(one)
    assert clouds.lister(one) is not clouds.lister(Where(cloud="nebius", target="t", region="r", account="b"))


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "InvalidAuthenticationToken", PermissionDenied),
        (403, "forbidden", PermissionDenied),
        (403, "rateLimitExceeded", Unavailable),
        (429, "", Unavailable),
        (503, "backendError", Unavailable),
        (409, "Conflict", CloudError),
    ],
)
def test_what_http_statuses_mean(status, code, kind):
    assert type(errors_map.http_error("GCP", "list", status, code, "words")) is kind


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("UNAUTHENTICATED", PermissionDenied),
        ("PERMISSION_DENIED", PermissionDenied),
        ("UNAVAILABLE", Unavailable),
        ("RESOURCE_EXHAUSTED", Unavailable),
        ("FAILED_PRECONDITION", CloudError),
    ],
)
def test_what_grpc_codes_mean(code, kind):
    assert type(errors_map.grpc_error("Nebius", "list", code, "words")) is kind


def test_patience_takes_at_least_one_turn_and_stops_in_time():
    assert len(list(patience(0).turns(every=1))) == 1
    assert len(list(patience(10).turns(every=5))) == 3
    assert Patience().seconds > 60
