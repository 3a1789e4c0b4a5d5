"""R22, R23: what doctor asks of Google, Azure and Nebius, against servers held to their APIs: read only, every error as one of ours, the time told by answers."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import grpc
import pytest
from google.auth.credentials import AnonymousCredentials
from nebius.base.options import INSECURE
from nebius.base.resolver import Constant
from nebius.sdk import SDK

from planner.clouds.checkup.azure import AzureCheckup
from planner.clouds.checkup.choose import RealCheckups
from planner.clouds.checkup.gcp import GcpCheckup
from planner.clouds.checkup.nebius import NebiusCheckup
from planner.clouds.checkup.port import skew
from planner.clouds.port import Where
from planner.model.errors import CloudError, InputError, PermissionDenied, Unavailable
from planner.model.project import Backend
from tests.emulators import google_market, nebius_grpc
from tests.emulators.arm import TOKEN, Arm, NoToken, Token, sku, usage
from tests.emulators.nebius_grpc import Nebius, allowance
from tests.unit.clouds.servers import Api, serving

pytestmark = pytest.mark.usefixtures("socket_enabled")
IOWA = "us-central1"
NORTH = "eu-north1"


def later(seconds):
    """The clock of a machine that is ahead."""
    return lambda: datetime.now(UTC) + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("date", "seconds"),
    [("Mon, 30 Nov 2026 12:00:00 GMT", 30.0), ("soon", None), ("", None), (None, None), ("Mon, 30 Nov 2026", None)],
)
def test_the_time_of_an_answer(date, seconds):
    assert skew(date, datetime(2026, 11, 30, 12, 0, 30, tzinfo=UTC)) == seconds


# Google


@pytest.fixture
def market():
    found = google_market.Market(machines={f"{IOWA}-a": []}, accelerators={f"{IOWA}-a": []}, quotas={IOWA: []}, skus=[])
    with google_market.serving(found):
        yield found


@contextmanager
def google(market, **changed):
    given = {"credentials": AnonymousCredentials(), "compute": market.base, "billing": market.base, **changed}
    made = GcpCheckup(Where(cloud="gcp", target="prod", region=IOWA, account="acme-ml"), **given)
    try:
        yield made
    finally:
        made.close()


def test_google_says_the_time_and_what_may_be_read(market):
    with google(market, now=later(400)) as one:
        seen, rights = one.caller(), one.rights(IOWA, "g2-standard-4")
    assert (seen.caller.account, seen.error) == ("acme-ml", None)
    assert 390 < seen.skew_seconds < 410
    assert [r.operation for r in rights] == ["regions.get", "machineTypes.list", "acceleratorTypes.list", "skus.list"]
    assert all(r.error is None for r in rights)
    assert market.methods == {
        "compute.regions.get",
        "compute.machineTypes.list",
        "compute.acceleratorTypes.list",
        "cloudbilling.services.skus.list",
    }


def test_google_without_the_billing_api_is_one_right_less(market):
    market.unbilled = True
    with google(market) as one:
        refused = [r for r in one.rights(IOWA, "g2-standard-4") if r.error]
    assert [r.operation for r in refused] == ["skus.list"]
    assert isinstance(refused[0].error, PermissionDenied)
    assert "has not been used" in str(refused[0].error)


def test_google_that_refuses_a_region_still_says_who_asks(market):
    market.denied.add(IOWA)
    with google(market) as one:
        seen, rights = one.caller(), one.rights(IOWA, "x")
    assert seen.caller is not None
    assert abs(seen.skew_seconds) < 5
    assert {r.operation: r.error is None for r in rights} == {"regions.get": False, "skus.list": True}


def test_google_without_credentials(tmp_path, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(PermissionDenied, match="no usable GCP credentials"):
        GcpCheckup(Where(cloud="gcp", target="prod", region=IOWA))


class Expired(AnonymousCredentials):
    valid = property(lambda self: False)
    service_account_email = "planner@acme-ml.iam.gserviceaccount.com"

    def refresh(self, request):
        from google.auth.exceptions import RefreshError

        raise RefreshError("Reauthentication is needed. Please run `gcloud auth application-default login`")


def test_google_credentials_that_have_ended(market):
    with google(market, credentials=Expired()) as one:
        seen = one.caller()
    assert seen.caller is None
    assert isinstance(seen.error, PermissionDenied)
    assert "Reauthentication" in str(seen.error)


class Store(Api):
    """A bucket's or a container's list, of both clouds."""

    refused = 0

    def answer(self, method, path, query):
        assert method == "GET"
        if self.refused:
            return self.refused, self.error(self.refused), {}
        return 200, {"kind": "storage#objects", "query": query}, {}

    @staticmethod
    def error(status):
        return {"error": {"code": status, "message": "its words", "errors": [{"reason": "forbidden"}]}}


def test_a_bucket_is_listed_under_the_prefix_alone(market):
    with serving(store := Store()) as base, google(market, storage=base) as one:
        one.backend(Backend(kind="gcs", settings=(("bucket", "acme-states"),)), "skyplan/acme/")
        assert store.asked == ["GET /storage/v1/b/acme-states/o"]
        store.refused = 403
        with pytest.raises(PermissionDenied, match="its words"):
            one.backend(Backend(kind="gcs", settings=(("bucket", "acme-states"),)), "skyplan/acme/")
        store.refused = 404
        with pytest.raises(CloudError, match="its words"):
            one.backend(Backend(kind="gcs", settings=(("bucket", "acme-states"),)), "skyplan/acme/")


# Azure


class Subscription(Arm):
    """With the subscription itself, which feeds never ask for."""

    state = "Enabled"

    def answer(self, method, path, query):
        assert method == "GET", "nothing is changed"
        if path == f"/subscriptions/{self.subscription}" and self.tokens == {f"Bearer {TOKEN}"}:
            return 200, {"subscriptionId": self.subscription, "state": self.state, "tenantId": "t"}, {}
        return super().answer(method, path, query)


class Named(Token):
    """A token that says whose it is, as Entra's do."""

    def get_token(self, *_, **__):
        packed = base64.urlsafe_b64encode(json.dumps({"upn": "ada@acme.example"}).encode()).decode().rstrip("=")
        return super().get_token()._replace(token=f"x.{packed}.y")


