"""Grants as Azure role assignments, judged by what they would allow (a small evaluator of roles and conditions)."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.iam.azure import CONDITION_LIMIT, READER, condition, policies, snippets
from planner.model.errors import InputError
from planner.model.grants import Grant, Identity, Permission

BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
READ, WRITE, ADD = f"{BLOBS}/read", f"{BLOBS}/write", f"{BLOBS}/add/action"
DELETE, MOVE = f"{BLOBS}/delete", f"{BLOBS}/move/action"
#: data actions of the built-in roles (Microsoft Learn, built-in roles, 2024-04)
ROLES = {
    READER: {READ},
    "Storage Blob Data Contributor": {READ, WRITE, ADD, DELETE, MOVE},
    "Key Vault Secrets User": {"Microsoft.KeyVault/vaults/secrets/getSecret/action"},
}
CONTAINER = "/blobServices/default/containers/"


def grant(resource, permission=Permission.READ_OBJECTS, reason="training data"):
    identity = Identity.NODE_CHECKPOINT if permission is Permission.WRITE_CHECKPOINTS else Identity.NODE_DATA
    return Grant(identity=identity, permission=permission, resource=resource, reason=reason)


DATA = grant("az://acmedata/corpus/llama/")
CHECKPOINT = grant("az://acmeckpt/runs/llama/", Permission.WRITE_CHECKPOINTS, "checkpoints")
SECRET = grant("azure-keyvault://acme-vault/hf-token", Permission.READ_SECRET, "environment variable HF_TOKEN")


def render(*grants, **more):
    return policies(grants, account="00000000-0000-0000-0000-000000000000", region="eastus", **more)


def holds(text, action, *, path=None, prefix=None, container="runs"):
    """Azure's evaluation of a condition, as its documentation describes it; an attribute that is absent compares as false."""
    if not text:
        return True
    listing = action == "list"
    attributes = {"path": path, "prefix": prefix, "name": container}

    def compare(match):
        have = attributes[match[1].rsplit(":", 1)[1]]
        if have is None:
            return "False"
        return str(have.startswith(match[3]) if match[2] == "StringStartsWith" else have == match[3])

    code = re.sub(r"@\w+\[([^\]]+)\] (StringStartsWith|StringEquals) '([^'\\]*)'", compare, text)
    code = re.sub(r"SubOperationMatches\{'Blob\.List'\}", str(listing), code)
    code = re.sub(r"ActionMatches\{'([^']+)'\}", lambda m: str(m[1] == (READ if listing else action)), code)
    code = code.replace("AND", "and").replace("OR", "or").replace("NOT", "not").replace("!", " not ")
    assert set(re.findall(r"\w+", code)) <= {"True", "False", "and", "or", "not"}, code
    return eval(code)


def allowed(documents, action, account, container, *, path=None, prefix=None):
    for policy in documents:
        document = policy.document
        if document["resource"] != {"type": "Microsoft.Storage/storageAccounts", "name": account}:
            continue
        if document["child"] != CONTAINER + container:
            continue
        actions = document["definition"]["data_actions"] if "definition" in document else ROLES[document["role"]]
        if (READ if action == "list" else action) not in actions:
            continue
        if holds(document.get("condition", ""), action, path=path, prefix=prefix, container=container):
            return True
    return False


def test_r04_a_node_reads_its_data_and_nothing_beside_it():
    made = render(DATA)
    assert allowed(made, READ, "acmedata", "corpus", path="llama/a/b")
    assert not allowed(made, READ, "acmedata", "corpus", path="llama2/a")
    assert not allowed(made, READ, "acmedata", "corpus", path="other")
    assert not allowed(made, READ, "acmedata", "corpus2", path="llama/a")
    assert not allowed(made, READ, "acmedata2", "corpus", path="llama/a")
    assert not allowed(made, WRITE, "acmedata", "corpus", path="llama/a")


def test_listing_stays_in_the_prefix():
    made = render(DATA)
    assert allowed(made, "list", "acmedata", "corpus", prefix="llama/")
    assert allowed(made, "list", "acmedata", "corpus", prefix="llama/a/")
    assert not allowed(made, "list", "acmedata", "corpus", prefix="llama2/")
    assert not allowed(made, "list", "acmedata", "corpus", prefix="")
    assert not allowed(made, "list", "acmedata", "corpus")


