"""Google's feed by the contract, with its real SDK against a server that is held to Google's discovery documents.  Never run against live Google Cloud."""

from __future__ import annotations

import copy
import os
import shutil
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # about the Python of the future
    pytest.importorskip("google.cloud.compute_v1", reason="google-cloud-compute is not installed (extra `gcp`)")
pytest.importorskip("googleapiclient", reason="google-api-python-client is not installed")

from planner.clouds.feeds.gcp import GcpFeed
from planner.clouds.port import Where
from planner.iam.operations.gcp import OPERATIONS
from planner.model.errors import CloudError
from planner.model.readings import CapacityWord
from tests.contract.feeds import Bed, FeedContract, Spoilt, Waits, codes, read
from tests.emulators.google_market import Market, NotGoogles, held, serving

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
IOWA, TOKYO = "us-central1", "asia-northeast1"
A2, A3, MEGA, G2, T4, B200 = (
    "a2-ultragpu-1g",
    "a3-highgpu-8g",
    "a3-megagpu-8g",
    "g2-standard-4",
    "n1-standard-8+t4x2",
    "a4-highgpu-8g",
)
PLACES = {IOWA: "Americas", TOKYO: "Tokyo"}
UNITS = {"core": "h", "ram": "GiBy.h", "gpu": "h", "ssd": "GiBy.mo"}
#: a made-up list: (part, name, USD per unit in Iowa on demand)
RATES = [
    ("core", "A2 Instance Core", "0.031611"),
    ("ram", "A2 Instance Ram", "0.004237"),
    ("gpu", "Nvidia Tesla A100 GPU", "2.933908"),
    ("gpu", "Nvidia Tesla A100 80GB GPU", "3.927400"),
    ("core", "A3 Instance Core", "0.029000"),
    ("ram", "A3 Instance Ram", "0.002530"),
    ("gpu", "Nvidia H100 80GB GPU", "9.796551"),
    ("core", "A3Plus Instance Core", "0.026924"),
    ("ram", "A3Plus Instance Ram", "0.002344"),
    ("core", "G2 Instance Core", "0.024988"),
    ("ram", "G2 Instance Ram", "0.002927"),
    ("gpu", "Nvidia L4 GPU", "0.560040"),
    ("core", "N1 Predefined Instance Core", "0.031611"),
    ("ram", "N1 Predefined Instance Ram", "0.004237"),
    ("gpu", "Nvidia Tesla T4 GPU", "0.350000"),
    ("ssd", "SSD backed Local Storage", "0.080000"),
]


def money(usd: str, currency: str = "USD") -> dict[str, Any]:
    whole = Decimal(usd)
    return {"currencyCode": currency, "units": str(int(whole)), "nanos": int((whole - int(whole)) * 10**9)}


def sku(
    description: str, usd: str, unit: str, regions: list[str], *, usage: str = "OnDemand", group: str = "CPU"
) -> dict[str, Any]:
    """A row of the billing catalogue."""
    return {
        "name": f"services/6F81-5844-456A/skus/{len(description):08d}",
        "skuId": f"{len(description):04d}-{usage[:4]}",
        "description": description,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Compute",
            "resourceGroup": group,
            "usageType": usage,
        },
        "serviceRegions": regions,
        "pricingInfo": [
            {
                "effectiveTime": "2026-11-29T08:00:00Z",
                "pricingExpression": {
                    "usageUnit": unit,
                    "baseUnit": "s",
                    "displayQuantity": 1,
                    "tieredRates": [{"startUsageAmount": 0, "unitPrice": money(usd)}],
                },
                "currencyConversionRate": 1,
            }
        ],
        "serviceProviderName": "Google",
    }


