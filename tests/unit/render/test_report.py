"""R25, R26: a report shows each job's placement with the market, the money and the rights around it, as one file that holds nothing secret and runs nothing foreign."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.app.report import assets
from planner.app.schemas import published
from planner.model.report import Report
from planner.render import report_card, report_data, report_html
from planner.render.report_scatter import scale, scatter
from planner.render.report_tables import FIRST_ROWS
from tests.unit.render.report_story import TRAIN, fleet, large, made, nowhere, painted, past, story

ASSETS = assets()
VOID = {"meta", "br", "input"}
MARKET_LIMIT_BYTES = 1_500_000


class Page(HTMLParser):
    """Elements with their attributes, texts by element, and whether every element is closed in its order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def counted(self) -> Counter[str]:
        return Counter(tag for tag, _ in self.elements)

    def told(self, tag: str) -> list[str]:
        return ["".join(data for name, data in self.texts if name == tag)]


def page(report: Report) -> str:
    return report_html.document(report, ASSETS)


def embedded(html: str) -> Any:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(found)


TEXTS = st.text(
    alphabet=st.one_of(
        st.sampled_from("<>&\"'/`=-!]\u2028\u2029\u202e\x00\x1b\n"), st.characters(exclude_categories=["Cs"])
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=25, deadline=None)
@given(TEXTS)
def test_no_text_becomes_markup_or_ends_the_data(word: str) -> None:
    benign, html = Page(page(painted("w"))), page(painted(word))
    found = Page(html)
    assert found.open == []
    assert found.counted() == benign.counted()
    assert [set(a) for _, a in found.elements] == [set(a) for _, a in benign.elements]
    assert embedded(html) == report_data.document(painted(word))


@pytest.mark.parametrize(
    "word",
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "</title></style><img src=x onerror=alert(1)>",
        '" onload="alert(1)',
        "javascript:alert(1)",
        "]]>&lt;svg/onload=alert(1)>",
        "\u2028alert(1)\u2029",
    ],
)
def test_known_attacks_stand_as_text(word: str) -> None:
    html = page(painted(word))
    found = Page(html)
    assert found.counted() == Page(page(painted("w"))).counted()
    for tag, attributes in found.elements:
        assert not [name for name in attributes if name.startswith("on")], tag
        assert attributes.get("href", "#").startswith("#"), tag
        assert "src" not in attributes
    for one in html.split("<script")[1:]:
        assert one.count("</script") == 1
    assert "\u2028" not in re.findall(r'id="data">(.*?)</script>', html, re.DOTALL)[0]


def test_the_picture_takes_no_markup_from_texts() -> None:
    report = painted("</text><script>\"'&\x00")
    for job in report.jobs:
        root = ET.fromstring(report_card.card(report, job))
        names = {e.tag.split("}")[1] for e in root.iter()}
        assert names <= {"svg", "style", "rect", "circle", "path", "line", "text", "g"}


def test_the_same_report_gives_the_same_bytes() -> None:
    assert page(story()) == page(story())
    assert report_card.card(story(), story().jobs[0]) == report_card.card(story(), story().jobs[0])


def test_two_runs_over_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    first, second = (page(made(tmp_path, TRAIN)) for _ in range(2))
    assert first == second


def test_no_clock_is_in_it() -> None:
    """Its moment is that of the inputs."""
    html = page(story())
    assert "2026-11-30" not in html.replace("2026-11-30T12:00:00Z", "")
    assert f'as of <time datetime="{story().as_of}">' in html


def test_a_market_of_a_thousand_offers_stays_small() -> None:
    assert len(page(large(1000)).encode()) <= MARKET_LIMIT_BYTES / 3
    assert len(page(large(1000, jobs=5)).encode()) <= MARKET_LIMIT_BYTES


def test_every_offer_is_in_the_data_and_the_first_in_the_table() -> None:
    report = large(1000)
    html = page(report)
    market = embedded(html)["jobs"][0]["market"]
    assert {len(column) for column in market["columns"].values()} == {1000}
    assert market["columns"]["total"] == sorted(market["columns"]["total"])
    rows = re.findall(r'<tr id="j0-r(\d+)"', html)
    assert len(set(rows)) == len(rows) >= FIRST_ROWS
    edge = {row.position for row in report.jobs[0].rows if row.edge}
    assert {int(r) for r in rows} == {*range(FIRST_ROWS), *edge}