@pytest.mark.parametrize("role", [None, "Storage Blob Data Contributor"])
def test_r04_checkpoints_are_written_and_read_and_never_deleted(role):
    made = render(CHECKPOINT, checkpoint_role=role)
    for action in (READ, WRITE, ADD):
        assert allowed(made, action, "acmeckpt", "runs", path="llama/g1/step")
        assert not allowed(made, action, "acmeckpt", "runs", path="llama2/g1/step")
    assert allowed(made, "list", "acmeckpt", "runs", prefix="llama/")
    assert not allowed(made, "list", "acmeckpt", "runs", prefix="")
    for action in (DELETE, MOVE):
        assert not allowed(made, action, "acmeckpt", "runs", path="llama/g1/step")


def test_a_role_of_its_own_has_no_right_on_the_container():
    (made,) = render(CHECKPOINT)
    assert made.document["definition"] == {"data_actions": [READ, WRITE, ADD]}
    assert "role" not in made.document


def test_a_container_without_prefix_needs_no_condition_but_is_never_emptied():
    (data,) = render(grant("az://acmedata/corpus/"))
    assert "condition" not in data.document
    whole = render(
        grant("az://acmeckpt/runs/", Permission.WRITE_CHECKPOINTS), checkpoint_role="Storage Blob Data Contributor"
    )
    assert allowed(whole, WRITE, "acmeckpt", "runs", path="x")
    assert not allowed(whole, DELETE, "acmeckpt", "runs", path="x")


def test_prefixes_of_one_container_are_one_assignment():
    made = render(
        DATA, grant("az://acmedata/corpus/eval/", reason="evaluation"), grant("az://acmedata/corpus/llama/a/")
    )
    assert len(made) == 1
    assert made[0].document["reason"] == "evaluation; training data"
    assert allowed(made, READ, "acmedata", "corpus", path="eval/x")
    assert allowed(made, READ, "acmedata", "corpus", path="llama/x")
    assert not allowed(made, READ, "acmedata", "corpus", path="evaluation/x")
    assert "llama/a/" not in made[0].document["condition"], "the prefix above it covers it"


def test_data_and_checkpoints_in_one_container_stay_two_rights():
    made = render(grant("az://acme/runs/data/"), grant("az://acme/runs/ckpt/", Permission.WRITE_CHECKPOINTS))
    assert len({policy.name for policy in made}) == 2
    assert not allowed(made, WRITE, "acme", "runs", path="data/x")
    assert allowed(made, WRITE, "acme", "runs", path="ckpt/x")


@pytest.mark.parametrize("path", ["acme-vault/hf-token", "ACME-vault/HF-token", "acme-vault/hf-token/0123abcd"])
def test_one_secret_at_its_own_scope(path):
    (made,) = render(grant(f"azure-keyvault://{path}", Permission.READ_SECRET))
    assert made.document["role"] == "Key Vault Secrets User"
    assert made.document["resource"] == {"type": "Microsoft.KeyVault/vaults", "name": "acme-vault"}
    assert made.document["child"] == "/secrets/hf-token"


def test_two_secrets_never_share_a_name():
    made = render(
        grant("azure-keyvault://a-b/c", Permission.READ_SECRET), grant("azure-keyvault://a/b-c", Permission.READ_SECRET)
    )
    assert len({policy.name for policy in made}) == 2


def test_a_vault_without_a_secret_is_refused():
    with pytest.raises(InputError, match="names no secret"):
        render(grant("azure-keyvault://acme-vault", Permission.READ_SECRET))


@pytest.mark.parametrize("prefix", ["o'brien", "a\\b"])
def test_what_a_condition_cannot_say_is_refused(prefix):
    with pytest.raises(InputError) as refused:
        render(grant(f"az://acmedata/corpus/{prefix}/"))
    assert refused.value.diagnostics[0].code == "SKY-SPEC-108"


def test_a_condition_too_long_for_azure_is_refused():
    grants = [grant(f"az://acmedata/corpus/{number:03}/") for number in range(60)]
    with pytest.raises(InputError, match=str(CONDITION_LIMIT)):
        render(*grants)


