"""Grants as AWS policies, judged by what they would allow."""

from __future__ import annotations

import fnmatch
import json
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.iam.aws import literal, policies
from planner.iam.documents import policy_from
from planner.iam.evaluate.aws import Request, judge
from planner.model.grants import Grant, Identity, Permission
from planner.model.policy import AwsPolicy, PolicyKind, Statement

READ = Grant(
    identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource="s3://acme-corpus/llama/", reason="data"
)
WRITE = Grant(
    identity=Identity.NODE_CHECKPOINT,
    permission=Permission.WRITE_CHECKPOINTS,
    resource="s3://acme-ckpt/llama/",
    reason="checkpoints",
)
SECRET = Grant(
    identity=Identity.NODE_DATA,
    permission=Permission.READ_SECRET,
    resource="aws-secretsmanager://acme/hf",
    reason="HF_TOKEN",
)
KEY = "arn:aws:kms:us-east-1:123456789012:key/k"
ACCOUNT = "123456789012"
PREFIX = st.text("abz09-_./*?$[]{}", min_size=1, max_size=12).map(lambda text: text.strip("/")).filter(bool)


def render(*grants, account=ACCOUNT, kms=None, partition="aws"):
    return policies(grants, account=account, region="us-east-1", kms_key_arn=kms, partition=partition)


def matches(pattern, value):
    return allowed_by([Statement(actions=("s3:GetObject",), resources=(pattern,))], "s3:GetObject", value, {})


def allowed(documents, action, resource, **context):
    context = {"aws:ResourceAccount": ACCOUNT, "aws:PrincipalAccount": ACCOUNT} | {
        key.replace("__", ":").replace("_", "-"): value for key, value in context.items()
    }
    read = [policy_from(one.document, kind=PolicyKind.IDENTITY, name=one.name) for one in documents]
    statements = [statement for policy in read for statement in policy.statements]
    return allowed_by(statements, action, resource, {key: (value,) for key, value in context.items()})


def allowed_by(statements, action, resource, context):
    policy = AwsPolicy(kind=PolicyKind.IDENTITY, name="node", statements=tuple(statements))
    return judge([policy], Request(action=action, resource=resource, context=context)).allowed


def test_r04_a_node_reads_its_data_and_nothing_beside_it():
    made = render(READ)
    assert allowed(made, "s3:GetObject", "arn:aws:s3:::acme-corpus/llama/a/b")
    assert not allowed(made, "s3:GetObject", "arn:aws:s3:::acme-corpus/llama-private/a")
    assert not allowed(made, "s3:GetObject", "arn:aws:s3:::acme-corpus/other")
    assert not allowed(made, "s3:GetObject", "arn:aws:s3:::acme-corpus2/llama/a")
    assert not allowed(made, "s3:PutObject", "arn:aws:s3:::acme-corpus/llama/a")


def test_listing_stays_in_the_prefix():
    made, bucket = render(READ), "arn:aws:s3:::acme-corpus"
    assert allowed(made, "s3:ListBucket", bucket, s3__prefix="llama/")
    assert allowed(made, "s3:ListBucket", bucket, s3__prefix="llama/a/")
    assert not allowed(made, "s3:ListBucket", bucket, s3__prefix="")
    assert not allowed(made, "s3:ListBucket", bucket, s3__prefix="llama-private/")
    assert not allowed(made, "s3:ListBucket", bucket)


def test_r04_checkpoints_are_written_and_read_and_never_deleted():
    made, place = render(WRITE), "arn:aws:s3:::acme-ckpt/llama/g1/step"
    for action in ("s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"):
        assert allowed(made, action, place)
    assert "Delete" not in json.dumps([document.document for document in made])


def test_another_accounts_bucket_of_the_same_name_is_refused_where_the_account_is_known():
    place = "arn:aws:s3:::acme-corpus/llama/a"
    assert not allowed(render(READ), "s3:GetObject", place, aws__ResourceAccount="999999999999")
    assert allowed(render(READ, account=None), "s3:GetObject", place, aws__ResourceAccount="999999999999")


