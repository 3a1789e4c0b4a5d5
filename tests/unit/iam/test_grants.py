"""Which rights a job's nodes need, and why."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.iam.grants import grants_for
from planner.model.grants import Identity, Permission
from planner.model.offer import Cloud
from planner.model.project import Target
from planner.model.workload import ObjectPrefix, Output, Store
from tests.stacks import inputs

AWS = Target(name="prod", cloud=Cloud.AWS)


def test_each_need_is_one_grant_with_its_reason():
    found = {(g.identity, g.permission, g.resource): g.reason for g in grants_for(inputs.workload(), AWS, Cloud.AWS)}
    assert set(found) == {
        (Identity.NODE_DATA, Permission.READ_OBJECTS, "s3://acme-corpus/llama/"),
        (Identity.NODE_CHECKPOINT, Permission.WRITE_CHECKPOINTS, "s3://acme-ckpt/llama/"),
        (Identity.NODE_DATA, Permission.READ_SECRET, "aws-secretsmanager://acme/hf"),
        (Identity.NODE_DATA, Permission.READ_SECRET, "aws-secretsmanager://acme/ghcr"),
    }
    assert all(found.values())


def test_the_output_is_written_like_a_checkpoint():
    output = Output(at=ObjectPrefix(store=Store.S3, bucket="acme-out", prefix="r/"), size_bytes=1)
    found = grants_for(inputs.workload(output=output), AWS, Cloud.AWS)
    assert (Permission.WRITE_CHECKPOINTS, "s3://acme-out/r/") in {(g.permission, g.resource) for g in found}


def test_a_job_without_data_needs_nothing():
    bare = inputs.workload(data=(), checkpoint=None, secrets=(), registry_auth=None)
    assert grants_for(bare, AWS, Cloud.AWS) == ()


@pytest.mark.parametrize(("cloud", "away"), [(Cloud.AWS, False), (Cloud.GCP, True), (Cloud.NEBIUS, True)])
def test_another_clouds_store_is_listed_with_where_its_credentials_come_from(cloud, away):
    for grant in grants_for(inputs.workload(), replace(AWS, cloud=cloud), cloud):
        words = "nodes cannot read it" if grant.permission is Permission.READ_SECRET else "credentials need the broker"
        assert (words in grant.reason) is away


def test_order_of_the_job_file_changes_nothing():
    workload = inputs.workload()
    turned = replace(workload, secrets=(*workload.secrets, *workload.secrets)[::-1], data=workload.data[::-1])
    assert grants_for(workload, AWS, Cloud.AWS) == grants_for(turned, AWS, Cloud.AWS)
