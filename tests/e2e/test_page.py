"""The page in a real browser: drawn, readable in light and dark and without JavaScript, and nothing that a node told runs in it."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn

from tests.e2e.chromium import Chromium
from tests.unit.server import server_bed as sb
from tests.unit.server.page_story import EVIL, story


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over the story, on a free port of the loopback."""
    with sb.bed(sb.sqlite(tmp_path_factory.mktemp("record"))) as bed, socket.socket() as listening:
        story(bed)
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(bed.app, lifespan="off", ws="none", log_config=None, access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        until = time.monotonic() + 30
        while not server.started:
            assert thread.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("browser")) as made:
        yield made


@pytest.fixture
def tab(chromium: Chromium) -> Chromium:
    """As at its start."""
    chromium.events.clear()
    chromium.ask("Emulation.setEmulatedMedia", features=[])
    chromium.ask("Emulation.clearDeviceMetricsOverride")
    chromium.ask("Emulation.setScriptExecutionDisabled", value=False)
    return chromium


BOXES = """
[...document.querySelectorAll('svg.plot')].map(svg => ({
  name: svg.querySelector('text.name').textContent,
  size: [svg.getBoundingClientRect().width, svg.getBoundingClientRect().height],
  lines: [...svg.querySelectorAll('polyline')].map(l => [l.getBBox().width, l.getBBox().height, getComputedStyle(l).stroke, l.points.length]),
  texts: [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBBox().x, t.getBBox().x + t.getBBox().width, t.getBBox().y]),
}))
"""


def test_plots_are_drawn_with_axes_and_a_line_for_each_run(site: str, tab: Chromium) -> None:
    tab.visit(f"{site}/jobs/train")
    step, rate, loss = tab.value(BOXES)
    assert [step["name"], rate["name"], loss["name"]] == [
        "Step (steps)",
        "Rate (steps/s)",
        "Loss (as the job tells it)",
    ]
    for plot in (step, rate, loss):
        width, height = plot["size"]
        assert width > 300
        assert height > 90
        assert all(left >= 0 and right <= 720 for _, left, right, _ in plot["texts"]), "no word is cut off"
        assert any("time (UTC)" in text for text, *_ in plot["texts"])
    first, second = step["lines"]
    assert first[0] > 100
    assert first[1] > 100
    assert first[2] != second[2], "two runs are told apart"
    assert first[3] == 10
    assert first[2].startswith("rgb")


def test_the_page_is_one_document_and_one_style_sheet(site: str, tab: Chromium) -> None:
    for path in ("/", "/jobs/train", "/jobs/train/logs?generation=1"):
        tab.events.clear()
        tab.visit(site + path)
        asked = {one["request"]["url"].removeprefix(site) for one in tab.told("Network.requestWillBeSent")}
        assert {path} <= asked <= {path, "/page.css", "/favicon.ico"}
        wrong = [
            one["entry"]["text"] for one in tab.told("Log.entryAdded") if "favicon" not in one["entry"].get("url", "")
        ]
        assert wrong == []
        assert tab.value("getComputedStyle(document.querySelector('table, pre')).borderCollapse") in {
            "collapse",
            "separate",
        }
        assert tab.value("document.styleSheets[0].cssRules.length") > 20, "the policy lets our style sheet in"


def test_nothing_that_a_node_told_runs(site: str, tab: Chromium) -> None:
    for path in ("/jobs/train", "/jobs/train/logs?generation=1"):
        tab.visit(site + path)
        assert EVIL in tab.value("document.body.innerText"), "it is shown as text"
        assert tab.value("document.querySelectorAll('script, img, iframe, object').length") == 0
    assert tab.told("Page.javascriptDialogOpening") == []


def test_what_got_through_could_not_run_either(site: str, tab: Chromium) -> None:
    tab.visit(f"{site}/jobs/train")
    tab.value(
        "const s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s);"
        "const i = document.createElement('div'); i.innerHTML = '<img src=x onerror=\"window.ran = 2\">'; document.body.append(i); 0"
    )
    assert tab.value("window.ran === undefined")
    assert any("Content Security Policy" in one["entry"]["text"] for one in tab.told("Log.entryAdded"))


