"""The documentation as a site: it builds without a warning, every link and anchor leads somewhere, nothing is fetched from elsewhere, and the reference in it is the program's (R26)."""

from __future__ import annotations

import getpass
import html
import json
import re
import socket
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

import click
import pytest

from catalog.load import load_words
from planner.app.schemas import SUFFIX, published
from planner.cli.entry import COMMANDS, main
from planner.model.codes import CODES
from tests import pages, site_bed
from tests.site_bed import Html, Site

pytestmark = [
    pytest.mark.skipif(not find_spec("material"), reason="mkdocs-material is not installed: the group `docs`"),
    pytest.mark.xdist_group("docs"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return site_bed.once(tmp_path_factory)


@pytest.fixture(scope="module")
def built(site: Site) -> dict[str, Html]:
    return site.pages()


def test_it_builds_without_a_word_of_warning(site: Site) -> None:
    assert site.code == 0, site.output
    told = [line for line in site.output.splitlines() if line.strip() and not line.startswith("INFO ")]
    assert told == []


def test_every_page_is_built(site: Site, built: dict[str, Html]) -> None:
    written = {pages.name_of(p).replace("README.md", "index.md").removesuffix(".md") + ".html" for p in pages.pages()}
    assert written <= built.keys()


def test_every_internal_link_and_anchor_leads_somewhere(site: Site, built: dict[str, Html]) -> None:
    dead = []
    for name, page in built.items():
        for link in page.links:
            to = urlsplit(link)
            if to.scheme or to.netloc:
                continue
            # 404.html may be shown at any address: its links begin at the site's root
            at = to.path.lstrip("/") if to.path.startswith("/") and name == "404.html" else to.path
            target = (site.folder / name).parent / unquote(at) if at else site.folder / name
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                dead.append(f"{name}: {link}")
            elif to.fragment and target.suffix == ".html":
                read = built[target.resolve().relative_to(site.folder.resolve()).as_posix()]
                if unquote(to.fragment) not in read.anchors:
                    dead.append(f"{name}: {link} (no such anchor)")
    assert dead == []


def test_no_markdown_is_left_in_what_is_read(site: Site, built: dict[str, Html]) -> None:
    """A list, a fence, a table or a link that mkdocs did not take for one."""
    left = re.compile(r"^\s*(?:[-*+] \S|1\. \S|\|.*\|\s*$|```)|\*\*|\]\(", re.MULTILINE)
    found = {}
    for name in built:
        article = re.search(r"<article.*?</article>", site.text(name), re.DOTALL)
        told = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "`", article[0] if article else "", flags=re.DOTALL)
        if at := left.search(html.unescape(re.sub(r"<[^>]+>", "", told))):
            found[name] = at[0]
    assert found == {}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Text:\n- a\n- b", "Text:\n\n- a\n- b"),
        ("1. a\n\n   ```sh\n   x\n   ```\n2. b", "1. a\n\n    ```sh\n    x\n    ```\n\n2. b"),
        ("- a\n  - b\n    more\n- c", "- a\n    - b\n        more\n- c"),
        ("- a\n\n  more\n- b", "- a\n\n    more\n\n- b"),
        ("- a\n  goes on\n\nText", "- a\n    goes on\n\nText"),
        ("in the year\n1984. It was", "in the year\n1984. It was"),
        ("```\n- not\n  a list\n```", "```\n- not\n  a list\n```"),
        ("    - code", "    - code"),
        ("- a\n\n# Head\n- b", "- a\n\n# Head\n- b"),
    ],
)
def test_lists_are_read_as_a_forge_reads_them(monkeypatch: pytest.MonkeyPatch, written: str, read: str) -> None:
    monkeypatch.syspath_prepend(str(pages.DOCS / "site"))
    from site_lists import widened

    assert widened(written) == read + "\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("see docs/iam.md.", "see [docs/iam.md](../iam.md)."),
        ("`docs/rules/README.md`, too", "[`docs/rules/README.md`](../rules/README.md), too"),
        ("[docs/iam.md](../iam.md)", "[docs/iam.md](../iam.md)"),
        ("`cat docs/iam.md`", "`cat docs/iam.md`"),
        ("```\ndocs/iam.md\n```", "```\ndocs/iam.md\n```"),
    ],
)
def test_a_page_that_is_named_is_linked(monkeypatch: pytest.MonkeyPatch, written: str, read: str) -> None:
    monkeypatch.syspath_prepend(str(pages.DOCS / "site"))
    from site_links import linked

    assert linked(written, "tasks/index.md") == read + "\n"


