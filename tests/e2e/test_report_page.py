"""R25, R26: the report in a real browser, from disk: nothing is asked of a network, every column sorts and filters, by mouse and by keyboard, in light, dark, on paper and without script."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.app.report import assets
from planner.model.report import Report
from planner.render import report_data, report_html
from planner.render.report_tables import gapped
from planner.render.text import duration, usd
from tests.e2e.chromium import Chromium
from tests.unit.render.report_story import fleet, large, painted, story

TEXT_COLUMNS = {1: "place", 2: "what", 3: "capacity", 4: "gpu"}
NUMBER_COLUMNS = {
    5: "per_hour",
    6: "total",
    7: "total",
    8: "finish",
    9: "compute",
    10: "lost",
    11: "egress",
    12: "other",
}
CHUNK = 100
HOSTILE = "</script><img src=x onerror=window.ran=1><b>&amp;\u2028'\""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def tab(chromium: Chromium) -> Iterator[Chromium]:
    """As at its start; whatever a test did, the page told no error and asked nothing of a network."""
    chromium.ask("Emulation.setEmulatedMedia", media="", features=[])
    chromium.ask("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
    chromium.ask("Emulation.setScriptExecutionDisabled", value=False)
    chromium.visit("about:blank")
    chromium.events.clear()
    yield chromium
    assert chromium.told("Log.entryAdded") == []
    assert chromium.told("Runtime.exceptionThrown") == []
    assert chromium.told("Runtime.consoleAPICalled") == []
    asked = {one["request"]["url"].partition(":")[0] for one in chromium.told("Network.requestWillBeSent")}
    assert asked <= {"file", "about"}


def put(folder: Path, report: Report, name: str = "report.html") -> str:
    path = folder / name
    path.write_text(report_html.document(report, assets()), encoding="utf-8")
    return path.as_uri()


def market(report: Report, job: int = 0) -> dict[str, Any]:
    return report_data.document(report)["jobs"][job]["market"]


def shown(tab: Chromium, key: str = "j0") -> list[int]:
    """Positions of the rows that stand in the table, in order."""
    return tab.value(f"[...document.querySelectorAll('#{key}-offers tbody tr')].map(r => Number(r.id.split('-r')[1]))")


def press(tab: Chromium, key: str, code: int, text: str = "") -> None:
    more = {"text": text} if text else {}
    for kind in ("keyDown", "keyUp"):
        tab.ask(
            "Input.dispatchKeyEvent",
            type=kind,
            key=key,
            code=key,
            windowsVirtualKeyCode=code,
            **(more if kind == "keyDown" else {}),
        )


def test_the_whole_of_it_is_one_file_that_asks_for_nothing(tab: Chromium, tmp_path: Path) -> None:
    url = put(tmp_path, story())
    tab.visit(url)
    asked = [one["request"]["url"] for one in tab.told("Network.requestWillBeSent")]
    assert asked == [url]
    assert tab.value("document.documentElement.classList.contains('js')"), "the policy lets our script in"
    assert tab.value("document.styleSheets[0].cssRules.length") > 50, "and our style sheet"


def test_what_is_foreign_neither_runs_nor_becomes_an_element(tab: Chromium, tmp_path: Path) -> None:
    tab.visit(put(tmp_path, painted(HOSTILE)))
    tab.value("[...document.querySelectorAll('button')].forEach(b => b.click())")
    assert tab.value("window.ran === undefined")
    assert tab.value("document.querySelectorAll('img, b:not(.tip b), iframe').length") == 0
    assert tab.value("document.querySelector('.head .lead').textContent.includes('<img src=x')")


def test_a_script_that_got_in_would_not_run(chromium: Chromium, tmp_path: Path) -> None:
    chromium.visit(put(tmp_path, story()))
    chromium.value(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
        "const i = document.createElement('div'); i.innerHTML = '<img src=x onerror=\"window.ran = 2\">'; document.body.append(i); 0"
    )
    assert chromium.value("window.ran === undefined")


def test_every_column_sorts_both_ways_numbers_as_numbers_and_unknown_last(tab: Chromium, tmp_path: Path) -> None:
    report = large(400)
    tab.visit(put(tmp_path, report))
    columns = market(report)["columns"]
    for column in range(13):
        name = {**TEXT_COLUMNS, **NUMBER_COLUMNS}.get(column)
        values = list(range(400)) if name is None else columns[name]
        head = f"document.querySelectorAll('#j0-offers thead th')[{column}]"
        for down in (False, True):
            if not (column == 0 and not down):  # it stands so at the start
                tab.value(f"{head}.querySelector('button').click()")
            known = [at for at in range(400) if values[at] is not None]
            known.sort(key=lambda at: values[at], reverse=down)
            expected = [*known, *(at for at in range(400) if values[at] is None)]
            assert shown(tab) == expected[:CHUNK], (column, down)
            assert tab.value(f"{head}.getAttribute('aria-sort')") == ("descending" if down else "ascending")
            others = "[...document.querySelectorAll('#j0-offers thead th[aria-sort]')].length"
            assert tab.value(others) == 1


def test_rows_of_the_script_say_what_those_of_the_file_say(tab: Chromium, tmp_path: Path) -> None:
    """Every figure of every row, formatted by both."""
    for report in (large(600), story()):
        tab.visit(put(tmp_path, report))
        for k, job in enumerate(report.jobs):
            tab.value(f"(t => t && t.click())(document.querySelector('#tab-j{k}'))")
            tab.value(f"(b => b.hidden || b.click())(document.querySelectorAll('#j{k}-market .more')[1])")
            wait_for(tab, f"document.querySelectorAll('#j{k}-offers tbody tr').length === {len(job.rows)}")
            told = tab.value(
                f"[...document.querySelectorAll('#j{k}-offers tbody tr')].map(r => [...r.cells].map(c => c.textContent))"
            )
            assert len(told) == len(job.rows)
            for row, cells in zip(job.rows, told, strict=True):
                expected = [
                    usd(row.usd_per_hour),
                    usd(row.total_usd, lower_bound=row.lower_bound),
                    gapped(row.total_usd - job.plan.choice.total_usd),
                    duration(row.finish_hours),
                    *(usd(group) for group in row.groups),
                ]
                assert cells[5:] == expected
                assert cells[1].startswith(row.place)


def test_what_the_file_shows_stays_as_it_was_when_the_script_takes_over(tab: Chromium, tmp_path: Path) -> None:
    url = put(tmp_path, story())
    rows = "[...document.querySelectorAll('#j1-offers tbody tr')].slice(0, 50).map(r => [r.id, ...[...r.cells].map(c => c.textContent)].join('|'))"
    tab.visit(url)
    tab.value("document.querySelector('#tab-j1').click()")
    enhanced = tab.value(rows)
    html = Path(url.removeprefix("file://")).read_text(encoding="utf-8")
    static = re.findall(r'<tr id="j1-r\d+".*?</tr>', html, re.DOTALL)[:50]
    texts = [
        "|".join(
            [re.search(r'id="([^"]*)"', r)[1], *(re.sub(r"<[^>]*>", "", c) for c in re.findall(r"<td.*?</td>", r))]
        )
        for r in static
    ]
    assert [t.replace("&gt;", ">") for t in texts] == enhanced


def test_filters_narrow_rows_and_points_together(tab: Chromium, tmp_path: Path) -> None:
    report = large(400)
    tab.visit(put(tmp_path, report))
    data = market(report)
    clouds = data["words"]["cloud"]
    tab.value(
        "(s => { s.value = String([...s.options].findIndex(o => o.textContent === 'gcp') - 1); s.dispatchEvent(new Event('change')); })"
        "(document.querySelectorAll('#j0-market .controls select')[0])"
    )
    kept = [at for at in range(400) if clouds[data["columns"]["cloud"][at]] == "gcp"]
    assert shown(tab) == kept[:CHUNK]
    assert tab.value("document.querySelector('#j0-market output').value") == f"{len(kept)} of 400"
    points = "[...document.querySelectorAll('#j0-market path.dots')].map(p => (p.getAttribute('d').match(/M/g) || []).length)"
    assert sum(tab.value(points)) == len(kept)
    tab.value("document.querySelector('#j0-market input[type=checkbox]').click()")
    assert shown(tab) == [at for at in kept if data["columns"]["edge"][at]]


def test_search_takes_words_in_any_order(tab: Chromium, tmp_path: Path) -> None:
    report = large(400)
    tab.visit(put(tmp_path, report))
    data = market(report)
    tab.value("document.querySelector('#j0-market input[type=search]').focus()")
    tab.ask("Input.insertText", text="H200 spot  REGION-1")
    tab.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    told = [
        " ".join(
            data["words"][name][data["columns"][name][at]] for name in ("place", "what", "capacity", "gpu")
        ).lower()
        for at in range(400)
    ]
    kept = [at for at in range(400) if all(word in told[at] for word in ("h200", "spot", "region-1"))]
    wait_for(tab, f"document.querySelector('#j0-market output').value === '{len(kept)} of 400'")
    assert shown(tab) == kept[:CHUNK]


def wait_for(tab: Chromium, condition: str) -> None:
    """Until it holds; the page draws at its next frame."""
    answer = tab.ask(
        "Runtime.evaluate",
        expression=f"new Promise((done, no) => {{ let n = 0; const look = () => ({condition}) ? done(true) : ++n > 600 ? no('never') : requestAnimationFrame(look); look(); }})",
        awaitPromise=True,
        returnByValue=True,
    )
    assert answer["result"].get("value") is True, answer


def test_small_tables_sort_and_filter_too(tab: Chromium, tmp_path: Path) -> None:
    tab.visit(put(tmp_path, story()))
    tab.value("document.querySelector('#tab-j0').click()")
    table = "document.querySelector('#j0-regions table.sortable')"
    tab.value(f"{table}.tHead.rows[0].cells[4].querySelector('button').click()")
    totals = tab.value(f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[4].dataset.v))")
    assert totals == sorted(totals)
    tab.value(f"{table}.tHead.rows[0].cells[4].querySelector('button').click()")
    assert tab.value(f"[...{table}.tBodies[0].rows].map(r => Number(r.cells[4].dataset.v))") == sorted(
        totals, reverse=True
    )
    tab.value(
        "(i => { i.value = 'azure'; i.dispatchEvent(new Event('input')); })(document.querySelector('#j0-regions input[type=search]'))"
    )
    wait_for(tab, f"[...{table}.tBodies[0].rows].some(r => r.hidden)")
    visible = tab.value(f"[...{table}.tBodies[0].rows].filter(r => !r.hidden).map(r => r.cells[0].textContent)")
    assert visible
    assert all(name.startswith("azure") for name in visible)


def test_the_keyboard_reaches_sorts_tabs_and_points(tab: Chromium, tmp_path: Path) -> None:
    tab.visit(put(tmp_path, story()))
    tab.value("document.querySelector('[role=tab]').focus()")
    press(tab, "ArrowRight", 39)
    assert tab.value("document.activeElement.getAttribute('aria-controls')") == "j0"
    assert tab.value("[...document.querySelectorAll('.panel')].filter(p => !p.hidden).map(p => p.id)") == ["j0"]
    press(tab, "End", 35)
    assert tab.value("[...document.querySelectorAll('.panel')].filter(p => !p.hidden).map(p => p.id)") == ["j1"]
    press(tab, "Home", 36)
    press(tab, "ArrowRight", 39)
    tab.value("document.querySelector('#j0-offers thead th:nth-child(9) button').focus()")
    press(tab, "Enter", 13, "\r")
    assert (
        tab.value("document.querySelector('#j0-offers thead th:nth-child(9)').getAttribute('aria-sort')") == "ascending"
    )
    assert tab.value("getComputedStyle(document.activeElement).outlineStyle") == "solid", "focus is seen"
    tab.value("document.querySelector('#j0-market a.point').focus()")
    first = tab.value("document.querySelector('#j0-market .tip b').textContent")
    press(tab, "ArrowLeft", 37)
    assert tab.value("document.querySelector('#j0-market .tip').hidden") is False
    assert (
        tab.value("document.querySelector('#j0-market .tip b').textContent") != first
        or len(tab.value("[...document.querySelectorAll('#j0-market a.point')].map(a => 1)")) == 1
    )
    press(tab, "Enter", 13, "\r")
    found = tab.value("document.querySelector('#j0-offers tr.found').id")
    assert tab.value("document.activeElement.id") == found


def test_a_point_tells_what_it_is_and_leads_to_its_row(tab: Chromium, tmp_path: Path) -> None:
    report = large(400)
    tab.visit(put(tmp_path, report))
    tab.value("document.querySelector('#j0-market svg.scatter').scrollIntoView({block: 'center', behavior: 'instant'})")
    x, y = tab.value(
        "(p => { const [, a, b] = p.getAttribute('d').match(/M([\\d.]+) ([\\d.]+)h0$/); const s = p.ownerSVGElement, m = s.getScreenCTM();"
        " return [a * m.a + m.e, b * m.d + m.f]; })(document.querySelector('#j0-market path.dots.nebius'))"
    )
    tab.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    told = tab.value("document.querySelector('#j0-market .tip').textContent")
    position = int(re.search(r"number ([\d,]+) by total", told)[1].replace(",", "")) - 1
    row = report.jobs[0].rows[position]
    assert usd(row.total_usd) in told
    assert row.place in told
    for kind in ("mousePressed", "mouseReleased"):
        tab.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    assert tab.value("document.querySelector('#j0-offers tr.found').id") == f"j0-r{position}"
    wait_for(
        tab, "(b => b.top >= 0 && b.bottom <= innerHeight)(document.querySelector('tr.found').getBoundingClientRect())"
    )


def test_links_of_the_overview_open_the_job(tab: Chromium, tmp_path: Path) -> None:
    tab.visit(put(tmp_path, replace(story(), fleet=fleet())))
    assert tab.value("[...document.querySelectorAll('.panel')].filter(p => !p.hidden).map(p => p.id)") == ["overview"]
    tab.value("document.querySelector('#overview a[href=\"#j1\"]').click()")
    wait_for(tab, "!document.querySelector('#j1').hidden")
    assert tab.value("document.querySelector('[role=tab][aria-selected=true]').textContent") == "batch"


COLOURS = """
(() => {
  const solid = (c) => c !== 'rgba(0, 0, 0, 0)' && c !== 'transparent';
  const behind = (e) => { for (let at = e; at; at = at.parentElement) { const c = getComputedStyle(at).backgroundColor; if (solid(c)) return c; } return 'rgb(255, 255, 255)'; };
  const out = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || ['SCRIPT', 'STYLE', 'title', 'desc', 'OPTION'].includes(e.tagName) || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), svg = e.ownerSVGElement;
    const box = svg && e.closest('g') && e.closest('g').querySelector('rect.box');
    const back = box ? getComputedStyle(box).fill : behind(svg ? svg.parentElement : e);
    const fore = svg ? style.fill : style.color;
    out.set(fore + ' on ' + back, [fore, back, (e.className.baseVal ?? e.className) + ' ' + e.tagName + ' ' + walker.currentNode.data.trim().slice(0, 30)]);
  }
  return [...out.values()];
})()
"""
MARKS = """
['path.dots', 'circle.mark', 'path.pareto', 'rect[class^=t-]', '.plot polyline', 'circle.chosen', 'rect.halt', 'svg.graph path.edge'].flatMap(s => [...document.querySelectorAll(s)]).map(e => {
  const style = getComputedStyle(e), line = style.fill === 'none';
  return [line ? style.stroke : style.fill, getComputedStyle(e.closest('section')).backgroundColor, Number(style.opacity), e.getAttribute('class')];
})
"""


@pytest.mark.parametrize("switched", [False, True])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_is_readable_in_light_and_dark(tab: Chromium, tmp_path: Path, scheme: str, switched: bool) -> None:
    """WCAG 2 AA: 4.5 for texts, 3 for what is drawn; by the system's scheme, and by the switch against it."""
    other = {"light": "dark", "dark": "light"}[scheme]
    tab.ask(
        "Emulation.setEmulatedMedia",
        features=[{"name": "prefers-color-scheme", "value": other if switched else scheme}],
    )
    tab.visit(put(tmp_path, replace(story(), fleet=fleet())))
    if switched:
        tab.value(
            f"(b => {{ while (document.documentElement.dataset.theme !== '{scheme}') b.click(); }})(document.querySelector('.theme'))"
        )
        assert scheme in tab.value("document.querySelector('.theme').textContent")
    tab.value("document.querySelectorAll('.panel').forEach(p => { p.hidden = false; })")
    seen = tab.value(COLOURS)
    assert len(seen) > 8
    low = [(what, fore, back) for fore, back, what in seen if contrast(fore, back) < 4.5]
    assert low == []
    marks = tab.value(MARKS)
    assert len(marks) > 20
    assert [one for one in marks if contrast(over(one[0], one[1], one[2]), one[1]) < 3] == []
    back = tab.value("getComputedStyle(document.body).backgroundColor")
    assert (luminance(back) > 0.5) == (scheme == "light")