@pytest.mark.parametrize("account", [ACCOUNT, None])
def test_one_secret_of_this_account_only(account):
    made = render(SECRET, account=account)
    action, arn = "secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:{}:secret:acme/{}"
    assert allowed(made, action, arn.format(ACCOUNT, "hf-AbCdEf"))
    assert not allowed(made, action, arn.format(ACCOUNT, "hf-production-AbCdEf"))
    assert not allowed(made, action, arn.format(ACCOUNT, "other-AbCdEf"))
    other = "999999999999"
    assert not allowed(made, action, arn.format(other, "hf-AbCdEf"), aws__ResourceAccount=other)


def test_a_secret_by_arn_is_that_arn():
    arn = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:hf-AbCdEf"
    grant = Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource=f"aws-secretsmanager://{arn}",
        reason="r",
    )
    assert render(grant)[0].document["Statement"][0]["Resource"] == [arn]


@pytest.mark.parametrize(("grant", "writes"), [(READ, False), (WRITE, True)])
def test_the_key_is_used_through_s3_for_these_objects_only(grant, writes):
    made = render(grant, kms=KEY)
    bucket = grant.resource.removeprefix("s3://").split("/")[0]
    context = {
        "kms__ViaService": "s3.us-east-1.amazonaws.com",
        "kms__EncryptionContext__aws__s3__arn": f"arn:aws:s3:::{bucket}/llama/x",
    }
    assert allowed(made, "kms:Decrypt", KEY, **context)
    assert allowed(made, "kms:GenerateDataKey", KEY, **context) is writes
    assert not allowed(made, "kms:Decrypt", KEY.replace("/k", "/other"), **context)
    other = f"arn:aws:s3:::{bucket}/other/x"
    assert not allowed(made, "kms:Decrypt", KEY, **{**context, "kms__EncryptionContext__aws__s3__arn": other})
    assert not allowed(made, "kms:Decrypt", KEY)


def test_a_job_without_objects_has_no_right_on_the_key():
    assert "kms" not in json.dumps([document.document for document in render(SECRET, kms=KEY)])


def test_partitions_have_their_own_arns():
    text = json.dumps([document.document for document in render(READ, SECRET, partition="aws-us-gov")])
    assert "arn:aws-us-gov:" in text
    assert "arn:aws:" not in text


@pytest.mark.parametrize("resource", ["gs://b/p/", "az://account/container/p/", "nebius://b/p/"])
def test_another_clouds_store_renders_to_nothing(resource):
    grant = Grant(identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource=resource, reason="r")
    assert render(grant) == ()


@given(st.permutations([READ, WRITE, SECRET, READ]))
def test_order_and_repetition_change_nothing(grants):
    assert render(*grants) == render(READ, WRITE, SECRET)


@given(mine=PREFIX, other=PREFIX, tail=st.text("ab/*?$", max_size=4))
def test_whatever_its_letters_a_prefix_allows_itself_and_nothing_else(mine, other, tail):
    grant = Grant(
        identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource=f"s3://b/{mine}/", reason="r"
    )
    made = render(grant)
    assert allowed(made, "s3:GetObject", f"arn:aws:s3:::b/{mine}/{tail}")
    assume(not f"{other}/{tail}".startswith(f"{mine}/"))
    assert not allowed(made, "s3:GetObject", f"arn:aws:s3:::b/{other}/{tail}")
    for document in made:
        for statement in document.document["Statement"]:
            assert not any("*" in action for action in statement["Action"])
            assert re.fullmatch(r"[A-Za-z0-9]+", statement["Sid"])


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_literal_matches_itself_only(text, other):
    assert matches(literal(text), text)
    assert matches(literal(text), other) is (text == other)


def test_sids_are_unique_in_a_document():
    for document in render(READ, WRITE, SECRET, kms=KEY):
        sids = [statement["Sid"] for statement in document.document["Statement"]]
        assert len(set(sids)) == len(sids)
        assert fnmatch.fnmatch(document.name, "node-*")
