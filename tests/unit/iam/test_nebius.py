"""Grants as Nebius rights, judged by what a bucket's policy would let through."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.iam.nebius import group_name, policies, snippets
from planner.model.grants import Grant, Identity, Permission

READ = Grant(
    identity=Identity.NODE_DATA,
    permission=Permission.READ_OBJECTS,
    resource="nebius://acme-corpus/llama/",
    reason="training data",
)
WRITE = Grant(
    identity=Identity.NODE_CHECKPOINT,
    permission=Permission.WRITE_CHECKPOINTS,
    resource="nebius://acme-ckpt/llama/",
    reason="checkpoints, written and read back",
)
SECRET = Grant(
    identity=Identity.NODE_DATA,
    permission=Permission.READ_SECRET,
    resource="nebius-mysterybox://mbsec-e00acme/hf",
    reason="environment variable HF_TOKEN",
)
ELSEWHERE = (
    Grant(identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource="s3://b/llama/", reason="data"),
    Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource="aws-secretsmanager://acme/hf",
        reason="HF_TOKEN",
    ),
)
GROUP = "skyplan-acme-llama-prod-eu-north1"
#: what the roles allow (docs.nebius.com/object-storage/supported-actions, read 2026-10)
ALLOWS = {
    "storage.object-viewer": {"GetObject", "HeadObject"},
    "storage.object-lister": {"ListObjectsV2"},
    "storage.uploader": {"PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload"},
    "storage.object-editor": {"GetObject", "PutObject", "DeleteObject", "ListObjectsV2"},
    "storage.editor": {"GetObject", "PutObject", "DeleteObject", "ListObjectsV2", "DeleteBucket"},
}
#: what the spec lets a part of a prefix be made of
PART = st.text("abz09!_.=@+,' ()-", min_size=1, max_size=6).filter(lambda part: part not in {".", ".."})
PREFIX = st.lists(PART, min_size=1, max_size=3).map("/".join)


def render(*grants):
    return policies(grants, account="project-e00acme", region="eu-north1", group=GROUP)


def allowed(documents, action, bucket, key):
    """A path is a key, or a prefix and one `*` at its end."""
    return any(
        rule["bucket"] == bucket
        and any(key.startswith(path[:-1]) if path.endswith("*") else key == path for path in rule["paths"])
        and any(action in ALLOWS[role] for role in rule["roles"])
        for document in documents
        for rule in document.document["bucket_rules"]
    )


def test_a_node_reads_its_data_and_nothing_beside_it():
    made = render(READ)
    assert allowed(made, "GetObject", "acme-corpus", "llama/a/b")
    assert allowed(made, "ListObjectsV2", "acme-corpus", "llama/")
    assert not allowed(made, "GetObject", "acme-corpus", "llama2/a")
    assert not allowed(made, "GetObject", "acme-ckpt", "llama/a")
    assert not allowed(made, "PutObject", "acme-corpus", "llama/a")


def test_checkpoints_are_written_and_read_and_never_deleted():
    made = render(WRITE)
    for action in ("GetObject", "ListObjectsV2", "PutObject", "CompleteMultipartUpload"):
        assert allowed(made, action, "acme-ckpt", "llama/step-1")
        assert not allowed(made, action, "acme-ckpt", "llama-2/step-1")
    assert not allowed(made, "DeleteObject", "acme-ckpt", "llama/step-1")


def test_identities_are_apart_and_reasons_are_seen():
    data, checkpoint = render(WRITE, READ, SECRET)
    assert (data.name, checkpoint.name) == ("node-data", "node-checkpoint")
    assert [rule["reason"] for rule in data.document["bucket_rules"]] == ["training data"]
    assert [permit["reason"] for permit in data.document["permits"]] == ["environment variable HF_TOKEN"]
    assert [rule["reason"] for rule in checkpoint.document["bucket_rules"]] == ["checkpoints, written and read back"]


def test_a_secret_is_readable_alone_and_once():
    again = Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource="nebius-mysterybox://mbsec-e00acme/token",
        reason="environment variable TOKEN",
    )
    ((document,), other) = render(SECRET, again), render(SECRET)
    (permit,) = document.document["permits"]
    assert (permit["resource_id"], permit["role"]) == ("mbsec-e00acme", "mysterybox.payload-viewer")
    assert permit["reason"] == "environment variable HF_TOKEN; environment variable TOKEN"
    assert other[0].document["permits"][0]["resource_id"] == "mbsec-e00acme"


def test_other_clouds_stores_render_to_nothing():
    assert render(*ELSEWHERE) == ()
    assert snippets(ELSEWHERE, group=GROUP, tenant=None) == ()


@given(st.permutations([READ, WRITE, SECRET, *ELSEWHERE]))
def test_the_order_of_grants_changes_nothing(grants):
    assert render(*grants) == render(READ, WRITE, SECRET)
    assert snippets(grants, group=GROUP, tenant="t") == snippets((READ, WRITE, SECRET), group=GROUP, tenant="t")


@given(prefix=PREFIX, tail=st.text("abz/-_.", min_size=1, max_size=4), slash=st.sampled_from(["", "/"]))
def test_a_prefix_never_covers_its_sibling(prefix, tail, slash):
    grant = Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_OBJECTS,
        resource=f"nebius://corpus/{prefix}{slash}",
        reason="data",
    )
    made = render(grant)
    assert allowed(made, "GetObject", "corpus", f"{prefix}/{tail}")
    if not tail.startswith("/"):
        assert not allowed(made, "GetObject", "corpus", f"{prefix}{tail}")
    (rule,) = made[0].document["bucket_rules"]
    assert [path.count("*") for path in rule["paths"]] == [1]
    assert not any("*" in role for role in rule["roles"])


def test_the_whole_bucket_is_asked_for_in_so_many_words():
    grant = Grant(
        identity=Identity.NODE_DATA, permission=Permission.READ_OBJECTS, resource="nebius://corpus/", reason="data"
    )
    assert render(grant)[0].document["bucket_rules"][0]["paths"] == ["*"]


def test_the_owner_of_each_bucket_gets_text_to_paste():
    checkpoint, corpus = snippets((READ, WRITE, SECRET), group=GROUP, tenant="tenant-e00acme")
    assert corpus == (
        "# Nebius bucket acme-corpus: what the group skyplan-acme-llama-prod-eu-north1 needs of it.\n"
        "# Add the rules to those in the bucket's `bucket_policy`: the list there is the whole policy.\n"
        'data "nebius_iam_v1_group" "skyplan_acme_llama_prod_eu_north1" {\n'
        '  name      = "skyplan-acme-llama-prod-eu-north1"\n'
        '  parent_id = "tenant-e00acme"\n'
        "}\n"
        "\n"
        '# in the resource "nebius_storage_v1_bucket" of acme-corpus\n'
        "bucket_policy = {\n"
        "  rules = [\n"
        "    { # training data\n"
        "      group_id = data.nebius_iam_v1_group.skyplan_acme_llama_prod_eu_north1.id\n"
        '      paths    = ["llama/*"]\n'
        '      roles    = ["storage.object-lister", "storage.object-viewer"]\n'
        "    },\n"
        "  ]\n"
        "}\n"
    )
    assert '"storage.uploader"' in checkpoint
    assert "acme-corpus" not in checkpoint


@pytest.mark.parametrize("grants", [(READ,), (SECRET,)])
def test_without_a_tenant_the_first_text_says_what_is_missing(grants):
    first = snippets(grants, group=GROUP, tenant=None)[0]
    assert "`tenant`" in first
    assert GROUP in first


@given(st.lists(st.from_regex(r"\A[a-z][a-z0-9-]{0,38}[a-z0-9]\Z"), min_size=4, max_size=4))
def test_group_names_are_short_enough_and_stay_apart(parts):
    project, job, target, region = parts
    name = group_name(project, job, target, region)
    assert len(name) <= 63
    assert name != group_name(project, f"{job}x", target, region)
