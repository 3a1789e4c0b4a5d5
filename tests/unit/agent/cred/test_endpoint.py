"""The endpoint as its clients see it: who gets in, what they get, how fast, and what is on the disk."""

from __future__ import annotations

import contextlib
import json
import socket
import stat
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from modules.agent.cred import files
from modules.agent.cred.endpoint import MOST_CONNECTIONS, Endpoint
from modules.agent.cred.environment import environment
from modules.agent.cred.grants import wanted
from modules.agent.cred.lease import Wanted

S3 = Wanted("s3", "s3://acme-data/", "read")
GS = Wanted("gs", "gs://acme-data/", "read")
AZ = Wanted("az", "az://acct/data/", "read")
NEBIUS = Wanted("nb", "nebius://acme/", "read")


def ask(url: str, token: str | None = None, *, form=None, host: str | None = None):
    headers = {**({"Authorization": token} if token else {}), **({"Host": host} if host else {})}
    data = urllib.parse.urlencode(form).encode() if form is not None else None
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.fixture
def served(bench, serving):
    holder = bench.holder(S3, GS, AZ, NEBIUS)
    with serving(holder) as endpoint:
        holder.step()
        yield endpoint, Path(endpoint.seen)


def test_each_cloud_in_its_form(served) -> None:
    endpoint, folder = served
    token = (folder / "token").read_text()
    got = {grant: ask(f"{endpoint.url}/v1/creds/{grant}", token)[1] for grant in ("s3", "gs", "az", "nb")}
    ends = got["s3"]["Expiration"]
    assert got["s3"] == {
        "AccessKeyId": "AK1",
        "SecretAccessKey": "secret-1",
        "Token": "token-1",
        "Expiration": ends,
    }
    assert got["gs"] == {"access_token": "down-2", "token_type": "Bearer", "expires_in": 3600}
    assert got["az"] == {"account": "acct", "container": "data", "sas": "sig=3", "expires_at": ends}
    assert got["nb"]["Token"] == ""
    assert got["nb"]["Endpoint"] == "https://storage.eu-north1.nebius.cloud"


def test_who_gets_in(served) -> None:
    endpoint, folder = served
    token, url = (folder / "token").read_text(), f"{endpoint.url}/v1/creds/s3"
    assert ask(url, token)[0] == ask(url, "Bearer " + token)[0] == 200
    assert ask(url)[0] == ask(url, "")[0] == ask(url, token + "x")[0] == ask(url, "é")[0] == 401
    assert ask(url, token, host="evil.example:80")[0] == 403, "a browser that was led here by a name"
    assert ask(f"{endpoint.url}/v1/creds/other", token)[0] == 404
    assert ask(f"{endpoint.url}/", token)[0] == 404
    assert endpoint.url.startswith("http://127.0.0.1:")


def test_the_token_service_for_google(served) -> None:
    endpoint, folder = served
    token, url = (folder / "token").read_text(), f"{endpoint.url}/v1/google/gs/token"
    status, got = ask(url, form={"subject_token": token})
    assert status == 200
    assert (got["access_token"], got["expires_in"]) == ("down-2", 3600)
    assert got["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    assert ask(url, form={"subject_token": "x"})[0] == ask(url, form={})[0] == 401
    assert ask(f"{endpoint.url}/v1/google/s3/token", form={"subject_token": token})[0] == 404
    assert ask(url, form={"subject_token": token}, host="evil.example")[0] == 403
    assert ask(url, form={"subject_token": "x" * 70_000})[0] == 413


def test_without_a_lease_it_says_so(bench, serving) -> None:
    bench.away()
    holder = bench.holder(S3, GS)
    with serving(holder) as endpoint:
        token = Path(endpoint.seen, "token").read_text()
        assert ask(f"{endpoint.url}/v1/creds/s3", token)[0] == 503
        assert ask(f"{endpoint.url}/v1/google/gs/token", form={"subject_token": token}) == (
            503,
            {"error": "temporarily_unavailable", "error_description": "no lease holds now: the broker is away"},
        )


def test_a_restarted_agent_is_found_where_it_was(bench, serving) -> None:
    with serving(bench.holder(S3)) as endpoint:
        before, token = endpoint.url, Path(endpoint.seen, "token").read_text()
    with serving(bench.holder(S3)) as endpoint:
        assert (endpoint.url, Path(endpoint.seen, "token").read_text()) == (before, token)
        with serving(bench.holder(S3)) as second:
            assert second.url != before, "the port is taken"


def test_what_is_on_the_disk(served) -> None:
    _endpoint, folder = served
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    secret = {"token", "azure-az.sas"}
    for path in folder.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == (0o400 if path.name in secret else 0o444), path
        for word in ("secret-", "token-1", "down-"):
            assert word not in path.read_text(), "what clients ask for is not written"
    assert (folder / "azure-az.sas").read_text() == "sig=3"


def test_a_sas_is_replaced_whole(bench, serving) -> None:
    holder = bench.holder(AZ)
    with serving(holder) as endpoint:
        seen = set()
        bench.pass_time(holder, 6 * 3600 - 60, each=lambda: seen.add(Path(endpoint.seen, "azure-az.sas").read_text()))
    assert seen == {f"sig={n + 1}" for n in range(len(bench.broker.minted))}
    assert not [path for path in Path(endpoint.seen).iterdir() if path.name.startswith(".")]


def test_links_of_somebody_else_are_not_followed(tmp_path, bench) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotADirectoryError):
        Endpoint(bench.holder(S3), str(tmp_path / "link"))
    (tmp_path / "target").write_text("x" * 43)
    (tmp_path / "token").symlink_to(tmp_path / "target")
    assert files.token(tmp_path / "token", None) != "x" * 43
    assert not (tmp_path / "token").is_symlink()


