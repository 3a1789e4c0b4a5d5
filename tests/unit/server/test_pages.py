"""The page and the people's JSON API: what they show, to whom, and that nothing of what nodes told can run in a browser."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path

import pytest

from planner.model.record import RunStatus, stamp
from planner.model.runtime import Seat
from planner.model.server import Person, Role
from planner.server.people import current
from planner.state.record import Record
from tests.unit.server import server_bed as sb
from tests.unit.server.page_story import EVIL, story


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated, empty database: made once, copied."""
    folder = tmp_path_factory.mktemp("empty")
    Record.open(sb.sqlite(folder), sb.PROJECT).close()
    return folder / "record.sqlite"


@pytest.fixture
def bed(tmp_path: Path, empty: Path) -> Iterator[sb.Bed]:
    shutil.copy(empty, tmp_path / "record.sqlite")
    with sb.bed(sb.sqlite(tmp_path)) as made:
        yield made


def asks_as(bed: sb.Bed, role: Role | None, *jobs: str) -> None:
    held = ((role, jobs or ("*",)),) if role else ()
    bed.app.dependency_overrides[current] = lambda: Person(name="ada", held=held)


class Page(HTMLParser):
    """Tables by id as rows of texts, and every tag with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: dict[str, list[list[str]]] = {}
        self._rows: list[list[str]] | None = None
        self._cell = False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "table":
            self._rows = self.tables.setdefault(dict(attrs).get("id") or "", [])
        elif tag == "tr" and self._rows is not None:
            self._rows.append([])
        elif tag in {"td", "th"} and self._rows is not None:
            self._rows[-1].append("")
            self._cell = True

    def handle_endtag(self, tag) -> None:
        if tag in {"td", "th"}:
            self._cell = False
        elif tag == "table":
            self._rows = None

    def handle_data(self, data) -> None:
        if self._cell and self._rows is not None:
            self._rows[-1][-1] = " ".join(f"{self._rows[-1][-1]} {data}".split())


def page(bed: sb.Bed, path: str) -> Page:
    answer = bed.client.get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/html")
    return Page(answer.text)


# the page


def test_the_jobs_list_tells_how_each_is(bed: sb.Bed) -> None:
    story(bed)
    sb.launch(bed.record, "other", nodes=1)
    other, train = page(bed, "/").tables[""][1:]
    assert [train[k] for k in (0, 1, 2, 3, 6, 7)] == ["train", "train-g2", "running", "2/2", "870", "1"]
    assert [other[k] for k in (0, 1, 2, 3, 6, 9)] == ["other", "other-g1", "running", "1/1", "-", "never"]


def test_a_job_shows_cost_and_what_it_is_made_of(bed: sb.Bed) -> None:
    story(bed)
    rows = page(bed, "/jobs/train").tables["costs"]
    # g1: two nodes for an hour (rank 1 until it was lost), rank 0 one hour more; g2: two nodes for two minutes
    g1, g2, total = rows[1:]
    assert g1 == ["train-g1", "2 x p5.48xlarge spot", "3.00", "$30.62", "$91.85", "ended"]
    assert g2[:3] == ["train-g2", "2 x p5.48xlarge spot", "0.07"]
    assert (g2[5], total[0], total[1]) == ("counting", "Sum", "$93.89")


def test_a_job_shows_placements_migrations_checkpoints_and_nodes(bed: sb.Bed) -> None:
    story(bed)
    found = page(bed, "/jobs/train").tables
    assert [(row[0], row[1], row[8]) for row in found["placements"][1:]] == [
        ("train-g2", "running", "48 h"),
        ("train-g1", "ended", "none"),
    ]
    (move,) = found["moves"][1:]
    assert move[1].startswith("train-g1 (ended), aws:prod/us-east-1/")
    assert move[3:] == ["moved", "900", "800", "100"]
    (kept,) = found["checkpoints"][1:]
    assert kept[:3] == ["800", "train-g1", "5.0 GiB"]
    r00, r01 = found["nodes"][1:]
    assert (r00[1], r00[5][:7], r00[6], r00[7]) == ("i-new-0", "0 s ago", "70,123 MiB", "97.5 %")
    assert (r01[1], r01[5]) == ("i-new-1", "never")


def test_plots_have_axes_units_and_a_line_per_run(bed: sb.Bed) -> None:
    story(bed)
    text = bed.client.get("/jobs/train").text
    step, rate, loss = re.findall(r'<svg class="plot".*?</svg>', text, re.DOTALL)
    assert "Step (steps)" in step
    assert "Rate (steps/s)" in rate
    assert "Loss (as the job tells it)" in loss
    for svg in (step, rate, loss):
        assert svg.count("<polyline") + svg.count("<circle") == 2
        assert svg.count('class="tick"') > 8
        assert "time (UTC)" in svg
        assert "<desc>" in svg
    assert re.findall(r">([\d,]+)</text>", step)[:3] == ["0", "200", "400"]


def test_a_page_needs_no_script_and_may_run_none(bed: sb.Bed) -> None:
    story(bed)
    for path in ("/", "/jobs/train", "/jobs/train/logs"):
        answer = bed.client.get(path)
        found = Page(answer.text)
        assert "script" not in {tag for tag, _ in found.tags}
        assert not [a for _, attrs in found.tags for a in attrs if a.startswith("on") or a == "style"]
        assert EVIL not in answer.text
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'")
        assert "unsafe" not in policy
        assert "script-src" not in policy
    assert "&lt;script&gt;" in bed.client.get("/jobs/train").text, "the event is shown as text"


def test_shown_anew_only_where_asked_for(bed: sb.Bed) -> None:
    sb.launch(bed.record)
    assert "http-equiv" not in bed.client.get("/").text
    assert '<meta http-equiv="refresh" content="30">' in bed.client.get("/jobs/train?refresh=30").text
    assert bed.client.get("/?refresh=-1").status_code == 400
    assert (
        'href="?rank=1&amp;generation=1&amp;refresh=30"' in bed.client.get("/jobs/train/logs?generation=1&rank=1").text
    )


def test_an_empty_record_and_a_job_that_told_nothing_have_pages(bed: sb.Bed) -> None:
    assert "Nothing was applied yet" in bed.client.get("/").text
    sb.launch(bed.record)
    text = bed.client.get("/jobs/train").text
    assert text.count("nothing was told yet") == 3
    assert bed.client.get("/jobs/nobody").status_code == 404


# who may see what


def test_people_see_their_own_jobs_only(bed: sb.Bed) -> None:
    story(bed)
    sb.launch(bed.record, "secret", nodes=1)
    asks_as(bed, Role.VIEWER, "tr*")
    assert [row[0] for row in page(bed, "/").tables[""][1:]] == ["train"]
    assert [j["job"] for j in bed.client.get("/v1/jobs").json()["jobs"]] == ["train"]
    for path in ("/jobs/secret", "/v1/jobs/secret", "/v1/jobs/secret/progress", "/v1/jobs/secret/checkpoints"):
        answer = bed.client.get(path)
        assert answer.status_code == 403
        nowhere = bed.client.get(path.replace("secret", "nosuch"))
        assert (nowhere.status_code, nowhere.json()["error"]) == (403, "denied"), "whether it exists is not told"


ROUTES = {
    "/v1/jobs/train": Role.VIEWER,
    "/v1/jobs/train/progress": Role.VIEWER,
    "/v1/jobs/train/checkpoints": Role.VIEWER,
    "/v1/jobs/train/events": Role.AUDITOR,
    "/v1/jobs/train/credentials": Role.AUDITOR,
    "/v1/jobs/train/logs": Role.OPERATOR,
    "/jobs/train": Role.VIEWER,
    "/jobs/train/logs": Role.OPERATOR,
}
ABOVE = {None: set(), Role.VIEWER: {Role.VIEWER}, Role.AUDITOR: {Role.VIEWER, Role.AUDITOR}, Role.OPERATOR: set(Role)}


@pytest.mark.parametrize("role", [None, *Role])
@pytest.mark.parametrize("path", ROUTES)
def test_each_route_is_for_its_role(bed: sb.Bed, path: str, role: Role | None) -> None:
    sb.launch(bed.record)
    asks_as(bed, role)
    expected = 200 if ROUTES[path] in ABOVE[role] else 403
    assert bed.client.get(path).status_code == expected


@pytest.mark.parametrize("role", [None, Role.VIEWER, Role.AUDITOR])
def test_only_operators_ask_nodes_and_make_tokens(bed: sb.Bed, role: Role | None) -> None:
    sb.launch(bed.record)
    asks_as(bed, role)
    ask = {"word": "stop", "reason": "because"}
    assert bed.client.post("/v1/jobs/train/requests", json=ask).status_code == 403
    seat = {"generation": 1, "rank": 0}
    assert bed.client.post("/v1/jobs/train/one-time-tokens", json=seat).status_code == 403
    assert bed.runtime.requests(Seat(job="train", generation=1, rank=0)) == ()


def test_events_and_credentials_are_on_the_page_of_auditors_only(bed: sb.Bed) -> None:
    story(bed)
    asks_as(bed, Role.VIEWER)
    assert not {"events", "credentials"} & set(page(bed, "/jobs/train").tables)
    asks_as(bed, Role.AUDITOR)
    found = page(bed, "/jobs/train").tables
    assert found["credentials"][1][1:4] == ["g2 r00", "read", "s3://acme-data/set/"]
    assert "issued" in {row[2] for row in found["events"]}
    assert "/jobs/train/logs" not in bed.client.get("/jobs/train").text


# the API


def test_the_job_as_json_is_the_page_in_numbers(bed: sb.Bed) -> None:
    story(bed)
    found = bed.client.get("/v1/jobs/train").json()
    assert (found["step"], found["loss"], found["steps_per_second"], found["status"]) == (870, 0.2, 1.0, "running")
    assert found["cost"]["usd"] == found["usd_so_far"] == "93.8930"
    assert [(m["from_run"], m["to_run"], m["repeated_steps"]) for m in found["migrations"]] == [
        ("train-g1", "train-g2", 100)
    ]
    assert found["nodes"][0]["gpu_memory_mib"] == 70123
    assert [c["step"] for c in found["checkpoints"]] == [800]
    assert "mac" not in found["checkpoints"][0]


def test_progress_is_thinned_and_of_one_run_where_asked(bed: sb.Bed) -> None:
    story(bed)
    whole = bed.client.get("/v1/jobs/train/progress").json()["progress"]
    assert [p["step"] for p in whole] == [*range(0, 1000, 100), 810, 870]
    one = bed.client.get("/v1/jobs/train/progress?generation=1&limit=5").json()["progress"]
    assert len(one) == 5
    assert one[-1]["step"] == 900


def test_events_and_logs_go_on_after_an_id(bed: sb.Bed) -> None:
    story(bed)
    first = bed.client.get("/v1/jobs/train/events?limit=3").json()
    assert len(first["events"]) == 3
    assert bed.client.get(f"/v1/jobs/train/events?after={first['next']}").json() == {
        "events": [],
        "next": first["next"],
    }
    logs = bed.client.get("/v1/jobs/train/logs?generation=1").json()
    assert [c["text"] for c in logs["logs"]] == [f"{EVIL}\nsecond line"]
    assert bed.client.get("/v1/jobs/train/logs").json()["generation"] == 2
    assert bed.client.get("/v1/jobs/train/logs?generation=7").status_code == 404


def test_a_node_hears_what_an_operator_asks_and_the_record_who_asked(bed: sb.Bed) -> None:
    sb.launch(bed.record)
    agent = sb.Agent(bed.client)
    agent.join()
    asks_as(bed, Role.OPERATOR)
    until = stamp(bed.clock() + timedelta(minutes=5))
    answer = bed.client.post(
        "/v1/jobs/train/requests", json={"word": "checkpoint", "reason": "before the move", "deadline": until}
    )
    assert (answer.status_code, answer.json()["generation"]) == (201, 1)
    (heard,) = agent.send(agent.item("heartbeat")).json()["requests"]
    assert (heard["id"], heard["word"], heard["deadline"]) == (answer.json()["id"], "checkpoint", until)
    assert heard["reason"] == "ada: before the move"
    assert any(e.kind == "asked" and "ada" in e.text for e in bed.record.events("train"))


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"word": "reboot", "reason": "x"},
        {"word": "stop"},
        {"word": "stop", "reason": ""},
        {"word": "stop", "reason": "x" * 401},
        {"word": "stop", "reason": "x", "generation": 0},
        {"word": "stop", "reason": "x", "generation": "1"},
        {"word": "stop", "reason": "x", "deadline": "tomorrow"},
        {"word": "stop", "reason": "x", "deadline": "2026-01-01T00:00:00"},
        [],
    ],
    ids=json.dumps,
)
def test_a_request_that_is_none_is_refused(bed: sb.Bed, body) -> None:
    sb.launch(bed.record)
    answer = bed.client.post("/v1/jobs/train/requests", json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "malformed")


def test_nobody_is_asked_of_a_run_that_is_over(bed: sb.Bed) -> None:
    sb.launch(bed.record)
    with sb.writing(bed.record) as writer:
        writer.run_status(1, RunStatus.ENDED, bed.clock(), "over")
    answer = bed.client.post("/v1/jobs/train/requests", json={"word": "stop", "reason": "x"})
    assert (answer.status_code, answer.json()["error"]) == (410, "ended")


def test_a_one_time_token_seats_one_machine_once(bed: sb.Bed) -> None:
    sb.launch(bed.record)
    answer = bed.client.post("/v1/jobs/train/one-time-tokens", json={"generation": 1, "rank": 1, "hours": 2})
    assert answer.status_code == 201
    token = answer.json()["token"]
    assert answer.json()["expires_at"] == stamp(bed.clock() + timedelta(hours=2))
    proof = {"scheme": "one-time", "value": token}
    wrong = sb.Agent(bed.client, rank=0)
    assert wrong.join(proof=proof).status_code == 403
    by_hand = sb.Agent(bed.client, rank=1)
    assert by_hand.join(proof=proof).status_code == 200
    again = sb.Agent(bed.client, rank=1)
    assert again.join(proof=proof).status_code == 403
    assert token not in bed.log.getvalue()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"generation": 1, "rank": 2}, 400),
        ({"generation": 2, "rank": 0}, 404),
        ({"generation": 1, "rank": 0, "hours": 169}, 400),
    ],
)
def test_a_one_time_token_is_for_a_seat_that_exists_and_not_for_ever(bed: sb.Bed, body: dict, status: int) -> None:
    sb.launch(bed.record)
    assert bed.client.post("/v1/jobs/train/one-time-tokens", json=body).status_code == status


def test_one_time_tokens_are_made_only_where_they_are_taken(tmp_path: Path) -> None:
    trust = replace(sb.SETTINGS.identity, one_time=False)
    with sb.bed(sb.sqlite(tmp_path), settings=replace(sb.SETTINGS, identity=trust)) as bed:
        sb.launch(bed.record)
        answer = bed.client.post("/v1/jobs/train/one-time-tokens", json={"generation": 1, "rank": 0})
        assert (answer.status_code, answer.json()["error"]) == (403, "denied")


def test_jobs_come_in_pages(bed: sb.Bed) -> None:
    for name in ("a", "b", "c"):
        sb.launch(bed.record, name, nodes=1)
    first = bed.client.get("/v1/jobs?limit=2").json()
    assert ([j["job"] for j in first["jobs"]], first["next"]) == (["a", "b"], "b")
    last = bed.client.get("/v1/jobs?limit=2&after=b").json()
    assert ([j["job"] for j in last["jobs"]], last["next"]) == (["c"], None)
    assert bed.client.get("/v1/jobs?after=c").json() == {"jobs": [], "next": None}


@pytest.mark.parametrize(
    "path", ["/v1/jobs/UPPER", "/v1/jobs/train%2f..", "/v1/jobs/train/logs?rank=-1", "/v1/jobs?limit=0"]
)
def test_what_is_no_name_or_number_is_refused(bed: sb.Bed, path: str) -> None:
    sb.launch(bed.record)
    assert bed.client.get(path).status_code in {400, 404}
