"""The documentation built once a session by the real mkdocs, and its pages read back: what links where, which anchors there are, what would be fetched."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.pages import ROOT


@dataclass
class Html(HTMLParser):
    """A built page: addresses of links, of what is fetched to show it, and the anchors."""

    links: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in {"script", "img", "iframe", "source", "video", "audio"} and found.get("src"):
            self.fetched.append(found["src"])
        if tag == "link" and found.get("rel") in {"stylesheet", "icon", "preconnect", "preload", "modulepreload"}:
            self.fetched.append(found.get("href", ""))
        self.anchors |= {found[name] for name in ("id", "name") if found.get(name)}


@dataclass(frozen=True)
class Site:
    folder: Path
    output: str
    code: int

    def pages(self) -> dict[str, Html]:
        """Path below the site -> what is in it."""
        found = {}
        for path in sorted(self.folder.rglob("*.html")):
            read = Html()
            read.feed(path.read_text(encoding="utf-8"))
            found[path.relative_to(self.folder).as_posix()] = read
        return found

    def text(self, page: str) -> str:
        return (self.folder / page).read_text(encoding="utf-8")


_BUILT: list[Site] = []


def once(factory: pytest.TempPathFactory) -> Site:
    """The site, built once a session and worker: tests that ask for it are of one xdist group."""
    if not _BUILT:
        _BUILT.append(build(factory.mktemp("site") / "site"))
    return _BUILT[0]


def build(folder: Path) -> Site:
    """`mkdocs build --strict` as `make docs` runs it, the theme's notice of its own end apart: mkdocs.yml tells of that."""
    environment = {n: v for n, v in os.environ.items() if not n.startswith("SKYPLAN_")}
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**environment, "NO_MKDOCS_2_WARNING": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Site(folder, done.stdout, done.returncode)
