"""Makes links of the pages that a page names by their paths, `docs/iam.md`, as our texts do.  Decides which words are such a name; code blocks keep theirs."""

from __future__ import annotations

import posixpath
import re

_NAMED = re.compile(r"(?<![\w/\[(`.-])(?P<tick>`?)docs/(?P<path>[A-Za-z0-9/-]+\.md)(?P=tick)(?![\w`\])])")
_FENCE = re.compile(r"^ *(?P<fence>`{3,}|~{3,})")


def linked(markdown: str, page: str) -> str:
    """The page with links in it; `page` is its own path below the docs folder."""
    folder = posixpath.dirname(page) or "."
    out: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        opened = _FENCE.match(line)
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opened:
            fence = opened["fence"]
        if fence or opened or line.startswith("#"):
            out.append(line)
        else:
            out.append(_NAMED.sub(lambda m: f"[{m[0]}]({posixpath.relpath(m['path'], folder)})", line))
    return "\n".join(out) + "\n"