def test_without_javascript_everything_is_there(site: str, tab: Chromium) -> None:
    tab.ask("Emulation.setScriptExecutionDisabled", value=True)
    tab.visit(f"{site}/jobs/train")
    root = tab.ask("DOM.getDocument", depth=0)["root"]["nodeId"]
    for wanted in ("#nodes tbody tr", "#costs tfoot", "#placements tbody tr", "#moves tbody tr", "svg polyline"):
        assert tab.ask("DOM.querySelectorAll", nodeId=root, selector=wanted)["nodeIds"], wanted
    line = tab.ask("DOM.querySelector", nodeId=root, selector="svg polyline")["nodeId"]
    assert tab.ask("DOM.getBoxModel", nodeId=line)["model"]["width"] > 100, "laid out, not only there"


def test_light_and_dark_are_both_readable(site: str, tab: Chromium) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.visit(f"{site}/jobs/train")
        style = "getComputedStyle(document.querySelector('{}')).{}"
        back = tab.value(style.format("body", "backgroundColor"))
        box = tab.value(style.format(".plots figure", "backgroundColor"))
        for what, behind in (("body", back), ("td", back), ("th", back), ("a", back), ("svg text.tick", box)):
            colour = tab.value(style.format(what, "fill" if what.startswith("svg") else "color"))
            assert contrast(colour, behind) >= 4.5, (scheme, what, colour, behind)
        for state in ("running", "ended", "lost"):
            found = tab.value(f"(e => e ? getComputedStyle(e).color : '')(document.querySelector('td.state.{state}'))")
            assert not found or contrast(found, back) >= 4.5, (scheme, state)
        assert contrast(tab.value(style.format("svg polyline", "stroke")), box) >= 3, "lines, as WCAG 1.4.11 has it"
        seen[scheme] = back
    assert seen["light"] != seen["dark"]


def test_a_small_screen_scrolls_tables_and_not_the_page(site: str, tab: Chromium) -> None:
    tab.ask("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1, mobile=True)
    for path in ("/", "/jobs/train"):
        tab.visit(site + path)
        assert tab.value("document.documentElement.scrollWidth") <= 390, path


def test_a_person_walks_from_the_list_to_a_job_and_its_output(site: str, tab: Chromium) -> None:
    tab.visit(f"{site}/")
    tab.value("document.querySelector('a[href=\"/jobs/train\"]').click()")
    tab.wait("Page.loadEventFired")
    assert tab.value("document.title") == "train · acme"
    assert tab.value("document.querySelector('#step').textContent") == "870"
    assert tab.value("document.querySelector('#cost').textContent") == "$93.89"
    tab.value("[...document.querySelectorAll('a')].find(a => a.textContent.includes('printed')).click()")
    tab.wait("Page.loadEventFired")
    assert "output of train-g2" in tab.value("document.body.innerText")


def test_it_is_shown_anew_by_itself_where_asked_for(site: str, tab: Chromium) -> None:
    tab.visit(f"{site}/?refresh=1")
    tab.wait("Page.loadEventFired")  # the browser's own reload


def test_a_picture_of_it_has_colours_in_it(site: str, tab: Chromium, tmp_path: Path) -> None:
    tab.ask("Emulation.setDeviceMetricsOverride", width=1200, height=900, deviceScaleFactor=1, mobile=False)
    tab.visit(f"{site}/jobs/train")
    png = tab.picture()
    (tmp_path / "page.png").write_bytes(png)
    assert png.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", png[16:24])
    assert width >= 1180, "less a scroll bar"
    assert height >= 900
    assert len(png) > 30_000, "an empty page is small"


def contrast(one: str, other: str) -> float:
    """WCAG 2: of two colours `rgb(r, g, b)`."""

    def luminance(colour: str) -> float:
        parts = [float(p) / 255 for p in colour[colour.index("(") + 1 : -1].split(",")[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return sum(w * p for w, p in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