def skus() -> list[dict[str, Any]]:
    """Tokyo is a quarter dearer, spot costs two fifths; between the rows stands what must not be taken for them."""
    made: list[dict[str, Any]] = []
    for region, place in PLACES.items():
        for part, name, usd in RATES:
            rate = Decimal(usd) * (1 if region == IOWA else Decimal("1.25"))
            spot = str((rate * Decimal("0.4")).quantize(Decimal("1e-9")))
            at_spot = (
                f"Spot Preemptible {name} running in {place}"
                if part in {"core", "ram"}
                else f"{name} attached to Spot Preemptible VMs running in {place}"
            )
            plain = name if (part, region) == ("ssd", IOWA) else f"{name} running in {place}"
            made += [
                sku(plain, str(rate), UNITS[part], [region]),
                sku(at_spot, spot, UNITS[part], [region], usage="Preemptible"),
                sku(f"Commitment v1: {name} in {place} for 1 Year", "0.001", UNITS[part], [region], usage="Commit1Yr"),
                sku(f"Reserved {name} in {place} in Calendar Mode", "0.002", UNITS[part], [region]),
                sku(f"{name} attached to DWS Defined Duration VMs running in {place}", "0.003", UNITS[part], [region]),
                sku(f"DWS Defined Duration {name} running in {place}", "0.004", UNITS[part], [region]),
                sku(f"{name} attached to Sole Tenancy VMs running in {place}", "0.005", UNITS[part], [region]),
            ]
    made += [
        # Google spells this one in three ways
        sku("Nvidia H100 80GB Plus GPU running in Americas", "10.344276", "h", [IOWA]),
        sku(
            "Nvidia H100 80GB Mega GPU attached to Spot Preemptible VMs running in Americas",
            "3.7",
            "h",
            [IOWA],
            usage="Preemptible",
        ),
        # the whole machine, and spot that is marked OnDemand
        sku("A4 Nvidia B200 (1 gpu slice) running in Americas", "16.11", "h", [IOWA]),
        sku("Spot Preemptible A4 Nvidia B200 (1 gpu slice) running in Americas", "4.9542", "h", [IOWA]),
    ]
    return made


def machine(
    name: str, vcpus: int, ram_gib: int, accelerator: str = "", gpus: int = 0, *, ssd: int = 0
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": "compute#machineType",
        "id": "1",
        "name": name,
        "guestCpus": vcpus,
        "memoryMb": ram_gib * 1024,
    }
    if accelerator:
        row["accelerators"] = [{"guestAcceleratorType": accelerator, "guestAcceleratorCount": gpus}]
    if ssd:
        row["bundledLocalSsds"] = {"defaultInterface": "NVME", "partitionCount": ssd}
    return row


MACHINES = {
    A2: machine(A2, 12, 170, "nvidia-a100-80gb", 1, ssd=1),
    A3: machine(A3, 208, 1872, "nvidia-h100-80gb", 8, ssd=16),
    MEGA: machine(MEGA, 208, 1872, "nvidia-h100-mega-80gb", 8, ssd=16),
    B200: machine(B200, 224, 3968, "nvidia-b200", 8, ssd=32),
    G2: machine(G2, 4, 16, "nvidia-l4", 1),
    "n1-standard-8": machine("n1-standard-8", 8, 30),
    "e2-medium": machine("e2-medium", 2, 4),
}
ZONES = {
    f"{IOWA}-a": (A2, A3, MEGA, B200, G2, "n1-standard-8", "e2-medium"),
    f"{IOWA}-b": (G2, "n1-standard-8", "e2-medium"),
    f"{TOKYO}-a": (A2, G2, "e2-medium"),
}


def quota(metric: str, limit: float, usage: float = 0.0) -> dict[str, Any]:
    return {"metric": metric, "limit": limit, "usage": usage}


def market() -> Market:
    quotas = [
        quota("NVIDIA_A100_80GB_GPUS", 16.0, 8.0),
        quota("PREEMPTIBLE_NVIDIA_A100_80GB_GPUS", 32.0),
        quota("PREEMPTIBLE_NVIDIA_H100_GPUS", 64.0, 8.0),
        quota("NVIDIA_L4_GPUS", 0.0),
        quota("NVIDIA_T4_GPUS", 4.0),
        quota("NVIDIA_T4_VWS_GPUS", 1.0),
        quota("COMMITTED_NVIDIA_L4_GPUS", 7.0),
        quota("CPUS", 240.0, 12.0),
    ]
    return Market(
        machines={zone: [copy.deepcopy(MACHINES[name]) for name in names] for zone, names in ZONES.items()},
        accelerators={
            f"{IOWA}-a": [
                {"name": "nvidia-tesla-t4", "maximumCardsPerInstance": 4},
                {"name": "nvidia-l4", "maximumCardsPerInstance": 8},
            ],
            f"{IOWA}-b": [{"name": "nvidia-l4", "maximumCardsPerInstance": 8}],
        },
        quotas={IOWA: quotas, TOKYO: [dict(one) for one in quotas]},
        skus=skus(),
    )


