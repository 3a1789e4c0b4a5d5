"""Grants as members of roles on Google's stores, judged by what they would allow."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.iam.gcp import CREATOR, SECRET_ACCESSOR, VIEWER, policies, snippets
from planner.model.grants import Grant, Identity, Permission

ACCOUNT = "acme-ml"
#: what the roles hold that matters here (cloud.google.com/storage/docs/access-control/iam-roles)
RIGHTS = {
    VIEWER: {"storage.objects.get", "storage.objects.list"},
    CREATOR: {"storage.objects.create", "storage.multipartUploads.create"},
    SECRET_ACCESSOR: {"secretmanager.versions.access"},
}
PREFIX = st.text("abz09-_./*?$[]{}", min_size=1, max_size=12).map(lambda text: text.strip("/")).filter(bool)


def read(uri, identity=Identity.NODE_DATA, reason="data"):
    return Grant(identity=identity, permission=Permission.READ_OBJECTS, resource=uri, reason=reason)


def write(uri, reason="checkpoints"):
    return Grant(
        identity=Identity.NODE_CHECKPOINT, permission=Permission.WRITE_CHECKPOINTS, resource=uri, reason=reason
    )


def secret(path):
    return Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource=f"gcp-secretmanager://{path}",
        reason="HF_TOKEN",
    )


READ, WRITE, SECRET = read("gs://acme-corpus/llama/"), write("gs://acme-ckpt/llama/"), secret("hf-token")


def render(*grants, account=ACCOUNT):
    return policies(grants, account=account, region="us-central1")


def bindings(*grants, account=ACCOUNT):
    return [b for document in render(*grants, account=account) for b in document.document["bindings"]]


def allowed(made, right, bucket, name):
    """Whether the right holds on an object: a managed folder's roles reach what has its name as prefix."""
    return any(
        right in RIGHTS[b["role"]]
        and b.get("bucket") == bucket
        and (b["kind"] == "bucket" or name.startswith(b["managed_folder"]))
        for b in made
    )


def test_r04_a_node_reads_its_data_and_nothing_beside_it():
    made = bindings(READ)
    assert allowed(made, "storage.objects.get", "acme-corpus", "llama/a/b")
    assert allowed(made, "storage.objects.list", "acme-corpus", "llama/")
    for name in ("llama-private/a", "llama2/a", "other", "llama"):
        assert not allowed(made, "storage.objects.get", "acme-corpus", name)
        assert not allowed(made, "storage.objects.list", "acme-corpus", name)
    assert not allowed(made, "storage.objects.create", "acme-corpus", "llama/a")
    assert not allowed(made, "storage.objects.get", "acme-corpus2", "llama/a")


def test_r04_checkpoints_are_created_and_read_and_never_replaced():
    made = bindings(WRITE)
    for right in ("storage.objects.create", "storage.objects.get", "storage.multipartUploads.create"):
        assert allowed(made, right, "acme-ckpt", "llama/g1/step")
    assert {b["role"] for b in made} == {CREATOR, VIEWER}  # objectUser and objectAdmin hold storage.objects.delete


@pytest.mark.parametrize("uri", ["gs://acme-corpus/", "gs://acme-corpus"])
def test_a_whole_bucket_is_a_member_of_the_bucket(uri):
    assert bindings(read(uri)) == [
        {"kind": "bucket", "bucket": "acme-corpus", "role": VIEWER, "reason": "data"},
    ]
    assert snippets([read(uri)], account=ACCOUNT) == ()


@pytest.mark.parametrize(
    ("path", "account", "project"),
    [
        ("hf-token", ACCOUNT, ACCOUNT),
        ("hf-token", None, None),
        ("acme-ml/hf-token", ACCOUNT, "acme-ml"),
        ("acme-ml/hf-token", None, "acme-ml"),
        ("projects/acme-ml/secrets/hf-token", ACCOUNT, "acme-ml"),
        ("projects/acme-ml/secrets/hf-token/versions/3", ACCOUNT, "acme-ml"),
        ("projects/acme-ml/secrets/hf-token/versions/latest", None, "acme-ml"),
    ],
)
def test_one_secret_of_the_targets_project(path, account, project):
    (made,) = bindings(secret(path), account=account)
    assert (made["kind"], made["project"], made["secret_id"]) == ("secret", project, "hf-token")
    assert made["role"] == SECRET_ACCESSOR
    assert snippets([secret(path)], account=account) == ()


def test_another_projects_secret_is_its_owners_to_open():
    grant = secret("projects/other/secrets/hf-token")
    assert render(grant) == ()
    (text,) = snippets([grant], account=ACCOUNT, node_account="n@acme-ml.iam.gserviceaccount.com")
    assert "gcloud secrets add-iam-policy-binding hf-token --project=other" in text
    assert "--member=serviceAccount:n@acme-ml.iam.gserviceaccount.com" in text
    assert f"--role={SECRET_ACCESSOR}" in text
    assert "NODE_IDENTITY" in snippets([grant], account=ACCOUNT)[0]