def test_amounts_in_columns_are_those_of_the_plan() -> None:
    for job, told in zip(story().jobs, report_data.document(story())["jobs"], strict=True):
        columns = told["market"]["columns"]
        for p in job.plan.ranked:
            at = next(r.position for r in job.rows if r.offer_id == p.offer_id)
            assert columns["total"][at] == p.total_usd * 10_000
            assert columns["finish"][at] == p.finish_hours * 10_000
            parts = [columns[name][at] for name in ("compute", "lost", "egress", "other")]
            known = [part for part in parts if part is not None]
            unknown = [t for t in p.terms if t.usd is None]
            assert (None in parts) == bool(unknown)
            if not unknown:
                assert sum(known) == columns["total"][at]


def test_the_edge_is_what_nothing_beats() -> None:
    for job in story().jobs:
        for row in job.rows:
            beaten = any(
                o.total_usd <= row.total_usd
                and o.finish_hours <= row.finish_hours
                and (o.total_usd, o.finish_hours) != (row.total_usd, row.finish_hours)
                for o in job.rows
            )
            if row.edge:
                assert not beaten
            elif not beaten:  # its equal stands before it
                assert any(
                    (o.total_usd, o.finish_hours) == (row.total_usd, row.finish_hours) and o.edge for o in job.rows
                )


def test_an_unknown_term_is_said_and_never_zero() -> None:
    batch = story().jobs[1]
    assert batch.plan.name == "batch"
    html = page(replace(story(), jobs=(batch,)))
    row = re.search(r'<tr id="j0-r0".*?</tr>', html, re.DOTALL)
    assert row
    assert "unknown" in row[0]
    assert "&gt;= $" in row[0] or ">= $" in row[0]


SECRETS = "arn:aws:iam::123456789012:role/x hf_abcdefghijklmnopqrstuvwxyzABCDEFGH 00000000-0000-4000-8000-0000000000ab "


def test_account_ids_and_secrets_are_cut_out_of_page_data_and_picture() -> None:
    report = painted(SECRETS)
    for text in (
        page(report),
        json.dumps(report_data.document(report)),
        *(report_card.card(report, j) for j in report.jobs),
    ):
        assert "123456789012" not in text
        assert "hf_abcdefgh" not in text
        assert "00000000-0000-4000" not in text
        assert "[account]" in text


def test_the_accounts_of_skyplan_yaml_do_not_get_through() -> None:
    html = page(story())
    for account in ("123456789012", "00000000-0000-0000-0000-00000000abcd"):
        assert account not in html


SECTIONS = ("why", "terms", "market", "whynot", "regions", "rights", "moves", "prices", "inputs")


def test_every_section_is_there_in_order() -> None:
    html = page(story())
    for key in ("j0", "j1"):
        places = [html.index(f'<section id="{key}-{name}"') for name in SECTIONS]
        assert places == sorted(places)


def test_what_is_not_known_is_said_in_its_section() -> None:
    html = page(replace(story(), jobs=story().jobs[1:]))
    moves = html[html.index('<section id="j0-moves"') : html.index('<section id="j0-prices"')]
    prices = html[html.index('<section id="j0-prices"') : html.index('<section id="j0-inputs"')]
    assert "No migration diff" in moves
    assert "the record was not asked" in prices


def test_moves_shade_the_time_in_which_the_job_stops() -> None:
    html = page(story())
    moves = html[html.index('<section id="j0-moves"') : html.index('<section id="j0-prices"')]
    assert moves.count('class="stop"') == 1
    assert "The job stops for 6.5 min" in moves


def test_prices_are_drawn_with_their_figures() -> None:
    html = page(story())
    prices = html[html.index('<section id="j0-prices"') : html.index('<section id="j0-inputs"')]
    assert prices.count("<polyline") == 2
    assert "$8.00" in prices
    assert "2026-08-26 to 2026-09-25" in prices


def test_a_job_without_a_place_says_why() -> None:
    html = page(nowhere())
    assert "No feasible placement." in html
    assert "SKY-REJ-208" in html
    assert '<svg class="scatter"' not in html
    assert embedded(html)["jobs"][0]["choice"] is None
    assert "No feasible placement" in report_card.card(nowhere(), nowhere().jobs[0])