@pytest.mark.parametrize("resource", ["s3://b/p/", "gs://b/p/", "nebius://b/p/"])
def test_another_clouds_store_renders_to_nothing(resource):
    assert render(grant(resource)) == ()
    assert render(grant("aws-secretsmanager://acme/hf", Permission.READ_SECRET)) == ()


def test_never_a_role_that_manages():
    roles = {policy.document.get("role") for policy in render(DATA, CHECKPOINT, SECRET)}
    assert roles == {None, "Storage Blob Data Reader", "Key Vault Secrets User"}


def test_no_wildcard_is_anywhere():
    text = json.dumps([policy.document for policy in render(DATA, CHECKPOINT, SECRET)])
    assert "*" not in text
    assert "StringLike" not in text


@given(st.permutations([DATA, CHECKPOINT, SECRET, grant("az://acmedata/corpus/eval/"), DATA]))
def test_order_and_repetition_change_nothing(grants):
    assert render(*grants) == render(DATA, CHECKPOINT, SECRET, grant("az://acmedata/corpus/eval/"))


#: what planner.spec.stores lets a prefix be, but for the quote
PREFIX = st.text("abz09!_.=@+, ()-/", min_size=1, max_size=12).map(lambda text: text.strip("/")).filter(bool)


@given(mine=PREFIX, other=PREFIX, tail=st.text("ab/", max_size=4))
def test_whatever_its_letters_a_prefix_allows_itself_and_nothing_else(mine, other, tail):
    made = render(grant(f"az://acmedata/corpus/{mine}/"))
    inside = f"{other}/{tail}".startswith(f"{mine}/")
    assert allowed(made, READ, "acmedata", "corpus", path=f"{mine}/{tail}")
    assert allowed(made, READ, "acmedata", "corpus", path=f"{other}/{tail}") is inside
    assert allowed(made, "list", "acmedata", "corpus", prefix=f"{other}/{tail}") is inside
    assert not allowed(made, READ, "acmedata", "corpus", path=mine)


def test_a_condition_is_balanced_and_on_one_line():
    text = condition(("a/", "b (1)/"), write=True, shut=True)
    plain = re.sub(r"'[^']*'", "", text)
    assert plain.count("(") == plain.count(")")
    assert "\n" not in text


def test_the_owner_of_a_store_elsewhere_gets_commands_and_the_stack_nothing():
    elsewhere = {"acmeckpt", "acme-vault"}
    assert [
        policy.document["resource"]["name"] for policy in render(DATA, CHECKPOINT, SECRET, elsewhere=elsewhere)
    ] == ["acmedata"]
    made = snippets([DATA, CHECKPOINT, SECRET], account=None, region="eastus", elsewhere=elsewhere)
    assert len(made) == 2
    checkpoints, secret = made
    assert "az role definition create" in checkpoints
    assert "--condition-version 2.0" in checkpoints
    assert "az keyvault show --name acme-vault" in secret
    assert snippets([DATA, CHECKPOINT, SECRET], account=None, region="eastus") == ()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_commands_are_what_they_say_to_a_shell(tmp_path):
    words = tmp_path / "az"
    words.write_text('#!/bin/bash\nprintf "%s\\0" "$@" >> "$LOG"\necho found\n')
    words.chmod(0o755)
    reason = "it's `data` $HOME"
    grants = [
        grant("az://acmeckpt/runs/llama/", Permission.WRITE_CHECKPOINTS, reason),
        grant("az://acmedata/corpus/llama/", reason=reason),
    ]
    expected = {policy.document["condition"] for policy in render(*grants)}
    (tmp_path / "run.sh").write_text(
        "\n".join(snippets(grants, account=None, region="eastus", elsewhere={"acmeckpt", "acmedata"}))
    )
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LOG": str(tmp_path / "log"), "NODE_PRINCIPAL_ID": "me"}
    subprocess.run(["bash", "-eu", tmp_path / "run.sh"], check=True, env=environment, capture_output=True)
    said = (tmp_path / "log").read_text().split("\0")
    assert expected <= set(said)
    assert said.count(reason) == 2
    assert f"found{CONTAINER}runs" in said
    definition = json.loads(said[said.index("--role-definition") + 1])
    assert (definition["Actions"], definition["AssignableScopes"]) == ([], ["/subscriptions/found"])
    assert definition["DataActions"] == [READ, WRITE, ADD]