@pytest.fixture
def arm():
    found = Subscription()
    found.skus.append(sku("Standard_ND96isr_H100_v5", "eastus", "standardNDSH100v5Family"))
    found.usages["eastus"] = [usage("cores", 100)]
    with serving(found):
        yield found


@contextmanager
def azure(arm, **changed):
    where = Where(cloud="azure", target="prod", region="eastus", account=arm.subscription)
    made = AzureCheckup(where, **{"credential": Token(), "base": arm.base, **changed})
    try:
        yield made
    finally:
        made.close()


def test_azure_says_the_time_and_what_may_be_read(arm):
    with azure(arm, now=later(-90)) as one:
        seen, rights = one.caller(), one.rights("eastus", "Standard_ND96isr_H100_v5")
    assert seen.caller.account == arm.subscription
    assert -100 < seen.skew_seconds < -80
    assert [(r.operation, r.error) for r in rights] == [("usages.list", None), ("skus.list", None)]
    assert all(word.startswith("GET ") for word in arm.asked)


def test_azure_names_who_a_token_is_of(arm):
    with azure(arm, credential=Named()) as one:
        assert one._who() == "ada@acme.example"
    with azure(arm) as one:
        assert "does not name" in one._who()


def test_azure_without_credentials_and_with_a_subscription_that_is_off(arm):
    with azure(arm, credential=NoToken()) as one:
        assert isinstance(one.caller().error, PermissionDenied)
    arm.state = "Disabled"
    with azure(arm) as one:
        assert "Disabled" in str(one.caller().error)


class Once(Token):
    """A credential that ends between two questions."""

    def __init__(self):
        self.left = 1

    def get_token(self, *asked, **more):
        self.left -= 1
        return super().get_token() if self.left >= 0 else NoToken().get_token()


def test_azure_credentials_that_end_while_they_are_looked_at(arm):
    with azure(arm, credential=Once()) as one:
        assert isinstance(one.caller().error, PermissionDenied)


