"""What mkdocs does beside the pages that are written: it reads them as CommonMark, and makes the reference out of the code at each build.  Nothing made is kept.

Decides which pages are made and where they stand in the navigation.  What they say comes from the command line, the table of codes, the published schemas and the
catalog's files, so that a page cannot be older than the program.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import site_catalog
import site_codes
import site_commands
import site_environment
import site_fields
from mkdocs.structure.files import File
from site_links import linked
from site_lists import widened

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

COMMANDS = "reference/commands/index.md"
DECISIONS = "decisions/README.md"
RULES = "rules/README.md"
ASSETS = ("assets/iframe-worker.js", "assets/site.css")
HERE = Path(__file__).parent


def made() -> dict[str, str]:
    """Path under the docs folder -> text, of every page that is made."""
    found: dict[str, str] = {}
    for part in (site_commands, site_codes, site_fields, site_environment, site_catalog):
        found |= part.pages()
    return found


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Below the lists of commands, decisions and rules: one entry for each."""
    docs = Path(config.docs_dir)
    below = {
        COMMANDS: [f"reference/commands/{name}.md" for name in site_commands.COMMANDS],
        DECISIONS: [f"decisions/{p.name}" for p in sorted((docs / "decisions").glob("[0-9]*.md"))],
        RULES: [f"rules/{p.name}" for p in sorted((docs / "rules").glob("SKY-*.md"))],
    }
    config.nav = _filled(config.nav, below)
    return config


def _filled(nav: Any, below: dict[str, list[str]]) -> Any:
    if isinstance(nav, list):
        return [_filled(one, below) for one in nav]
    if isinstance(nav, dict):
        return {title: _filled(inner, below) for title, inner in nav.items()}
    if nav in below:
        return [nav, *below[nav]]
    return nav


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The made pages join the written ones."""
    for path, text in made().items():
        files.append(File.generated(config, path, content=text))
    for path in ASSETS:
        files.append(File.generated(config, path, content=(HERE / Path(path).name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - mkdocs' signature
    """Lists as mkdocs reads them, links to pages that are named; the list of decisions is the folder's."""
    if page.file.src_uri != DECISIONS:
        return linked(widened(markdown), page.file.src_uri)
    rows = []
    for path in sorted((Path(config.docs_dir) / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        rows.append(f"- [{title}]({path.name})")
    return "\n".join([markdown, "", *rows, ""])
