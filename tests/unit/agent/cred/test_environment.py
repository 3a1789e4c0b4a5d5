"""The job's environment, asked of the SDKs themselves in a process of its own: whatever shadowed the endpoint before does so no more."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from modules.agent.cred import environment as env
from modules.agent.cred.lease import Wanted

DATA = Wanted("s3-data-read", "s3://acme-data/", "read")
CKPT = Wanted("s3-ckpt-write", "s3://acme-ckpt/train/", "write")
NEBIUS = Wanted("nebius-data-read", "nebius://acme/", "read")
GS = Wanted("gs-data-read", "gs://acme-data/", "read")
AZ = Wanted("az-data-read", "az://acct/data/", "read")
URL, FOLDER = "http://127.0.0.1:1", "/run/skyplan/credentials"

BOTO = """
import boto3, json, sys
found = {}
for profile in sys.argv[1:]:
    session = boto3.Session(profile_name=None if profile == "-" else profile)
    got = session.get_credentials()
    frozen = got.get_frozen_credentials()
    client = session.client("s3", region_name="us-east-1")
    found[profile] = [got.method, frozen.access_key, frozen.token, client.meta.endpoint_url]
print(json.dumps(found))
"""


def hostile(home: Path) -> dict[str, str]:
    """An environment in which everything that ever shadowed a role is there (skypilot#2820 and its kin)."""
    (home / ".aws").mkdir()
    keys = "aws_access_key_id = AKOLD\naws_secret_access_key = old\n"
    (home / ".aws" / "credentials").write_text(f"[default]\n{keys}[other]\n{keys}")
    (home / ".aws" / "config").write_text(f"[default]\n{keys}[profile other]\n{keys}")
    (home / ".boto").write_text(f"[Credentials]\n{keys}")
    web = home / "web-identity"
    web.write_text("eyJ")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        **dict.fromkeys(env.AWS_SHADOWS, "AKOLD"),
        "AWS_PROFILE": "other",
        "AWS_DEFAULT_PROFILE": "other",
        "AWS_ROLE_ARN": "arn:aws:iam::111122223333:role/other",
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(web),
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/nowhere",
    }


def run_boto(environment: dict[str, str], *profiles: str):
    done = subprocess.run(
        [sys.executable, "-c", BOTO, *profiles],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("container", [False, True], ids=["bare", "container"])
def test_boto3_finds_the_endpoint_past_all_that_shadowed_it(bench, serving, tmp_path, container) -> None:
    """Case 10.  In a container, what the image sets can only be emptied."""
    holder = bench.holder(CKPT, DATA, NEBIUS)
    bench.now = 4_000_000_000.0
    holder.step()
    (tmp_path / "home").mkdir()
    with serving(holder, endpoints={NEBIUS.grant: "https://storage.eu-north1.nebius.cloud"}) as endpoint:
        found = endpoint.environment()
        over = env.for_container(found) if container else found
        base = hostile(tmp_path / "home")
        for name in env._NOT_EMPTY if container else ():
            del base[name]
        job = env.applied(over, base)
        got = run_boto(job, "-", CKPT.grant, NEBIUS.grant)
    assert got["-"] == ["container-role", "AK2", "token-2", "https://s3.amazonaws.com"], (
        "data to read, not the checkpoints"
    )
    assert got[CKPT.grant][:3] == ["custom-process", "AK1", "token-1"]
    assert got[NEBIUS.grant] == ["custom-process", "AK3", None, "https://storage.eu-north1.nebius.cloud"]


def test_the_hostile_environment_is_one(tmp_path) -> None:
    """The test above would find nothing if this were not so."""
    environment = hostile(tmp_path)
    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        del environment[name]
    assert run_boto(environment, "-")["-"][1] == "AKOLD"


def test_every_shadow_is_taken_away_and_a_container_gets_it_empty() -> None:
    found = env.environment([DATA, GS, AZ], URL, FOLDER)
    shadows = {*env.AWS_SHADOWS, *env.GOOGLE_SHADOWS, *env.AZURE_SHADOWS, *env.PERSONS}
    assert {name for name, value in found.items() if value is None} == shadows
    assert {name for name, value in env.for_container(found).items() if not value} == (
        shadows - env._NOT_EMPTY - set(env._PROFILES)
    )
    assert env.applied(found, {"AWS_ACCESS_KEY_ID": "AK", "KEPT": "1"}).keys() == (found.keys() - shadows) | {"KEPT"}


def test_the_nodes_own_identity_stays_the_default_where_it_reaches_stores_of_that_kind() -> None:
    found = env.environment([DATA, GS], URL, FOLDER, own=["s3://own/", "gs://own/"])
    assert found["AWS_CONFIG_FILE"] == f"{FOLDER}/aws-config"
    for name in ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED", "GOOGLE_APPLICATION_CREDENTIALS"):
        assert name not in found


def test_nothing_lent_changes_nothing() -> None:
    assert env.environment([], URL, FOLDER) == {}


def test_what_is_of_other_clouds_is_left_alone() -> None:
    found = env.environment([AZ], URL, FOLDER)
    assert not [name for name in found if name.startswith(("AWS_", "GOOGLE_"))]
    assert found["SKYPLAN_AZURE_SAS_FILE"] == f"{FOLDER}/azure-az-data-read.sas"


def test_google_is_told_a_project_so_that_nobody_asks_for_it() -> None:
    found = env.environment([GS], URL, FOLDER, project="acme-gpu")
    assert found["GOOGLE_CLOUD_PROJECT"] == "acme-gpu"
    assert env.environment([GS], URL, FOLDER)["GOOGLE_CLOUD_PROJECT"] == env.NO_PROJECT
    assert found["GOOGLE_APPLICATION_CREDENTIALS"] == f"{FOLDER}/google-gs-data-read.json"


def test_no_file_that_variables_name_holds_a_secret_and_the_index_tells_all() -> None:
    found = env.documents([DATA, CKPT, GS, AZ], URL, FOLDER)
    index = json.loads(found["credentials.json"])
    assert [row["grant"] for row in index["grants"]] == [one.grant for one in (DATA, CKPT, GS, AZ)]
    assert index["grants"][3]["sas_file"] == f"{FOLDER}/azure-az-data-read.sas"
    assert index["grants"][0]["aws_profile"] == DATA.grant
    google = json.loads(found["google-gs-data-read.json"])
    assert google["credential_source"] == {"file": f"{FOLDER}/token"}
    assert google["token_url"] == f"{URL}/v1/google/gs-data-read/token"