def test_a_page_has_the_items_and_tables_that_commonmark_finds_in_it(site: Site) -> None:
    """Counted by another reader of Markdown, that of the terminal's library."""
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    for path in pages.pages():
        name = pages.name_of(path)
        if name == "decisions/README.md":  # the list in it is made
            continue
        article = re.search(
            r"<article.*?</article>", site.text(name.replace("README", "index")[:-3] + ".html"), re.DOTALL
        )
        assert article
        # the foot of a page has no list
        found = [len(re.findall(rf"<{tag}[ >]", article[0])) for tag in ("li", "table", "h2", "h3")]
        read = [token for token in reader.parse(path.read_text("utf-8")) if token.nesting == 1]
        wanted = [
            sum(token.type == "list_item_open" for token in read),
            sum(token.type == "table_open" for token in read),
            *(sum(token.tag == tag for token in read) for tag in ("h2", "h3")),
        ]
        assert found == wanted, name


def test_nothing_is_fetched_from_elsewhere(site: Site, built: dict[str, Html]) -> None:
    fetched = {f"{name}: {one}" for name, page in built.items() for one in page.fetched if urlsplit(one).netloc}
    assert fetched == set()
    styles = "".join(p.read_text(encoding="utf-8") for p in site.folder.rglob("*.css"))
    assert not re.search(r"(?:url\(|@import\s*)[\"']?(?:https?:)?//", styles)
    assert (site.folder / "search" / "search_index.js").is_file(), "search from disk needs its index as a script"


def test_nothing_of_the_building_machine_is_in_it(site: Site) -> None:
    # short names of hosts and people are words of any text
    named = {w for w in (socket.gethostname(), getpass.getuser()) if len(w) > 5 and w != "localhost"}
    words = {str(pages.ROOT), str(Path.home()), *named} - {"/", "/root"}
    for path in sorted(site.folder.rglob("*")):
        if path.suffix in {".html", ".json", ".xml"}:
            text = path.read_text(encoding="utf-8")
            assert not [word for word in words if word in text], path.name


def _told(site: Site, page: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", site.text(page)))


def test_every_command_and_option_has_its_place(site: Site) -> None:
    missing = []
    for name in COMMANDS:
        told = _told(site, f"reference/commands/{name}.html")
        command = main.get_command(click.Context(main), name)
        assert command is not None
        below = list(command.commands.values()) if isinstance(command, click.Group) else []
        missing += [
            f"{name} {opt}"
            for one in (command, *below)
            for param in one.params
            if isinstance(param, click.Option) and not param.hidden
            for opt in param.opts
            if opt not in told
        ]
    assert missing == []


def test_every_code_has_an_anchor_and_its_meaning(site: Site, built: dict[str, Html]) -> None:
    told = _told(site, "reference/codes.html").casefold()
    anchors = built["reference/codes.html"].anchors
    assert {c.lower() for c in CODES} <= anchors
    missing = [c for c, row in CODES.items() if row.meaning.replace("`", "").casefold() not in told]
    assert missing == []


def test_the_schemas_are_served_as_the_program_prints_them(site: Site) -> None:
    served = {p.name.removesuffix(SUFFIX): json.loads(p.read_text()) for p in (site.folder / "schemas").iterdir()}
    assert served == published()


@pytest.mark.parametrize(("page", "schema"), [("job", "job"), ("project", "project"), ("server", "server")])
def test_every_field_of_a_file_stands_in_its_page(site: Site, page: str, schema: str) -> None:
    told = _told(site, f"reference/{page}.html")
    fields = set(published()[schema]["properties"])
    assert {f for f in fields if f not in told} == set()
    assert "resources.accelerators" in told or schema != "job"


def test_every_gpu_and_instance_type_is_listed(site: Site) -> None:
    words = load_words()
    models = _told(site, "reference/gpus.html")
    assert [gpu for gpu in words.gpus if gpu not in models] == []
    types = _told(site, "reference/instance-types.html")
    assert "p5.48xlarge" in types
    assert [t for t in words.instance_types if t not in types] == []