class GcpBed(Bed):
    cloud = "gcp"
    regions = (IOWA, TOKYO)
    types = {IOWA: (A2, A3, MEGA, B200, G2, T4), TOKYO: (A2, G2)}  # noqa: RUF012 - a bed's facts
    unwanted = "e2-medium"
    now = NOW

    def __init__(self, monkeypatch: pytest.MonkeyPatch, stack: ExitStack):
        self.market, self.monkeypatch, self.stack = market(), monkeypatch, stack
        self.base = stack.enter_context(serving(self.market))

    def feed(self, again, **changed: Any):
        from google.auth.credentials import AnonymousCredentials

        given = {"credentials": AnonymousCredentials(), "compute": self.base, "billing": self.base, **changed}
        feed = GcpFeed(Where(cloud="gcp", target="prod", region=IOWA, account="acme-ml"), again=again, **given)
        self.stack.callback(feed.close)
        return feed

    def nobody(self, again):
        self.monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", os.devnull + "/none.json")
        return self.feed(again, credentials=None)

    def calls(self):
        return self.market.calls

    def throttle(self, times, after=None):
        self.market.throttle, self.market.after = times, after
        return True

    def down(self, region):
        self.market.down.add(region)

    def deny(self, region):
        self.market.denied.add(region)

    def small_pages(self, what):
        self.market.page = 1 if what == "capacity" else 7
        return what != "quotas"

    def endless(self, what):
        self.market.endless = True
        return what != "quotas"

    def shuffle(self):
        self.market.turned = True

    def sku(self, description: str) -> dict[str, Any]:
        (found,) = (one for one in self.market.skus if one["description"] == description)
        return found

    def _rate(self, description: str) -> dict[str, Any]:
        return self.sku(description)["pricingInfo"][0]["pricingExpression"]

    def malform(self, what):
        if what == "prices":
            self._rate("Nvidia L4 GPU running in Tokyo")["tieredRates"] = []
            self._rate("Nvidia Tesla A100 80GB GPU running in Tokyo")["tieredRates"][0]["unitPrice"] = money("-3")
            for row in self.market.machines[f"{IOWA}-a"]:
                if row["name"] == A3:
                    row["guestCpus"] = 0
            return (
                Spoilt(TOKYO, f"gcp/{TOKYO}/{TOKYO}-a/{G2}/on_demand"),
                Spoilt(TOKYO, f"gcp/{TOKYO}/{TOKYO}-a/{A2}/on_demand"),
                Spoilt(IOWA, f"gcp/{IOWA}/{IOWA}-a/{A3}"),
            )
        if what == "capacity":
            self.market.machines[f"{TOKYO}-a"][0]["name"] = ""
            return (Spoilt(TOKYO, f"gcp/{TOKYO}/{TOKYO}-a/{A2}"),)
        del self.market.quotas[TOKYO][0]["limit"]
        return (Spoilt(TOKYO, "NVIDIA_A100_80GB_GPUS"),)

    def future(self, what):
        if what != "prices":
            return None
        self.sku("Nvidia L4 GPU running in Tokyo")["pricingInfo"][0]["effectiveTime"] = "2026-11-30T13:00:00Z"
        return Spoilt(TOKYO, f"gcp/{TOKYO}/{TOKYO}-a/{G2}/on_demand")

    def currency(self):
        self._rate("Nvidia L4 GPU running in Tokyo")["tieredRates"][0]["unitPrice"] = money("70", "JPY")
        return Spoilt(TOKYO, f"gcp/{TOKYO}/{TOKYO}-a/{G2}/on_demand")

    def unit(self):
        self._rate("G2 Instance Ram running in Tokyo")["usageUnit"] = "GiBy.d"
        return Spoilt(TOKYO, f"gcp/{TOKYO}/{TOKYO}-a/{G2}/on_demand")