def test_128_workers_at_once_are_answered_from_memory(served, bench) -> None:
    endpoint, folder = served
    token = (folder / "token").read_text()

    def one(_n: int) -> float:
        began = time.perf_counter()
        assert ask(f"{endpoint.url}/v1/creds/s3", token)[0] == 200
        return time.perf_counter() - began

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(one, range(128)))
    assert bench.broker.asked == 4, "one mint a grant, however many ask"
    alone = sorted(one(n) for n in range(50))
    assert alone[25] < 0.05


def test_names_of_grants() -> None:
    rows = [("s3://acme-data/train/", "read"), ("s3://acme-data/train/", "write"), ("s3://acme-data/train/", "read")]
    assert [one.grant for one in wanted(rows)] == ["s3-acme-data-train-read", "s3-acme-data-train-write"]
    alike = [
        one.grant for one in wanted([("s3://a-b/c/", "read"), ("s3://a/b-c/", "read"), ("gs://" + "x" * 99, "read")])
    ]
    assert len(set(alike)) == 3
    assert all(len(name) < 64 for name in alike)


def test_where_writing_reads_its_own_alone_the_rest_takes_a_lease_to_read() -> None:
    """Azure's SAS is for one directory: docs/broker.md."""
    az = [(one.uri, one.access) for one in wanted([("az://acct/data/a/", "read"), ("az://acct/ckpt/b/", "write")])]
    assert az == [("az://acct/data/a/", "read"), ("az://acct/ckpt/b/", "write"), ("az://acct/ckpt/b/", "read")]
    others = [(f"{kind}://ckpt/b/", "write") for kind in ("s3", "gs", "nebius")]
    assert [(one.uri, one.access) for one in wanted(others)] == others


def test_the_lease_to_read_beside_one_to_write_is_nobodys_default() -> None:
    written = wanted([("az://acct/ckpt/b/", "write")])
    said = environment(written, "http://127.0.0.1:1", "/run/c")
    assert said["SKYPLAN_AZURE_SAS_FILE"] == "/run/c/azure-az-acct-ckpt-b-write.sas"
    both = wanted([("az://acct/ckpt/b/", "write"), ("az://acct/data/a/", "read")])
    said = environment(both, "http://127.0.0.1:1", "/run/c")
    assert said["SKYPLAN_AZURE_SAS_FILE"] == "/run/c/azure-az-acct-data-a-read.sas"


def test_who_opens_connections_and_says_nothing_uses_up_neither_descriptors_nor_threads(served) -> None:
    endpoint, folder = served
    token = (folder / "token").read_text()
    before = threading.active_count()
    port = int(endpoint.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        for _ in range(3 * MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5)).sendall(b"G")
        assert ask(f"{endpoint.url}/v1/creds/s3", token)[0] == 200
        assert threading.active_count() - before <= 2 * MOST_CONNECTIONS  # those that are being ended, too
        assert len(endpoint._server._open) <= MOST_CONNECTIONS