@pytest.mark.parametrize("path", ["projects/p/locations/eu/secrets/s", "a/b/c", "projects/p/secrets/"])
def test_what_names_no_secret_is_refused(path):
    with pytest.raises(ValueError, match="names no secret"):
        render(secret(path))


def test_a_prefix_needs_its_owner_to_make_a_managed_folder_once():
    made = snippets([READ, WRITE, read("gs://acme-corpus/llama", reason="again")], account=ACCOUNT)
    assert [text.splitlines()[1:] for text in made] == [
        [
            f"gcloud storage buckets update gs://{bucket} --uniform-bucket-level-access",
            f"gcloud storage managed-folders create gs://{bucket}/llama/",
        ]
        for bucket in ("acme-ckpt", "acme-corpus")
    ]


def test_snippets_are_quoted_for_the_shell():
    (text,) = snippets([read("gs://b/a $(reboot)\n; rm/")], account=ACCOUNT)
    lines = text.split("\n")
    assert lines[0].startswith("# ")
    assert "'gs://b/a $(reboot)" in text
    assert "$(reboot)" in lines[0]  # in a comment, where it does nothing
    assert not any(line.startswith(("reboot", "$(")) for line in lines)


def test_a_disk_key_is_opened_to_compute_engines_agent():
    key = "projects/acme-keys/locations/us-central1/keyRings/r/cryptoKeys/disks"
    (text,) = snippets([], account=ACCOUNT, kms_key=f"https://cloudkms.googleapis.com/v1/{key}")
    assert f"gcloud kms keys add-iam-policy-binding {key} " in text
    assert "@compute-system.iam.gserviceaccount.com" in text
    assert "roles/cloudkms.cryptoKeyEncrypterDecrypter" in text


@pytest.mark.parametrize("resource", ["s3://b/p/", "az://account/container/p/", "nebius://b/p/"])
def test_another_clouds_store_renders_to_nothing(resource):
    assert render(read(resource)) == ()
    assert snippets([read(resource)], account=ACCOUNT) == ()


def test_another_clouds_secret_renders_to_nothing():
    grant = Grant(
        identity=Identity.NODE_DATA,
        permission=Permission.READ_SECRET,
        resource="aws-secretsmanager://acme/hf",
        reason="HF_TOKEN",
    )
    assert render(grant) == ()
    assert snippets([grant], account=ACCOUNT) == ()


@pytest.mark.parametrize("identity", [Identity.PLANNER, Identity.DEPLOYER, Identity.ORCHESTRATOR, Identity.BROKER])
def test_only_nodes_get_data(identity):
    assert render(read("gs://b/p/", identity=identity)) == ()


def test_reasons_stay_visible_and_a_right_stands_once():
    made = bindings(read("gs://b/p/", reason="training data"), read("gs://b/p", reason="evaluation"))
    assert [(b["role"], b["reason"]) for b in made] == [(VIEWER, "evaluation; training data")]


@given(st.permutations([READ, WRITE, SECRET, READ, read("gs://acme-corpus/llama", reason="again")]))
def test_order_and_repetition_change_nothing(grants):
    again = read("gs://acme-corpus/llama", reason="again")
    assert render(*grants) == render(READ, WRITE, SECRET, again)
    assert snippets(grants, account=ACCOUNT) == snippets([READ, WRITE, SECRET, again], account=ACCOUNT)


@given(PREFIX, PREFIX)
def test_a_prefix_covers_itself_and_no_sibling(mine, other):
    assume(other != mine and not other.startswith(f"{mine}/"))
    for grant in (read(f"gs://b/{mine}/"), write(f"gs://b/{mine}")):
        made = bindings(grant)
        assert allowed(made, "storage.objects.get", "b", f"{mine}/x")
        assert not allowed(made, "storage.objects.get", "b", f"{other}/x")
        assert not allowed(made, "storage.objects.get", "b", f"{mine}2/x")
        assert not allowed(made, "storage.objects.list", "b", "")


@given(st.lists(st.builds(lambda bucket, prefix: read(f"gs://{bucket}/{prefix}/"), st.just("b"), PREFIX), max_size=4))
def test_no_wildcard_and_nobody_but_the_nodes(grants):
    for document in render(*grants, WRITE, SECRET):
        for binding in document.document["bindings"]:
            assert binding["role"] in RIGHTS
            assert binding["kind"] in {"bucket", "managed_folder", "secret"}
        assert "allUsers" not in json.dumps(document.document)
