"""What all comments in pull requests share: their hidden first line, how long one may be, how it is cut, and how a stranger's text stands in Markdown
without opening a tag, a link, a mention or a cell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from planner.render.audit_words import printable

LONGEST: Final = 60_000
"""Characters: GitHub refuses a comment of more than 65,536 (its API's own message, 2026-09)."""
KINDS: Final = ("diff", "audit", "replan", "comment")
"""Which command's text it is; `comment`: none of ours.  Two kinds never overwrite each other, whatever their tags."""
OUTDATED: Final = "outdated"
SHORTENED: Final = "_Shortened, as a comment may be no longer: the command's JSON has the rest._"
#: a space of no width keeps a name from being mentioned or linked: GitHub looks for `@name`, `#1` and addresses in what is rendered
_BREAK: Final = "&#8203;"
_TAGS: Final = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": f"@{_BREAK}", "#": f"#{_BREAK}"}
_HTML: Final = str.maketrans(_TAGS)
_SPECIAL: Final = str.maketrans({c: f"\\{c}" for c in "\\`*_[]|~"} | _TAGS)
_ADDRESS: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
_LINE: Final = re.compile(
    rf'<!-- skyplan-(?P<kind>{"|".join(KINDS)}) tag="(?P<tag>[A-Za-z0-9][A-Za-z0-9._/-]{{0,99}})"'
    rf' valid-at="(?P<at>[0-9TZ:-]*)"(?P<out> {OUTDATED})? -->'
)
_FENCE: Final = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})")
_FOLD: Final = re.compile(r"<(?P<end>/?)details\b[^>]*>", re.IGNORECASE)
#: how each of our texts says that there is nothing to do
_QUIET: Final = {
    "diff": re.compile(r"\*\*skyplan: no change\.\*\*[^\n]*"),
    "audit": re.compile(
        r"## skyplan audit\n\n\*\*Nothing that fails\*\*: no findings; [^\n]*(?:\n\n### Nothing is granted beyond [^\n]*)?"
    ),
    "replan": re.compile(r"## skyplan replan\n\n\*\*0 to move, \d+ stay\.\*\*(?:\n.*)?", re.DOTALL),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hidden:
    """A comment's hidden first line.

    kind      one of KINDS
    tag       what it is found by, beside its kind; matched whole, so that `prod` is not found in `non-prod`
    valid_at  ISO, UTC, to the second; "" is older than anything
    outdated  a later comment stands in its place
    """

    kind: str
    tag: str
    valid_at: str = ""
    outdated: bool = False

    def __str__(self) -> str:
        out = f" {OUTDATED}" if self.outdated else ""
        return f'<!-- skyplan-{self.kind} tag="{self.tag}" valid-at="{self.valid_at}"{out} -->'

    @property
    def key(self) -> tuple[str, str]:
        """What makes two comments the same one."""
        return (self.kind, self.tag)

    @property
    def moment(self) -> datetime:
        """`valid_at`, the beginning of time where it says none."""
        try:
            at = datetime.fromisoformat(self.valid_at)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)
        return at if at.tzinfo else at.replace(tzinfo=UTC)


def hidden_line(hidden: Hidden) -> str:
    """The line.  Raises ValueError on what could not be read back."""
    line = str(hidden)
    if "--" in hidden.tag or not _LINE.fullmatch(line):
        raise ValueError(f"`{hidden.tag}` is no tag: letters, digits and . _ / -, at most 100, no `--`")
    return line


def read_hidden(body: str) -> Hidden | None:
    """Of a comment whose first line is one of ours, exactly; None of any other."""
    found = _LINE.fullmatch(body.partition("\n")[0].rstrip("\r"))
    if found is None or "--" in found["tag"]:
        return None
    return Hidden(kind=found["kind"], tag=found["tag"], valid_at=found["at"], outdated=bool(found["out"]))


def without_hidden(body: str) -> str:
    """What a reader sees, without blanks at its end: two comments that say the same say this alike."""
    text = body.replace("\r\n", "\n")
    return (text.partition("\n")[2] if read_hidden(text) else text).strip("\n").rstrip()


def kind_of(text: str) -> str:
    """Which command wrote a text that has no hidden line."""
    if text.startswith("**skyplan: no change.**"):
        return "diff"
    return next((k for k in KINDS[:3] if text.startswith(f"## skyplan {k}\n")), "comment")


def says_no_change(text: str) -> bool:
    """Whether a text of ours, without its hidden line, says that there is nothing to review."""
    quiet = _QUIET.get(kind_of(text))
    return bool(quiet and quiet.fullmatch(text.strip()))


def cell(text: str) -> str:
    """A stranger's text, which opens nothing where it stands in Markdown."""
    return _ADDRESS.sub(_BREAK, printable(text).translate(_SPECIAL))


def html(text: str) -> str:
    """The same for a summary, in which Markdown does not hold."""
    return _ADDRESS.sub(_BREAK, printable(text).translate(_HTML))


def joined(blocks: Iterable[str], cut: str) -> str:
    """The blocks as one text; where it would be too long it ends between two of them, by the words `cut`."""
    kept: list[str] = []
    room = LONGEST
    for block in blocks:
        room -= len(block) + 2
        if room < len(cut) + 2:
            kept.append(cut)
            break
        kept.append(block)
    return "\n\n".join(kept) + "\n"


def shortened(body: str, longest: int) -> str:
    """The body in at most `longest` bytes, whole blocks left out: folded ones from the last on, then others, then rows of the first.

    Neither a fence nor a fold is cut through.  The hidden line stays, and so does what the text begins with unless it alone is too long.
    """
    if len(body.encode()) <= longest:
        return body
    hidden = read_hidden(body)
    first = f"{body.partition(chr(10))[0]}\n" if hidden else ""
    blocks = blocks_of(body[len(first) :])
    room = longest - len(first.encode()) - len(SHORTENED.encode()) - 1
    sizes = [len(b.encode()) + 2 for b in blocks]
    total = sum(sizes)
    dropped: set[int] = set()
    folded = [k for k in range(len(blocks)) if k and _FOLD.match(blocks[k].lstrip())]
    others = [k for k in range(1, len(blocks)) if k not in folded]
    for k in [*reversed(folded), *reversed(others)]:
        if total <= room:
            break
        total -= sizes[k]
        dropped.add(k)
    kept = [b for k, b in enumerate(blocks) if k not in dropped]
    if total > room:
        kept = [_fewer_lines(blocks[0], room - 2)]
    return first + "\n\n".join([*filter(None, kept), SHORTENED]) + "\n"


def blocks_of(text: str) -> list[str]:
    """The text's blocks, as blank lines part them; a fence or a fold with all that is in it is one block."""
    out: list[str] = []
    lines: list[str] = []
    fence, depth = "", 0
    for line in text.split("\n"):
        if not line.strip() and not fence and depth <= 0:
            if lines:
                out.append("\n".join(lines))
            lines, depth = [], 0
            continue
        lines.append(line)
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark["mark"]
        elif mark and mark["mark"].startswith(fence) and not line.strip(" `~"):
            fence = ""
        elif not fence:
            depth += sum(-1 if m["end"] else 1 for m in _FOLD.finditer(line))
    return [*out, "\n".join(lines)] if lines else out


def _fewer_lines(block: str, room: int) -> str:
    """A table or a list ends between two lines; what holds a fence or a fold is left out whole."""
    if _FOLD.search(block) or any(_FENCE.match(line) for line in block.split("\n")):
        return ""
    kept: list[str] = []
    for line in block.split("\n"):
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(line)
    return "\n".join(kept)