def test_a_fleet_has_an_overview_with_waiting_kept_pools_and_budgets() -> None:
    html = page(replace(story(), fleet=fleet()))
    for word in (
        "Jobs that wait",
        "Jobs that stay",
        "Pools, in nodes",
        "Budgets",
        "the least possible",
        "solver vision",
        "no cap",
    ):
        assert word in html
    assert 'id="overview"' in html
    assert 'id="overview"' not in page(replace(story(), jobs=story().jobs[:1]))


def test_a_plan_file_shows_its_ranked_set_and_says_that_it_is_no_more(tmp_path: Path) -> None:
    from planner.app import report as reporting
    from planner.app.files import write_plans

    report = made(tmp_path, TRAIN)
    write_plans([job.plan for job in report.jobs], tmp_path / "plans")
    request = reporting.Request(
        paths=(tmp_path / "plans" / "train.plan.json",), project_file=tmp_path / "skyplan.yaml", offline=True
    )
    found = reporting.run(request, reporting.moment("2027-01-01"))
    (job,) = found.jobs
    assert [r.offer_id for r in job.rows] == [p.offer_id for p in job.plan.ranked]
    assert not job.whole
    assert "A plan file holds its ranked set alone" in page(found)
    assert found.as_of == report.as_of


def test_a_move_of_a_stranger_is_refused(tmp_path: Path) -> None:
    from planner.migration.document import to_document
    from planner.model.digest import pretty
    from planner.model.errors import InputError
    from tests.unit.migration.diffs import diff

    path = tmp_path / "other.diff.json"
    path.write_bytes(pretty(to_document(replace(diff(), job="other"))))
    with pytest.raises(InputError, match="none of the jobs reported"):
        made(tmp_path, TRAIN, migrations=(path,))
    path.write_bytes(pretty(to_document(diff())))
    assert made(tmp_path, TRAIN, migrations=(tmp_path,)).jobs[0].moves[0].job == "train"


def test_one_job_given_twice_is_refused(tmp_path: Path) -> None:
    from planner.app import report as reporting
    from planner.app.files import write_plans
    from planner.model.errors import InputError

    report = made(tmp_path, TRAIN)
    write_plans([job.plan for job in report.jobs], tmp_path / "plans")
    request = reporting.Request(
        paths=(tmp_path / "job0.yaml", tmp_path / "plans"), project_file=tmp_path / "skyplan.yaml", offline=True
    )
    with pytest.raises(InputError) as found:
        reporting.run(request, reporting.moment("2027-01-01"))
    assert found.value.diagnostics[0].code == "SKY-SPEC-112"


@pytest.mark.parametrize(
    "of",
    [story, nowhere, lambda: replace(story(), fleet=fleet()), lambda: large(30)],
    ids=["story", "nowhere", "fleet", "large"],
)
def test_the_data_has_the_published_form(of: Callable[[], Report]) -> None:
    report = of()
    schema = published()["report"]
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(report_data.document(report))


def test_headings_go_down_one_level_at_a_time_and_ids_are_used_once() -> None:
    for report in (story(), replace(story(), jobs=story().jobs[:1]), nowhere(), replace(story(), fleet=fleet())):
        found = Page(page(report))
        levels = [int(tag[1]) for tag, _ in found.elements if re.fullmatch(r"h[1-6]", tag)]
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(b <= a + 1 for a, b in pairwise(levels))
        ids = [a["id"] for _, a in found.elements if "id" in a]
        assert len(ids) == len(set(ids))
        named = [name for _, a in found.elements for name in a.get("aria-labelledby", "").split()]
        links = [a["href"][1:] for tag, a in found.elements if tag == "a"]
        assert {*named, *links} <= set(ids)


def test_tables_have_captions_and_scopes_and_drawings_have_words() -> None:
    found = Page(page(replace(story(), fleet=fleet())))
    counts = found.counted()
    assert counts["table"] == counts["caption"]
    assert all("scope" in a for tag, a in found.elements if tag == "th")
    drawings = [a for tag, a in found.elements if tag == "svg" and a.get("aria-hidden") != "true"]
    assert counts["desc"] >= len(drawings) > 5
    for one in ("header", "main", "footer", "nav"):
        assert counts[one] >= 1