@pytest.fixture
def bed(socket_enabled: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[GcpBed]:
    with ExitStack() as stack:
        yield GcpBed(monkeypatch, stack)


class TestGcp(FeedContract):
    @pytest.fixture
    def bed(self, bed):
        return bed


def prices(bed, **changed):
    found = read(bed.feed(Waits().again()), "prices", bed.wanted(**changed))
    return {one.series: float(one.usd_per_hour) for fed in found.values() for one in fed.prices}


def gcp(region: str, letter: str, instance_type: str, capacity: str) -> str:
    return f"gcp/{region}/{region}-{letter}/{instance_type}/{capacity}"


SSD_HOUR = 375 * 0.08 / 730


class TestPrices:
    def test_a_machine_is_host_gpus_and_the_local_ssd_that_comes_with_it(self, bed):
        found = prices(bed)
        a2 = 12 * 0.031611 + 170 * 0.004237 + 3.9274 + SSD_HOUR
        a3 = 208 * 0.029 + 1872 * 0.00253 + 8 * 9.796551 + 16 * SSD_HOUR
        assert found[gcp(IOWA, "a", A2, "on_demand")] == pytest.approx(a2, abs=1e-6)
        assert found[gcp(IOWA, "a", A3, "on_demand")] == pytest.approx(a3, abs=1e-6)
        assert found[gcp(IOWA, "a", A3, "spot")] == pytest.approx(a3 * 0.4, abs=1e-6)

    def test_a_machine_without_bundled_disks_has_none_in_its_price(self, bed):
        assert prices(bed)[gcp(IOWA, "b", G2, "on_demand")] == pytest.approx(4 * 0.024988 + 16 * 0.002927 + 0.56004)

    def test_parts_are_of_the_machines_own_region(self, bed):
        """The other region's SKUs stand in the same list, and cost something else."""
        found = prices(bed)
        assert found[gcp(TOKYO, "a", G2, "on_demand")] == pytest.approx(
            1.25 * found[gcp(IOWA, "a", G2, "on_demand")], abs=1e-5
        )

    def test_attached_gpus_are_priced_with_the_machine_that_they_are_attached_to(self, bed):
        found = prices(bed)
        assert found[gcp(IOWA, "a", T4, "on_demand")] == pytest.approx(8 * 0.031611 + 30 * 0.004237 + 2 * 0.35)
        assert gcp(IOWA, "b", T4, "on_demand") not in found, "the zone has the machine and not the GPU"

    def test_mega_has_a_host_and_spellings_of_its_own(self, bed):
        found = prices(bed)
        host = 208 * 0.026924 + 1872 * 0.002344
        assert found[gcp(IOWA, "a", MEGA, "on_demand")] == pytest.approx(host + 8 * 10.344276 + 16 * SSD_HOUR, abs=1e-6)
        assert found[gcp(IOWA, "a", MEGA, "spot")] == pytest.approx((host + 16 * SSD_HOUR) * 0.4 + 8 * 3.7, abs=1e-5)

    def test_slices_of_a4_are_the_whole_machine_and_spot_is_spot_whatever_it_is_marked_as(self, bed):
        found = prices(bed)
        assert found[gcp(IOWA, "a", B200, "on_demand")] == pytest.approx(8 * 16.11)
        assert found[gcp(IOWA, "a", B200, "spot")] == pytest.approx(8 * 4.9542)

    def test_a_part_that_is_missing_leaves_the_machine_without_a_price_and_is_named(self, bed):
        bed.market.skus.remove(bed.sku("G2 Instance Ram running in Tokyo"))
        (fed,) = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(TOKYO,))).values()
        assert codes(fed) == {"SKY-CAT-116"}
        assert [w.summary for w in fed.warnings] == [f"gcp {TOKYO}: {G2} on demand: G2 Instance Ram has none"]
        assert {(one.instance_type, one.capacity) for one in fed.prices} == {
            (A2, "on_demand"),
            (A2, "spot"),
            (G2, "spot"),
        }

    def test_what_is_not_sold_as_spot_is_no_warning(self, bed):
        bed.market.skus = [
            one for one in bed.market.skus if "Spot" not in one["description"] or "SSD" in one["description"]
        ]
        (fed,) = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(IOWA,))).values()
        assert fed.warnings == ()
        assert {one.capacity for one in fed.prices} == {"on_demand"}

    def test_two_prices_of_a_part_are_named_and_neither_is_taken(self, bed):
        bed.market.skus.append(sku("Nvidia H100 80GB Mega GPU running in Americas", "9.0", "h", [IOWA]))
        (fed,) = read(bed.feed(Waits().again()), "prices", bed.wanted(regions=(IOWA,))).values()
        assert codes(fed) == {"SKY-CAT-116"}
        assert (MEGA, "on_demand") not in {(one.instance_type, one.capacity) for one in fed.prices}

    def test_one_price_under_two_skus_is_one_price(self, bed):
        bed.market.skus.append(sku("Nvidia H100 80GB Mega GPU running in Americas", "10.344276", "h", [IOWA]))
        assert gcp(IOWA, "a", MEGA, "on_demand") in prices(bed)

    def test_a_type_of_unknown_parts_is_named(self, bed):
        edge = "a3-edgegpu-8g"
        bed.market.machines[f"{IOWA}-a"].append(machine(edge, 208, 1872, "nvidia-h100-80gb", 8, ssd=16))
        (fed,) = read(
            bed.feed(Waits().again()), "prices", bed.wanted(regions=(IOWA,), instance_types={IOWA: (edge, G2)})
        ).values()
        assert codes(fed) == {"SKY-CAT-116"}
        assert edge in fed.warnings[0].summary
        assert {one.instance_type for one in fed.prices} == {G2}

    def test_a_machine_with_other_gpus_than_its_name_says_is_named(self, bed):
        bed.market.machines[f"{IOWA}-b"][0]["accelerators"][0]["guestAcceleratorType"] = "nvidia-tesla-t4"
        (fed,) = read(
            bed.feed(Waits().again()), "prices", bed.wanted(regions=(IOWA,), instance_types={IOWA: (G2,)})
        ).values()
        assert codes(fed) == {"SKY-CAT-116"}
        assert {one.zone for one in fed.prices} == {f"{IOWA}-a"}

    def test_of_tiers_the_dearest_is_taken(self, bed):
        bed._rate("Nvidia L4 GPU running in Americas")["tieredRates"] = [
            {"startUsageAmount": 0, "unitPrice": {"currencyCode": "USD", "units": "0", "nanos": 0}},
            {"startUsageAmount": 10, "unitPrice": money("0.6")},
            {"startUsageAmount": 1000, "unitPrice": money("0.5")},
        ]
        assert prices(bed)[gcp(IOWA, "b", G2, "on_demand")] == pytest.approx(4 * 0.024988 + 16 * 0.002927 + 0.6)

    def test_the_newest_of_several_prices_holds(self, bed):
        info = bed.sku("Nvidia L4 GPU running in Americas")["pricingInfo"]
        info.insert(
            0,
            {
                "effectiveTime": "2026-11-01T00:00:00Z",
                "pricingExpression": {"usageUnit": "h", "tieredRates": [{"unitPrice": money("9")}]},
            },
        )
        assert prices(bed)[gcp(IOWA, "b", G2, "on_demand")] < 1

    def test_a_price_list_that_refuses_us_is_one_question_and_a_warning_for_each_region(self, bed):
        bed.market.unbilled = True
        found = read(bed.feed(Waits().again()), "prices", bed.wanted())
        assert all(codes(fed) == {"SKY-CAT-115"} for fed in found.values())
        assert bed.calls() == 1

    def test_one_zone_that_is_down_leaves_the_others(self, bed):
        bed.market.down.add(f"{IOWA}-a")
        (fed,) = read(bed.feed(Waits().again(attempts=2)), "prices", bed.wanted(regions=(IOWA,))).values()
        assert codes(fed) == {"SKY-CAT-115"}
        assert {one.zone for one in fed.prices} == {f"{IOWA}-b"}

    def test_an_answer_that_the_sdk_cannot_read_is_a_warning(self, bed):
        bed.market.loose = True
        bed.market.machines[f"{TOKYO}-a"][0]["guestCpus"] = "many"
        found = read(bed.feed(Waits().again()), "prices", bed.wanted())
        assert codes(found[TOKYO]) == {"SKY-CAT-115"}
        assert found[IOWA].complete