def test_answers_of_another_form_are_no_answers(market, arm):
    market.loose = True
    for region in ([], "text", {"zones": 3}, {"zones": None}):
        with serving(odd := Odd()) as base, google(market, compute=base) as one:
            odd.body = region
            assert one.caller().caller is not None
            assert [r.operation for r in one.rights(IOWA, "x")] == ["regions.get", "skus.list"]
    with serving(odd := Odd()) as base, azure(arm, base=base) as one:
        odd.body = ["no", "object"]
        assert one.caller().caller is not None


class Odd(Api):
    body = None

    def answer(self, method, path, query):
        return 200, self.body, {}


def test_azures_store_of_states(arm):
    settings = (("container_name", "states"), ("storage_account_name", "acmestates"))
    with serving(store := Store()) as base, azure(arm, blobs=base + "/{account}") as one:
        one.backend(Backend(kind="azurerm", settings=settings), "skyplan/acme/")
        assert store.asked == ["GET /acmestates/states"]
        assert store.tokens == {f"Bearer {TOKEN}"}
        store.refused = 403
        with pytest.raises(PermissionDenied):
            one.backend(Backend(kind="azurerm", settings=settings), "skyplan/acme/")


def test_an_api_that_is_not_there(arm):
    with azure(arm, base="http://127.0.0.1:1") as one:
        assert isinstance(one.caller().error, Unavailable)


# Nebius


class Profiled(Nebius):
    """With who-am-I, which feeds never ask for."""

    def answer(self, method, asked, context):
        assert method.rpartition("/")[2] in {"Get", "List"}, "nothing is changed"
        if method == "iam.v1.ProfileService/Get":
            if method in self.refused:
                context.abort(*self.refused[method])
            info = {"metadata": {"id": "serviceaccount-e00planner"}}
            return {"service_account_profile": {"info": info}}
        return super().answer(method, asked, context)


@pytest.fixture
def nebius():
    api = Profiled()
    api.projects["project-e00north"] = NORTH
    api.allowances.append(allowance("compute.instance.gpu.h100", NORTH, 16))
    with nebius_grpc.serving(api) as address:
        api.address = address
        yield api


def checkup_of(api, account="project-e00north"):
    def opened():
        return SDK(
            resolver=Constant(api.address),
            options=[(INSECURE, True)],
            credentials=nebius_grpc.TOKEN,
            user_agent_prefix="skyplan",
        )

    return NebiusCheckup(Where(cloud="nebius", target="prod", region=NORTH, account=account), open_sdk=opened)


def test_nebius_says_who_asks_and_what_may_be_read(nebius):
    one = checkup_of(nebius)
    seen, rights = one.caller(), one.rights(NORTH, "gpu-h100-sxm_1gpu-16vcpu-200gb")
    assert (seen.caller.who, seen.caller.account) == ("serviceaccount-e00planner", "project-e00north")
    assert seen.skew_seconds is None, "gRPC tells no time"
    assert [(r.operation, r.error) for r in rights] == [("quotaAllowances.list", None), ("resourceAdvice.list", None)]
    assert {method for method, _ in nebius.asked} == {
        "iam.v1.ProfileService/Get",
        "iam.v2.ProjectService/Get",
        "quotas.v1.QuotaAllowanceService/List",
        "capacity.v1.ResourceAdviceService/List",
    }


def test_nebius_refuses_or_knows_no_such_project(nebius):
    assert "no-such" in str(checkup_of(nebius, "project-no-such").caller().error)
    nebius.refused["iam.v1.ProfileService/Get"] = (grpc.StatusCode.UNAUTHENTICATED, "the token has ended")
    assert isinstance(checkup_of(nebius).caller().error, PermissionDenied)


def test_nebius_without_a_profile():
    def opened():
        raise FileNotFoundError("no configuration of the CLI's")

    one = NebiusCheckup(Where(cloud="nebius", target="prod", region=NORTH), open_sdk=opened)
    assert isinstance(one.caller().error, PermissionDenied)


def test_a_cloud_that_is_none():
    with pytest.raises(InputError):
        RealCheckups().checkup(Where(cloud="vogon", target="x", region="y"))


def test_dates_are_those_of_http():
    at = datetime(2026, 11, 30, tzinfo=UTC)
    assert skew(format_datetime(at, usegmt=True), at) == 0.0