def test_nothing_is_loaded_and_the_policy_forbids_it() -> None:
    html = page(story())
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert report_html.digest(ASSETS.css) in policy
    assert report_html.digest(ASSETS.script) in policy
    addresses = set(re.findall(r"https?://[^\s\"'<)]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\sstyle=", html), "the policy would drop it"
    assert not re.search(r"url\((?!#)", html)
    assert not re.search(r"@import|@font-face|fetch\(|XMLHttpRequest|WebSocket|importScripts|innerHTML|eval\(", html)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here")
def test_the_script_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "report.js"
    path.write_text(ASSETS.script)
    done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_scales_hold_their_values_and_turn_logarithmic_where_those_lie_far_apart() -> None:
    assert not scale([10.0, 12.0], 0, 100).log
    wide = scale([1.0, 5.0, 1000.0], 0, 100)
    assert wide.log
    places = [wide.at(v) for v in (1.0, 5.0, 1000.0)]
    assert places == sorted(places)
    assert places[0] >= 0
    assert places[-1] <= 100
    assert len(wide.marks(6)) >= 3
    one = scale([5.0], 0, 100)
    assert 0 < one.at(5.0) < 100
    assert not scale([0.0, 50.0], 0, 100).log, "a logarithm has no zero"


@given(st.lists(st.floats(min_value=1e-4, max_value=1e7), min_size=1, max_size=30))
def test_every_value_lies_inside_its_scale(values: list[float]) -> None:
    s = scale(values, 10, 900)
    for v in values:
        assert 10 - 1e-6 <= s.at(v) <= 900 + 1e-6
    for mark in s.marks(6):
        assert s.low <= mark <= s.high


def test_points_of_free_capacity_are_drawn_too() -> None:
    rows = tuple(replace(r, total_usd=Decimal("0.0000")) for r in story().jobs[0].rows[:3])
    assert "NaN" not in scatter(rows, key="j0", choice=0)


def test_the_picture_is_drawn() -> None:
    pytest.importorskip("resvg_py")
    from planner.render.png import png

    drawn = png(report_card.card(story(), story().jobs[0]))
    assert drawn.startswith(b"\x89PNG")
    assert len(drawn) > 50_000, "an empty picture is small"


def test_a_history_names_more_series_than_it_draws() -> None:
    job = story().jobs[0]
    many = replace(past(job.plan), found=past(job.plan).found * 5)
    html = page(replace(story(), jobs=(replace(job, past=many),)))
    assert "4 more series have prices" in html


def test_a_large_fleet_has_its_last_jobs_in_the_overview_alone() -> None:
    report = large(30, jobs=5)
    short = replace(report, jobs=tuple(replace(job, detailed=k < 3) for k, job in enumerate(report.jobs)))
    html = page(short)
    assert re.findall(r'<article class="panel" id="([^"]*)"', html) == ["overview", "j0", "j1", "j2"]
    assert [job["name"] for job in embedded(html)["jobs"]] == ["job-0", "job-1", "job-2"]
    assert "The first 3 have sections of their own" in html
    assert "job-4" in html
    links = {a["href"][1:] for tag, a in Page(html).elements if tag == "a"}
    assert links <= {a["id"] for _, a in Page(html).elements if "id" in a}


def test_so_many_jobs_have_sections_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from planner.app import report as reporting

    monkeypatch.setattr(reporting, "DETAILED", 1)
    found = made(tmp_path, TRAIN, TRAIN.replace("name: train", "name: train-2"))
    assert [job.detailed for job in found.jobs] == [True, False]
    assert [r.offer_id for r in found.jobs[1].rows] == [p.offer_id for p in found.jobs[1].plan.ranked]


@pytest.mark.parametrize("of", [story, lambda: large(300)], ids=["story", "large"])
def test_names_of_points_lie_inside_and_touch_none_of_each_other(of: Callable[[], Report]) -> None:
    for job in of().jobs:
        drawn = scatter(job.rows, key="j0", choice=0)
        boxes: list[tuple[float, float, float, float]] = []
        for x, y, anchor, told in re.findall(
            r'class="label" x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]*)<', drawn
        ):
            wide = len(told) * 6.3
            left = float(x) - (wide if anchor == "end" else 0)
            boxes.append((left, float(y) - 12, left + wide, float(y) + 4))
        assert boxes, "the cheapest is named"
        assert all(a >= 0 and c <= 960 and b >= 0 and d <= 430 for a, b, c, d in boxes)
        for k, one in enumerate(boxes):
            for other in boxes[k + 1 :]:
                assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