class TestCapacity:
    def test_a_zone_offers_what_it_lists_and_the_rest_is_withdrawn_there(self, bed):
        found = read(bed.feed(Waits().again()), "capacity", bed.wanted())
        words = {one.series: one.word for fed in found.values() for one in fed.capacity}
        assert words[gcp(IOWA, "a", A3, "spot")] is CapacityWord.OFFERED
        assert words[gcp(IOWA, "b", A3, "spot")] is CapacityWord.WITHDRAWN
        assert words[gcp(IOWA, "a", T4, "on_demand")] is CapacityWord.OFFERED
        assert words[gcp(IOWA, "b", T4, "on_demand")] is CapacityWord.WITHDRAWN, "a machine without the GPU to attach"

    def test_a_type_at_its_end_is_told_with_googles_word(self, bed):
        rows = bed.market.machines[f"{IOWA}-b"]
        rows[0]["deprecated"] = {"state": "DEPRECATED"}
        found = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=(IOWA,)))
        (one,) = (c for c in found[IOWA].capacity if c.series == gcp(IOWA, "b", G2, "spot"))
        assert (one.word, one.detail) == (CapacityWord.OFFERED, "deprecated")
        rows[0]["deprecated"] = {"state": "OBSOLETE"}
        found = read(bed.feed(Waits().again()), "capacity", bed.wanted(regions=(IOWA,)))
        (one,) = (c for c in found[IOWA].capacity if c.series == gcp(IOWA, "b", G2, "spot"))
        assert one.word is CapacityWord.WITHDRAWN


