"""The documentation in a real browser, opened from disk as `make docs` leaves it: shown, searchable, in light and dark, and nothing asked of the network (R26)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from tests import site_bed
from tests.e2e.chromium import Chromium, browser
from tests.site_bed import Site

pytestmark = [
    pytest.mark.skipif(not find_spec("material"), reason="mkdocs-material is not installed: the group `docs`"),
    pytest.mark.xdist_group("docs"),
]
FOUND = "[...document.querySelectorAll('.md-search-result__item h1')].map(one => one.textContent)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    browser()  # skips before the site is built
    return site_bed.once(tmp_path_factory)


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(tmp_path_factory.mktemp("browser")) as made:
        made.ask("Emulation.setFocusEmulationEnabled", enabled=True)  # the search begins when its field gets the focus
        yield made


def _errors(tab: Chromium) -> list[str]:
    logged = [one["entry"]["text"] for one in tab.told("Log.entryAdded") if one["entry"]["level"] == "error"]
    thrown = [str(one["exceptionDetails"]) for one in tab.told("Runtime.exceptionThrown")]
    asked = [one["request"]["url"] for one in tab.told("Network.requestWillBeSent")]
    return logged + thrown + [url for url in asked if not url.startswith(("file:", "data:", "about:", "blob:"))]


@pytest.mark.parametrize(
    "page", ["index.html", "quick-start.html", "reference/commands/plan.html", "reference/codes.html"]
)
def test_a_page_is_shown_from_disk_without_an_error(site: Site, tab: Chromium, page: str) -> None:
    tab.events.clear()
    tab.visit((site.folder / page).as_uri())
    assert tab.value("document.querySelector('article h1').getBoundingClientRect().height") > 10
    assert _errors(tab) == []


def test_the_search_finds_a_code_and_a_command_from_disk(site: Site, tab: Chromium) -> None:
    tab.events.clear()
    tab.visit((site.folder / "index.html").as_uri())
    for words, wanted in (("SKY-REJ-206", "Codes"), ("catalog folder", "Add a GPU type")):
        tab.value(
            "(() => { const box = document.querySelector('.md-search__input'); box.focus();"
            f" box.value = {words!r}; box.dispatchEvent(new Event('keyup', {{bubbles: true}})); }})()"
        )
        until = time.monotonic() + 30
        found: list[str] = []
        while not any(wanted in one for one in found):
            assert time.monotonic() < until, found
            time.sleep(0.05)
            found = tab.value(FOUND)
    assert _errors(tab) == []


def test_light_and_dark_follow_the_reader(site: Site, tab: Chromium) -> None:
    backgrounds = {}
    for scheme in ("light", "dark"):
        tab.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        tab.visit((site.folder / "index.html").as_uri())
        backgrounds[scheme] = tab.value("getComputedStyle(document.body).backgroundColor")
    tab.ask("Emulation.setEmulatedMedia", features=[])
    assert backgrounds["light"] == "rgb(255, 255, 255)"
    assert backgrounds["dark"] != backgrounds["light"]
