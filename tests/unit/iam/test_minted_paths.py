"""What the broker mints, for whom, and how the identity behind it is called: the broker and the access stack name it alike, from the plan alone."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from planner.iam.grants import grants_for
from planner.iam.paths import caveats, data_paths
from planner.model.control_names import data_identity, data_identity_name
from planner.model.offer import Cloud
from planner.model.project import ControlPlane, Project, Target
from planner.model.stack import DataPath, Reach
from planner.model.workload import CheckpointPolicy, Dataset, ObjectPrefix, Store
from tests.stacks import inputs
from tests.unit.iam.test_paths import ALL

ACCOUNTS = {Cloud.AWS: "123456789012", Cloud.GCP: "acme-ml", Cloud.AZURE: "sub", Cloud.NEBIUS: "project-e00"}
TARGETS = tuple(Target(name="prod", cloud=c, account=ACCOUNTS[c], broker_role=f"broker-{c.value}") for c in Cloud)
CONTROL = ControlPlane(url="https://plane.example.com", broker="https://broker.example.com")
MINTING = Project(name="acme", targets=TARGETS, default_targets=False, control_plane=CONTROL)
READ, WRITTEN = "corpus/", "ckpt/"


def paths(cloud: Cloud, store: Store, project: Project = MINTING) -> dict[bool, DataPath]:
    """By whether it is written: one prefix that is read, one that is written, in one store."""
    bucket = "acct/all" if store is Store.AZURE_BLOB else "all"
    made = inputs.workload(
        data=(Dataset(at=ObjectPrefix(store=store, bucket=bucket, prefix=READ), size_bytes=1),),
        checkpoint=CheckpointPolicy(
            at=ObjectPrefix(store=store, bucket=bucket, prefix=WRITTEN), size_bytes=1, every_hours=1.0
        ),
        output=None,
    )
    target = next(t for t in project.targets if t.cloud is cloud)
    return {path.write: path for path in data_paths(made, project, target, cloud)}


@pytest.mark.parametrize("cloud", Cloud)
@pytest.mark.parametrize("store", Store)
def test_whatever_is_written_is_minted_and_what_nothing_else_reaches(cloud: Cloud, store: Store):
    found = paths(cloud, store)
    settings = (("identity_account", ACCOUNTS[Cloud(store.cloud)]), ("identity_target", "prod"))
    assert (found[True].reach, found[True].settings) == (Reach.BROKER, settings)
    own = store.cloud == cloud.value and store is not Store.NEBIUS
    assert found[False].reach is (Reach.PLATFORM if own else Reach.BROKER)
    assert caveats(found.values()) == ()
    assert all(path.minted or own for path in found.values())
    assert not any(path.out_of_reach for path in found.values())


def test_federation_still_reads():
    federated = replace(MINTING, federation=ALL.federation)
    found = paths(Cloud.GCP, Store.S3, federated)
    assert (found[False].reach, found[True].reach) == (Reach.FEDERATION, Reach.BROKER)


@pytest.mark.parametrize(
    "project",
    [
        replace(MINTING, control_plane=None),
        replace(MINTING, control_plane=replace(CONTROL, broker=None)),
        replace(MINTING, targets=tuple(replace(t, broker_role=None) for t in TARGETS)),
        replace(MINTING, targets=tuple(replace(t, account=None) for t in TARGETS)),
    ],
    ids=["no control plane", "no broker", "nobody mints there", "no account"],
)
def test_without_a_broker_nothing_changes(project: Project):
    for store in Store:
        for path in paths(Cloud.AWS, store, project).values():
            assert not path.minted
            assert path.out_of_reach is (store is not Store.S3)


def test_the_nodes_own_target_holds_the_identity_before_another_of_its_cloud():
    other = replace(TARGETS[0], name="first", account="210987654321")
    found = paths(Cloud.AWS, Store.S3, replace(MINTING, targets=(TARGETS[0], other)))
    assert dict(found[True].settings)["identity_target"] == "prod"
    away = paths(Cloud.GCP, Store.S3, replace(MINTING, targets=(other, *TARGETS)))
    assert dict(away[True].settings)["identity_target"] == "first"


def test_reviews_read_where_credentials_come_from():
    made = inputs.workload()
    (target,) = (t for t in TARGETS if t.cloud is Cloud.AWS)
    reasons = {g.resource: g.reason for g in grants_for(made, target, Cloud.AWS, MINTING)}
    assert made.checkpoint is not None
    assert reasons[made.checkpoint.at.uri].endswith("(minted by the broker)")
    assert "broker" not in reasons[made.data[0].at.uri]


@pytest.mark.parametrize(
    ("cloud", "form"),
    [
        (Cloud.AWS, r"arn:aws:iam::123456789012:role/skyplan/acme/data/[\w+=,.@-]{1,64}"),
        (Cloud.GCP, r"[a-z][a-z0-9-]{4,28}[a-z0-9]@acme-ml\.iam\.gserviceaccount\.com"),
        (Cloud.NEBIUS, r"[a-z0-9-]{1,63}"),
        (Cloud.AZURE, ""),
    ],
)
def test_names_fit_and_no_two_places_share_one(cloud: Cloud, form: str):
    jobs = ("a", "train", "train-the-largest-model-of-all-of-them-at-once")
    places = [(c.value, t, r) for c in Cloud for t in ("prod", "aws-prod") for r in ("us-east-1", "eu-north1")]
    made = {data_identity(cloud, ACCOUNTS[cloud], "acme", job, place) for job in jobs for place in places}
    assert all(re.fullmatch(form, name) for name in made)
    own = cloud in {Cloud.AWS, Cloud.NEBIUS}
    assert len(made) == (len(jobs) * len(places) if own else 1)
    if cloud is not Cloud.AZURE:
        assert data_identity_name(cloud, "acme", "a", places[0]) != data_identity_name(cloud, "acme2", "a", places[0])
