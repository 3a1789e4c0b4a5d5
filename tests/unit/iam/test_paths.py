"""How nodes in any of the four clouds reach stores in any of them: the whole table, and what is said of each path."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from planner.iam.grants import grants_for
from planner.iam.paths import caveats, data_paths
from planner.model.offer import Cloud
from planner.model.project import Federation, Project, Target
from planner.model.stack import DataPath, Reach
from planner.model.workload import CheckpointPolicy, Dataset, ObjectPrefix, Output, Store
from planner.spec.project import parse_project
from tests.stacks import inputs
from tests.unit.spec.spec_words import WORDS
from tests.unit.spec.test_project import PROVIDER, UUID

ROLE = "arn:aws:iam::012345678901:role/data"
SETTINGS = {
    Store.S3: (("aws_role_arn", ROLE),),
    Store.GCS: (("gcp_provider", PROVIDER),),
    Store.AZURE_BLOB: (("azure_client_id", UUID), ("azure_tenant_id", UUID)),
}
ALL = Project(
    federation=tuple(
        Federation(stores=(f"{store.value}://*",), from_clouds=tuple(Cloud), settings=settings)
        for store, settings in SETTINGS.items()
    )
)
P, F, B = Reach.PLATFORM, Reach.FEDERATION, Reach.BROKER
#: node's cloud -> reach of S3, GCS, Azure Blob, Nebius storage where every federation is there (notes, 2.2)
TABLE = {Cloud.AWS: (P, F, F, B), Cloud.GCP: (F, P, F, B), Cloud.AZURE: (F, F, P, B), Cloud.NEBIUS: (B, B, B, B)}
CELLS = [(cloud, store, way) for cloud, row in TABLE.items() for store, way in zip(Store, row, strict=True)]


def at(store: Store = Store.S3, prefix: str = "llama/", bucket: str = "acme-corpus") -> ObjectPrefix:
    return ObjectPrefix(store=store, bucket="acct/corpus" if store is Store.AZURE_BLOB else bucket, prefix=prefix)


def reading(*places: ObjectPrefix, **more: Any):
    values = {"data": tuple(Dataset(at=p, size_bytes=1) for p in places), "checkpoint": None, "output": None}
    return inputs.workload(**(values | more))


def path(cloud: Cloud, place: ObjectPrefix, project: Project) -> DataPath:
    (only,) = data_paths(reading(place), project, Target(name="prod", cloud=cloud), cloud)
    return only


@pytest.mark.parametrize(("cloud", "store", "way"), CELLS)
def test_the_whole_table(cloud: Cloud, store: Store, way: Reach):
    found = path(cloud, at(store), ALL)
    assert (found.reach, found.write) == (way, False)
    assert found.settings == (SETTINGS[store] if way is F else ())
    without = path(cloud, at(store), Project())
    assert (without.reach, without.settings) == (P if way is P else B, ())
    for one in (found, without):
        assert one.detail
        assert "\n" not in one.detail
        assert len(caveats((one,))) == (one.reach is B)
        assert ("needs the broker" in one.detail) is (store is Store.NEBIUS or cloud is Cloud.NEBIUS)


@pytest.mark.parametrize(("cloud", "store", "way"), [c for c in CELLS if c[2] is F])
def test_the_entry_that_is_proposed_is_one_that_makes_it_federation(cloud: Cloud, store: Store, way: Reach):
    said = re.search(r"`(federation: .*)` in skyplan.yaml", path(cloud, at(store), Project()).detail)
    assert said
    text = said[1]
    for name, value in SETTINGS[store]:
        text = text.replace(f"{name}: …", f'{name}: "{value}"')
    project, diagnostics = parse_project(f"project: acme\n{text}\n", "skyplan.yaml", WORDS)
    assert diagnostics == ()
    assert path(cloud, at(store), project).reach is way


@pytest.mark.parametrize(
    ("glob", "prefix", "matches"),
    [
        ("s3://acme-*", "llama/", True),
        ("s3://acme-corpus", "", True),
        ("s3://acme-corpus/", "llama", True),
        ("s3://acme-corpus/llama", "llama/", True),
        ("s3://acme-corpus/llama", "llama", True),
        ("s3://acme-corpus/llama", "llama-b/", False),
        ("s3://acme", "llama/", False),
        ("gs://acme-*", "llama/", False),
    ],
)
def test_an_entry_matches_on_boundaries_of_a_slash(glob: str, prefix: str, matches: bool):
    entry = Federation(stores=(glob,), from_clouds=(Cloud.GCP,), settings=(("aws_role_arn", ROLE),))
    assert (path(Cloud.GCP, at(prefix=prefix), Project(federation=(entry,))).reach is F) is matches


def test_the_first_entry_that_matches_wins_and_others_clouds_are_passed_over():
    def entry(role: str, *clouds: Cloud) -> Federation:
        return Federation(stores=("s3://*",), from_clouds=clouds, settings=(("aws_role_arn", role),))

    project = Project(federation=(entry("a", Cloud.AZURE), entry("b", Cloud.GCP), entry("c", Cloud.GCP)))
    assert path(Cloud.GCP, at(), project).settings == (("aws_role_arn", "b"),)


def test_each_uri_has_one_path_in_order_and_what_is_written_is_said_to_be():
    corpus, out = at(), at(prefix="out/")
    checkpoint = CheckpointPolicy(at=corpus, size_bytes=1, every_hours=1.0)
    job = reading(out, corpus, checkpoint=checkpoint, output=Output(at=at(prefix="result/"), size_bytes=1))
    found = data_paths(job, Project(), Target(name="prod", cloud=Cloud.AWS), Cloud.AWS)
    assert [(p.uri.removeprefix("s3://acme-corpus/"), p.write) for p in found] == [
        ("llama/", True),
        ("out/", False),
        ("result/", True),
    ]
    assert "instance role" in found[0].detail
    assert "writes" in found[0].detail


def test_a_caveat_names_the_store_and_the_path_what_would_help():
    found = path(Cloud.GCP, at(), Project())
    (only,) = caveats((found,))
    assert (only.code, "s3://acme-corpus/llama/" in only.text) == ("SKY-RUN-502", True)
    assert "aws_role_arn" in found.detail


@pytest.mark.parametrize(("cloud", "store", "way"), CELLS)
def test_grants_agree_with_the_path(cloud: Cloud, store: Store, way: Reach):
    (grant,) = grants_for(
        replace(reading(at(store)), secrets=(), registry_auth=None), Target(name="prod", cloud=cloud), cloud, ALL
    )
    assert ("by federation" in grant.reason) is (way is F)
    assert ("broker" in grant.reason) is (way is B)


def test_a_second_federated_identity_in_one_cloud_waits_for_the_broker_and_grants_say_so():
    entries = tuple(
        Federation(stores=(f"s3://acme-{name}",), from_clouds=(Cloud.GCP,), settings=(("aws_role_arn", name),))
        for name in ("a", "b")
    )
    project, target = Project(federation=entries), Target(name="prod", cloud=Cloud.GCP)
    job = replace(reading(at(bucket="acme-b"), at(bucket="acme-a", prefix="y/"), at(bucket="acme-a")), secrets=())
    found = data_paths(job, project, target, Cloud.GCP)
    assert [(p.uri, p.reach) for p in found] == [
        ("s3://acme-a/llama/", F),
        ("s3://acme-a/y/", F),
        ("s3://acme-b/llama/", B),
    ]
    assert found[2].settings == ()
    assert "s3://acme-a/llama/" in found[2].detail
    reasons = {g.resource: g.reason for g in grants_for(job, target, Cloud.GCP, project)}
    assert "broker" in reasons["s3://acme-b/llama/"]
    assert "by federation" in reasons["s3://acme-a/y/"]
