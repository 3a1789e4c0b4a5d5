"""Rules 3xx beyond their fixtures: what other tools miss, and skyplan's own rights, which are clean."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.iam import aws, azure, gcp, nebius
from planner.iam.audit.guards import s3_parts
from planner.iam.audit.registry import RULES, run
from planner.iam.documents import policy_from
from planner.iam.read.terraform import read_terraform
from planner.model.grants import Grant, Identity, Permission
from planner.model.offer import Cloud
from planner.model.policy import (
    Audited,
    AwsPolicy,
    Permit,
    PolicyKind,
    RoleAssignment,
    RoleBinding,
    Statement,
    Subject,
    Test,
)
from planner.model.reach import DataPath, Reach

OURS = [rule for rule in RULES if rule[8] in "3456"]
ACCOUNT = "123456789012"
GOLDEN = Path(__file__).parents[3] / "stacks" / "golden"
SCHEMES = {"s3": Cloud.AWS, "gs": Cloud.GCP, "az": Cloud.AZURE, "nebius": Cloud.NEBIUS}


def grants(scheme, read, write):
    place = "acme/" if scheme == "az" else ""
    return (
        Grant(
            identity=Identity.NODE_DATA,
            permission=Permission.READ_OBJECTS,
            resource=f"{scheme}://{place}corpus/{read}",
            reason="training data",
        ),
        Grant(
            identity=Identity.NODE_CHECKPOINT,
            permission=Permission.WRITE_CHECKPOINTS,
            resource=f"{scheme}://{place}ckpt/{write}",
            reason="checkpoints",
        ),
    )


def allowed(found):
    return tuple(("train", one.resource, one.permission is Permission.WRITE_CHECKPOINTS) for one in found)


def node(cloud, **rights):
    return Subject(cloud=cloud, name="node", origin="acc-train", identity=Identity.NODE_DATA, job="train", **rights)


@pytest.mark.parametrize("kms", [None, f"arn:aws:kms:us-east-1:{ACCOUNT}:key/k"])
@pytest.mark.parametrize("account", [None, ACCOUNT])
@pytest.mark.parametrize(("read", "write"), [("llama/", "llama/"), ("", ""), ("a*b/", "$x/")])
def test_our_policies_on_aws_are_clean(kms, account, read, write):
    mine = grants("s3", read, write)
    made = aws.policies(mine, account=account, region="us-east-1", kms_key_arn=kms)
    path = DataPath(uri="az://acme/x/", write=False, reach=Reach.FEDERATION, detail="", settings=())
    policies = tuple(
        policy_from(one.document, kind=PolicyKind.IDENTITY, name=one.name) for one in (*made, *aws.token_policy([path]))
    )
    assert len(policies) == 3
    assert run(Audited(subjects=(node(Cloud.AWS, policies=policies),), allowed=allowed(mine)), OURS) == ()


@pytest.mark.parametrize(("read", "write"), [("llama/", "llama/"), ("", "")])
def test_our_bindings_on_google_are_clean(read, write):
    mine = grants("gs", read, write)
    bindings = tuple(
        RoleBinding(member="serviceAccount:n", role=one["role"], on=_google(one))
        for document in gcp.policies(mine, account="acme", region="us-east1")
        for one in document.document["bindings"]
    )
    assert len(bindings) == 3
    assert run(Audited(subjects=(node(Cloud.GCP, bindings=bindings),), allowed=allowed(mine)), OURS) == ()


def _google(one):
    folder = f"/managedFolders/{one['managed_folder']}" if one["kind"] == "managed_folder" else ""
    return f"projects/_/buckets/{one['bucket']}{folder}"


@pytest.mark.parametrize("role", [None, "team-checkpoints"])
@pytest.mark.parametrize(("read", "write"), [("llama/", "llama/"), ("", "")])
def test_our_assignments_on_azure_are_clean(role, read, write):
    mine = grants("az", read, write)
    assignments = tuple(
        RoleAssignment(
            role=one.document.get("role", one.name),
            scope=f"/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/acme{one.document['child']}",
            data_actions=tuple(one.document.get("definition", {}).get("data_actions", ())),
            condition=one.document.get("condition", ""),
        )
        for one in azure.policies(mine, account=None, region="eastus", checkpoint_role=role)
    )
    assert len(assignments) == 2
    assert run(Audited(subjects=(node(Cloud.AZURE, assignments=assignments),), allowed=allowed(mine)), OURS) == ()


@pytest.mark.parametrize(("read", "write"), [("llama/", "llama/"), ("", "")])
def test_our_rules_on_nebius_are_clean(read, write):
    mine = grants("nebius", read, write)
    permits = tuple(
        Permit(role=role, on=rule["bucket"], paths=tuple(rule["paths"]))
        for document in nebius.policies(mine, account=None, region="eu-north1", group="g")
        for rule in document.document["bucket_rules"]
        for role in rule["roles"]
    )
    assert len(permits) == 5
    assert run(Audited(subjects=(node(Cloud.NEBIUS, permits=permits),), allowed=allowed(mine)), OURS) == ()


@pytest.mark.parametrize("path", sorted(GOLDEN.rglob("*.tf.json")) + sorted(GOLDEN.rglob("jobs/*/*.json")), ids=str)
def test_golden_stacks_are_clean(path):
    audited = read_terraform(json.loads(path.read_text()), file=path.name)
    assert run(audited, OURS) == ()


def test_golden_stacks_have_rights():
    """Or the test above says nothing."""
    found = [
        len(read_terraform(json.loads(path.read_text()), file=path.name).subjects) for path in GOLDEN.rglob("*.json")
    ]
    assert sum(found) > 20


def stranger(*statements):
    return Audited(
        subjects=(
            Subject(
                cloud=Cloud.AWS,
                name="x",
                origin="x",
                policies=(
                    policy_from(
                        {"Version": "2012-10-17", "Statement": list(statements)}, kind=PolicyKind.IDENTITY, name="p"
                    ),
                ),
            ),
        )
    )


def test_every_object_of_every_bucket_is_found_where_cloudsplaining_and_parliament_miss_it():
    wide = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::*/*"}
    (found,) = run(stranger(wide), ["SKY-IAM-301"])
    assert (found.action, found.resource) == ("s3:GetObject", "arn:aws:s3:::*/*")


def test_a_right_beyond_the_spec_is_found_with_the_spec_in_the_fix():
    policy = policy_from(
        {
            "Version": "2012-10-17",
            "Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::corpus/*"},
        },
        kind=PolicyKind.IDENTITY,
        name="node-data",
    )
    audited = Audited(
        subjects=(node(Cloud.AWS, policies=(policy,)),), allowed=(("train", "s3://corpus/llama/", False),)
    )
    (found,) = run(audited, ["SKY-IAM-301"])
    assert '"arn:aws:s3:::corpus/llama/*"' in found.fix
    assert '"arn:aws:s3:::corpus/*"' in found.evidence


def bucket_rights(*tests):
    return Statement(actions=("s3:GetObject",), resources=("arn:aws:s3:::b/p/*",), tests=tests)


def buckets_trusted(identity, statements, origin="acc-train aws_iam_role.node"):
    policy = AwsPolicy(kind=PolicyKind.IDENTITY, name="p", statements=statements)
    holder = Subject(cloud=Cloud.AWS, name="x", origin=origin, identity=identity, policies=(policy,))
    return run(Audited(subjects=(holder,)), ["SKY-IAM-309"])


OWNED = Test(operator="StringEquals", key="aws:ResourceAccount", values=(ACCOUNT,))


@pytest.mark.parametrize("identity", [*Identity, None])
def test_nobody_is_spared_whose_bucket_it_is(identity):
    (found,) = buckets_trusted(identity, (bucket_rights(),), f"arn:aws:iam::{ACCOUNT}:role/x")
    assert ACCOUNT in found.fix
    assert buckets_trusted(identity, (bucket_rights(OWNED),), f"arn:aws:iam::{ACCOUNT}:role/x") == ()


def test_a_control_identity_is_asked_even_where_its_account_is_not_known_and_a_node_is_not():
    assert len(buckets_trusted(Identity.DEPLOYER, (bucket_rights(),))) == 1
    assert buckets_trusted(Identity.NODE_DATA, (bucket_rights(),)) == ()


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("arn:aws:s3:::b", ("b", "")),
        ("arn:aws:s3:::b/", ("b", "*")),
        ("arn:aws:s3:::b/p/*", ("b", "p/*")),
        ("arn:aws-cn:s3:::b/a:b", ("b", "a:b")),
        ("${aws_s3_bucket.b.arn}/p/*", ("referenced-bucket", "p/*")),
        ("${var.bucket}", None),
        ("arn:aws:s3:us-east-1:1:accesspoint/a", None),
        ("*", None),
    ],
)
def test_parts_of_an_arn(resource, expected):
    assert s3_parts(resource) == expected


@pytest.mark.parametrize(
    "resource",
    [
        "arn:*",
        "arn:aws:s3:*:*:*",
        "arn:*:s3:::*",
        "arn:aws:s3:us-east-1:*:accesspoint/*",
        "arn:aws:s3:us-east-1:123456789012:accesspoint/*/object/*",
    ],
)
@pytest.mark.parametrize("action", ["s3:GetObject", "s3:GetObjectVersion", "S3:getobjectv*"])
def test_every_object_by_other_words(action, resource):
    whole = stranger({"Effect": "Allow", "Action": action, "Resource": resource})
    assert run(whole, ["SKY-IAM-301"])


def test_one_access_point_is_not_every_bucket():
    one = "arn:aws:s3:us-east-1:123456789012:accesspoint/mine/object/*"
    assert not run(stranger({"Effect": "Allow", "Action": "s3:GetObject", "Resource": one}), ["SKY-IAM-301"])


def test_names_of_versions_are_names():
    named = {"Condition": {"StringLike": {"s3:prefix": ["a/*"]}}}
    both = ["s3:ListBucket", "s3:ListBucketVersions"]

    def found(actions, more):
        return run(
            stranger({"Effect": "Allow", "Action": actions, "Resource": "arn:aws:s3:::acme", **more}), ["SKY-IAM-302"]
        )

    assert [one.action for one in found(both[1], {})] == both[1:]
    assert len(found(both, {})) == 1
    assert not found(both, named)
