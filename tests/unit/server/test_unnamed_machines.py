"""Where the platform does not say which machine it is (Azure without the claim, Nebius): whom it runs as must be the job's own, or any machine of the account could name another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.app.mint_nodes import NodeNames
from planner.model.offer import Cloud
from planner.model.record import RunPart
from planner.model.runtime import NodeIdentity
from planner.model.server import KnownPrincipal
from tests.unit.server.broker import bed as broker_bed
from tests.unit.server.server_bed import Agent, bed, launch, sqlite

TOLD = (KnownPrincipal(job="train", target="prod", principal="serviceaccount-e00train"),)


def part(cloud: Cloud, target: str = "prod") -> RunPart:
    p = broker_bed.placement(cloud)
    return RunPart(
        cloud=cloud.value, target=target, region=p.region, zone="z", instance_type="t", capacity="spot", nodes=1
    )


@pytest.mark.parametrize("cloud", [Cloud.AWS, Cloud.GCP, Cloud.AZURE])
def test_an_identity_that_the_access_stack_names_is_the_jobs_and_no_other(cloud: Cloud) -> None:
    names = NodeNames(project=broker_bed.PROJECT)
    assert not names.denies("train", part(cloud), broker_bed.node(cloud, "train"))
    assert names.denies("train", part(cloud), broker_bed.node(cloud, "other"))
    assert names.denies("train", part(cloud), replace(broker_bed.node(cloud), principal=""))
    # of a target that skyplan.yaml does not give an account nothing is known
    assert not names.denies("train", part(cloud, "elsewhere"), broker_bed.node(cloud, "other"))


def test_on_nebius_the_operator_tells_it() -> None:
    who = broker_bed.node(Cloud.NEBIUS, "train")
    assert not NodeNames(project=broker_bed.PROJECT).denies("train", part(Cloud.NEBIUS), who)
    told = NodeNames(project=broker_bed.PROJECT, principals=TOLD)
    assert not told.denies("train", part(Cloud.NEBIUS), who)
    assert told.denies("train", part(Cloud.NEBIUS), broker_bed.node(Cloud.NEBIUS, "other"))
    assert not told.denies("other", part(Cloud.NEBIUS), broker_bed.node(Cloud.NEBIUS, "other"))


class _Denying:
    def denies(self, *_: Any) -> bool:
        return True


class _Unnamed:
    """A platform that says whom a machine runs as, and not which it is."""

    def __init__(self, instance_id: str) -> None:
        self.instance_id = instance_id

    def verify(self, _value: Any, _now: Any) -> NodeIdentity:
        return NodeIdentity(scheme="aws-iid", cloud="aws", instance_id=self.instance_id, principal="somebody")


def test_only_an_unnamed_machine_is_judged_by_whom_it_runs_as(tmp_path: Path) -> None:
    for named, status in (("", 403), ("i-train-0", 200)):
        with bed(sqlite(tmp_path / f"db{named}")) as b:
            launch(b.record)
            object.__setattr__(b.services, "names", _Denying())
            object.__setattr__(b.services, "verifiers", {"aws-iid": _Unnamed(named)})
            answer = Agent(b.client).join()
            assert answer.status_code == status, answer.text
            if status == 403:
                assert answer.json()["error"] == "identity"
                assert "another identity than that of train's nodes" in answer.text