def test_without_script_everything_is_there_and_laid_out(tab: Chromium, tmp_path: Path) -> None:
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    tab.visit(put(tmp_path, replace(story(), fleet=fleet())))
    root = tab.ask("DOM.getDocument", depth=0)["root"]["nodeId"]
    found = tab.ask("DOM.querySelectorAll", nodeId=root, selector="#j1-offers tbody tr")["nodeIds"]
    assert len(found) >= 50
    for selector in (
        "#overview table", "#j0", "#j1", "#j1-r0", "svg.scatter path.dots", "svg.scatter path.pareto", "svg.bars rect", "svg.graph rect.box",
        "svg.timeline rect.stop", "svg.plot polyline", "#j1-regions table", "#j1-inputs tbody tr",
    ):  # fmt: skip
        node = tab.ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        assert node, selector
        assert tab.ask("DOM.getBoxModel", nodeId=node)["model"]["width"] > 0, selector
    assert tab.ask("DOM.querySelectorAll", nodeId=root, selector="button, input, select")["nodeIds"] == [], (
        "no dead controls"
    )


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_small_screen_scrolls_tables_and_drawings_and_not_the_page(tab: Chromium, tmp_path: Path, width: int) -> None:
    tab.ask("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=True)
    tab.visit(put(tmp_path, replace(story(), fleet=fleet("a-team-with-quite-a-long-name"))))
    for tab_ in range(3):
        tab.value(f"document.querySelectorAll('[role=tab]')[{tab_}].click()")
        assert tab.value("document.documentElement.scrollWidth") <= width
        stops = "[...document.querySelectorAll('.panel:not([hidden]) .scroll')].filter(e => (e.tabIndex === 0) !== (e.scrollWidth > e.clientWidth)).length"
        assert tab.value(stops) == 0, "what scrolls, and nothing else, is a stop of the keyboard"


def test_on_paper_all_jobs_are_open_without_controls_on_white(tab: Chromium, tmp_path: Path) -> None:
    tab.visit(put(tmp_path, story()))
    tab.ask("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert tab.value("[...document.querySelectorAll('.panel')].every(p => getComputedStyle(p).display !== 'none')")
    assert tab.value(
        "[...document.querySelectorAll('nav, .controls, button.more, button.theme')].every(e => getComputedStyle(e).display === 'none')"
    )
    assert tab.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    tab.ask("Emulation.setDeviceMetricsOverride", width=960, height=700, deviceScaleFactor=1, mobile=True)
    assert tab.value("document.documentElement.scrollWidth") <= 960, "a Letter page on its side, less its margins"
    pdf = base64.b64decode(tab.ask("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
    (tmp_path / "report.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) >= 4, "two jobs and the overview, each from a page of its own"


def test_who_wants_no_motion_gets_none(tab: Chromium, tmp_path: Path) -> None:
    url = put(tmp_path, story())
    for wish, expected in (("reduce", "auto"), ("no-preference", "smooth")):
        tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": wish}])
        tab.visit(url)
        assert tab.value("getComputedStyle(document.documentElement).scrollBehavior") == expected


def test_a_reader_of_the_accessibility_tree_finds_landmarks_tables_and_names(tab: Chromium, tmp_path: Path) -> None:
    tab.visit(put(tmp_path, story()))
    tab.value("document.querySelectorAll('[role=tab]')[1].click()")
    tab.ask("Accessibility.enable")
    nodes = [n for n in tab.ask("Accessibility.getFullAXTree")["nodes"] if not n.get("ignored")]
    tab.ask("Accessibility.disable")
    roles = {n["role"]["value"] for n in nodes}
    assert {
        "banner",
        "main",
        "contentinfo",
        "navigation",
        "tablist",
        "tab",
        "tabpanel",
        "table",
        "columnheader",
        "searchbox",
    } <= roles
    unnamed = [
        (n["role"]["value"], n.get("name", {}).get("value"))
        for n in nodes
        if n["role"]["value"]
        in {"button", "link", "searchbox", "combobox", "checkbox", "tab", "table", "region", "image"}
        and not n.get("name", {}).get("value")
    ]
    assert unnamed == []


def test_pictures_of_it_for_people_to_look_at(tab: Chromium, tmp_path: Path) -> None:
    url = put(tmp_path, replace(story(), fleet=fleet()))
    for scheme in ("light", "dark"):
        tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for panel in ("overview", "j0"):
            tab.visit("about:blank")
            tab.visit(f"{url}#{panel}")
            png = tab.picture()
            (tmp_path / f"{panel}-{scheme}.png").write_bytes(png)
            assert len(png) > 30_000, "an empty page is small"
    assert json.loads(tab.value("document.getElementById('data').textContent"))["format_version"] == "1.0"


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def over(colour: str, back: str, opacity: float) -> str:
    """What is seen of a colour that lets its ground through."""
    pairs = zip(*(map(float, re.findall(r"[\d.]+", c)[:3]) for c in (colour, back)), strict=True)
    return f"rgb({', '.join(str(a * opacity + b * (1 - opacity)) for a, b in pairs)})"


def luminance(colour: str) -> float:
    parts = [float(p) / 255 for p in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
