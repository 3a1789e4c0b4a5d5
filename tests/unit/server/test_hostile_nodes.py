"""Nodes that may not go on any more, and stores in which somebody put what no text can hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.model.errors import InputError
from planner.server.identity.fetch import fetcher
from tests.unit.server.server_bed import Agent, Bed, bed, launch, sqlite
from tests.unit.server.test_node_routes import refused


@pytest.fixture
def b(tmp_path: Path) -> Iterator[Bed]:
    with bed(sqlite(tmp_path)) as made:
        launch(made.record)
        yield made


def test_a_fenced_node_that_waits_for_the_cut_or_its_peers_is_told(b: Bed) -> None:
    """It was told to wait on, for half an hour, or to begin from a cut that is not its own any more."""
    old = Agent(b.client, rank=1)
    old.join()
    members = [{"name": f"r{k:02d}", "rank": k, "tunnel_address": f"10.9.0.{k + 1}"} for k in range(2)]
    b.runtime.expect("train", 1, members)
    assert [old.get(path).status_code for path in ("/v1/cut", "/v1/peers")] == [202, 202]
    first = Agent(b.client)
    first.join()
    first.post("/v1/cut", {"phase": "begin"})
    first.post("/v1/cut", {"phase": "choose", "candidates": []})
    assert old.get("/v1/cut").status_code == 200
    new = Agent(b.client, generation=launch(b.record))
    b.clock.pass_(seconds=10)
    assert new.join().status_code == 200
    assert new.post("/v1/cut", {"phase": "begin"}).status_code == 200
    for path in ("/v1/cut", "/v1/peers", "/v1/peers?wait=20"):
        refused(old.get(path), 409, "fenced")


def test_a_file_whose_name_is_no_text_keeps_no_job_from_starting(b: Bed) -> None:
    """A folder's listing gives such names as halves of surrogate pairs; anybody who can write there can make one."""
    node = Agent(b.client)
    node.join()
    node.post("/v1/cut", {"phase": "begin"})
    strange = "file:///ckpt/g1/\udcff\0/"
    fields = {"generation": 1, "step": 1, "uri": strange, "digest": "a" * 64, "mac": "a" * 64}
    wanted = {"phase": "choose", "candidates": [fields], "skipped": [[strange, "\udcff: torn"]]}
    answer = node.post("/v1/cut", wanted)
    assert answer.status_code == 200
    assert answer.json()["cut"] == {"step": None, "uri": None, "generation": None, "digest": None}
    assert len(answer.json()["skipped"]) == 2
    wrong = {"phase": "reject", "uri": "file:///x", "reason": "hash of \udcff.pt"}
    assert node.post("/v1/cut", wrong).status_code == 200


@pytest.mark.parametrize("text", [None, "no certificate"])
def test_a_file_of_authorities_that_is_none_is_named(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(InputError, match=r"ca\.pem") as wrong:
        fetcher(str(file))
    assert wrong.value.diagnostics[0].code == "SKY-RUN-520"


def test_a_machine_of_another_account_is_not_the_targets(tmp_path: Path) -> None:
    """The signer of a GetCallerIdentity chooses his session's name: in his own account, that of any machine."""
    for target, status in (("prod", 403), ("other", 200)):
        with bed(sqlite(tmp_path / target), accounts={("aws", target): "222233334444"}) as b:
            launch(b.record)
            node = Agent(b.client)
            answer = node.join()
            assert answer.status_code == status
            if status == 403:
                refused(answer, 403, "identity")
                node.rank = 7
                refused(node.join(instance_id="i-x"), 401, "unknown")
                node.generation = 9
                refused(node.join(), 401, "unknown")
    with bed(sqlite(tmp_path / "own"), accounts={("aws", "prod"): "1"}) as b:
        launch(b.record)
        assert Agent(b.client).join().status_code == 200