class TestQuotas:
    def test_quotas_count_gpus_and_spot_has_its_own(self, bed):
        (fed,) = read(bed.feed(Waits().again()), "quotas", bed.wanted(regions=(IOWA,))).values()
        told = {one.name: (one.capacity, one.unit, one.limit, one.used, one.instance_types) for one in fed.quotas}
        assert told == {
            "NVIDIA_A100_80GB_GPUS": ("on_demand", "gpus", 16.0, 8.0, (A2,)),
            "PREEMPTIBLE_NVIDIA_A100_80GB_GPUS": ("spot", "gpus", 32.0, 0.0, (A2,)),
            "PREEMPTIBLE_NVIDIA_H100_GPUS": ("spot", "gpus", 64.0, 8.0, (A3,)),
            "NVIDIA_L4_GPUS": ("on_demand", "gpus", 0.0, 0.0, (G2,)),
            "NVIDIA_T4_GPUS": ("on_demand", "gpus", 4.0, 0.0, (T4,)),
        }


class TestRights:
    def test_what_is_called_is_what_the_planner_is_granted(self, bed):
        """Methods and permissions of Compute Engine have the same names here; the price list takes none."""
        feed = bed.feed(Waits().again())
        for what in ("prices", "capacity", "quotas"):
            read(feed, what, bed.wanted())
        granted = {a for one in OPERATIONS if one.resource == "planner.clouds.feeds.gcp.GcpFeed" for a in one.actions}
        assert bed.market.methods == {*granted, "cloudbilling.services.skus.list"}


class TestCredentials:
    def test_without_a_project_nothing_is_asked(self, bed):
        from google.auth.credentials import AnonymousCredentials

        with pytest.raises(CloudError, match="which GCP project"):
            GcpFeed(Where(cloud="gcp", target="prod", region=IOWA), credentials=AnonymousCredentials())


class TestTheServer:
    """What the feed is held to must itself be able to say no."""

    @pytest.mark.parametrize(
        ("name", "schema", "value"),
        [
            ("compute.v1", "MachineType", {"vcpus": 4}),
            ("compute.v1", "MachineType", {"guestCpus": "4"}),
            ("compute.v1", "MachineType", {"id": 4}),
            ("compute.v1", "Quota", {"metric": "NVIDIA_H100_GPUS"}),
            (
                "cloudbilling.v1",
                "Sku",
                {"pricingInfo": [{"pricingExpression": {"tieredRates": [{"unitPrice": {"units": 1}}]}}]},
            ),
        ],
    )
    def test_answers_are_held_to_googles_schemas(self, name, schema, value):
        with pytest.raises(NotGoogles):
            held(name, {"$ref": schema}, value)

    def test_gcloud_reads_it_too(self, bed, tmp_path):
        """A reader of Google's own, with strict decoding."""
        gcloud = shutil.which("gcloud")
        if gcloud is None:
            pytest.skip("gcloud is not installed")
        token = tmp_path / "token"
        token.write_text("secret")
        environment = {
            **os.environ,
            "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_PROJECT": "acme-ml",
            "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token),
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_COMPUTE": f"{bed.base}/compute/v1/",
        }
        ran = subprocess.run(
            [gcloud, "compute", "regions", "describe", IOWA, "--format=value(quotas[].limit)"],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert ran.returncode == 0, ran.stderr
        assert "16.0" in ran.stdout
