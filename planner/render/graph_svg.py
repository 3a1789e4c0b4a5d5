"""Who may become whom, and what each reaches, drawn as SVG: three columns, the same bytes for the same rights.

Decides layout and how much is shown; judges nothing.  Colours repeat what shapes and words say, text is text, and nothing is loaded from elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from planner.iam.read.becoming import Door, doors, is_boundary, is_door_only, is_home, names, place_of, together
from planner.model.policy import PolicyKind
from planner.render.audit_words import printable

if TYPE_CHECKING:
    from planner.model.policy import Audited, Statement, Subject

_WIDTH, _HEIGHT, _GAP, _TOP, _SIDE, _BETWEEN = 300, 40, 16, 96, 24, 190
_HEAD = 50
"""Of it, what a title takes that a page says by itself."""
_LETTERS = 40
"""Of 12 px text that fit into a box."""
_MOST = 8
"""Things reached that are named per identity; the rest is counted."""
_WORD_LETTERS = 26
_LETTER_WIDE, _WORD_HIGH = 6, 11
"""Of an edge's word, in letters of 10 px."""
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 8 4 0 8z" fill="#5b6675"/></marker></defs>'
)
_FILLS = {"who": "#eef2f7", "identity": "#fff4d6", "node": "#e4f4e4", "reached": "#f5ecf8"}


@dataclass(slots=True)
class _Box:
    kind: str
    lines: tuple[str, str]
    column: int
    top: float = 0.0


@dataclass(slots=True)
class _Drawing:
    boxes: dict[str, _Box] = field(default_factory=dict[str, _Box])
    edges: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def box(self, key: str, kind: str, column: int, first: str, second: str = "") -> str:
        self.boxes.setdefault(key, _Box(kind, (first, second), column))
        return key

    def edge(self, source: str, target: str, word: str) -> None:
        self.edges.setdefault((source, target), word)


def graph(audited: Audited, *, title: str, inside: str = "", words: Callable[[str], str] = printable) -> str:
    """The file's text.

    inside  of a page that holds several graphs: what makes this one's ids its own; then colours are the page's, by class (`ground`, `ink`, `dim`, `edge`,
            `word`, `box who|identity|node|reached`), no size is stated and no title is drawn
    words   what every text goes through before it is cut and escaped
    """
    drawing = _Drawing()
    drawn = [s for s in audited.subjects if not is_boundary(s) and not is_door_only(s)]
    # those made in what was read first: others' rights are theirs where it is certain who is meant
    subjects = sorted(drawn, key=lambda s: (not is_home(s), s.cloud.value, str(s.identity), s.name, s.origin))
    keys = _keys(subjects)
    subjects.sort(key=lambda s: (s.cloud.value, str(s.identity), s.name, s.origin))
    named: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for subject in subjects:
        named[subject.cloud.value, subject.name].add(keys[id(subject)])
    for subject in subjects:
        _identity(drawing, subject, keys[id(subject)], alone=len(named[subject.cloud.value, subject.name]) == 1)
    for subject in subjects:
        _trust(drawing, subject, keys, doors(subject, audited))
        alone = len(named[subject.cloud.value, subject.name]) == 1
        _reach(drawing, subject, keys, subjects, "" if alone else place_of(subject))
    height = _place(drawing)
    svg = _svg(_worded(drawing, words), words(title), height)
    return _within(svg, inside) if inside else svg


def _worded(drawing: _Drawing, words: Callable[[str], str]) -> _Drawing:
    if words is not printable:
        for box in drawing.boxes.values():
            box.lines = (words(box.lines[0]), words(box.lines[1]))
        drawing.edges = {ends: words(word) for ends, word in drawing.edges.items()}
    return drawing


_CLASSES = {
    'fill="#ffffff"': 'class="ground"',
    'font-weight="600" fill="#1c2430"': 'class="ink name"',
    'font-weight="600" fill="#5b6675"': 'class="dim name"',
    'fill="#3b4553" stroke="#ffffff" stroke-width="3" paint-order="stroke"': 'class="word"',
    'fill="#3b4553"': 'class="dim"',
    'fill="none" stroke="#5b6675"': 'class="edge" fill="none"',
    'fill="#5b6675"': 'class="head"',
    **{f'fill="{fill}" stroke="#8a94a3"': f'class="box {kind}"' for kind, fill in _FILLS.items()},
}
"""What a page's style sheet colours instead: in attributes alone, as a text's quotes are escaped here."""


def _within(svg: str, own: str) -> str:
    head, rest = svg.split(">", 1)
    head = re.sub(r' (?:width|height)="[^"]*"', "", head).replace('"title desc"', f'"{own}-title {own}-desc"')
    head = head.replace("<svg ", '<svg class="graph" ')
    head = re.sub(
        r'viewBox="0 0 (\d+) ([\d.]+)"', lambda m: f'viewBox="0 {_HEAD} {m[1]} {float(m[2]) - _HEAD:g}"', head
    )
    rest = re.sub(r"<text [^>]*font-size=\"18\"[^>]*>.*?</text>\n", "", rest, count=1)
    for told, name in _CLASSES.items():
        rest = rest.replace(told, name)
    for name in ("title", "desc", "arrow"):
        rest = rest.replace(f'id="{name}"', f'id="{own}-{name}"')
    return f"{head}>{rest.replace('url(#arrow)', f'url(#{own}-arrow)')}"


def _keys(subjects: Sequence[Subject]) -> dict[int, str]:
    """Of each one's box, by `id`; one for rights of one name in several stacks of one account."""
    out: dict[int, str] = {}
    first: defaultdict[tuple[str, str], list[Subject]] = defaultdict(list)
    for subject in subjects:
        held = first[subject.cloud.value, subject.name]
        same = [] if is_home(subject) else [one for one in held if together(one, subject)]
        if same:
            out[id(subject)] = out[id(same[0])]
        else:
            held.append(subject)
            out[id(subject)] = f"identity {subject.cloud.value} {subject.name} {place_of(subject)}"
    return out


def _identity(drawing: _Drawing, subject: Subject, key: str, *, alone: bool) -> None:
    node = subject.identity is not None and subject.identity.value.startswith("node-")
    first = f"node of {subject.job}" if node and subject.job else str(subject.identity or "identity")
    place = "" if alone else f", in {place_of(subject)}"
    drawing.box(key, "node" if node else "identity", 1, f"{subject.cloud.value} {first}{place}", subject.name)


def _trust(drawing: _Drawing, subject: Subject, keys: Mapping[int, str], ways: Sequence[Door]) -> None:
    for door in ways:
        word = f"{len(door.bounds)} conditions" if len(door.bounds) > 1 else "1 condition" if door.bounds else ""
        if door.holder is not None and id(door.holder) in keys:
            if keys[id(door.holder)] != keys[id(subject)]:
                drawing.edge(keys[id(door.holder)], keys[id(subject)], "becomes")
            continue
        cloud = "" if door.kind == "token of" else f"{subject.cloud.value} "
        key = drawing.box(f"who {cloud}{door.kind} {door.name}", "who", 0, door.kind, door.name)
        drawing.edge(key, keys[id(subject)], word)


def _reached(subject: Subject) -> dict[str, set[str]]:
    """What it reaches, with the actions."""
    out: defaultdict[str, set[str]] = defaultdict(set)
    for policy in subject.of_kind(PolicyKind.IDENTITY):
        for s in policy.statements:
            if s.effect == "Allow":
                for name in s.resources or ("all but some",):
                    out[_thing(name, s)].update(s.actions or ("all but some",))
    for b in subject.bindings:
        out[b.on].update(b.permissions or (b.role,))
    for a in subject.assignments:
        out[a.scope].update((*a.actions, *a.data_actions) or (a.role,))
    for p in subject.permits:
        out[p.on].add(p.role)
    return out


def _reach(
    drawing: _Drawing, subject: Subject, keys: Mapping[int, str], everybody: Sequence[Subject], place: str
) -> None:
    """Another identity is reached in the middle column, everything else on the right; `place`: of two accounts, which one that is."""
    reached, own = _reached(subject), keys[id(subject)]
    others = [other for other in everybody if keys[id(other)] != own and together(subject, other)]
    theirs: set[str] = set()
    for other in others:
        for name in [name for name in reached if _names(name, other, subject)]:
            drawing.edge(own, keys[id(other)], _verbs(reached[name]))
            theirs.add(name)
    things = sorted((name for name in reached if name not in theirs), key=lambda name: (-len(reached[name]), name))
    for name in sorted(things[:_MOST]):
        first, second = _halves(name)
        first = f"{first}, in {place}" if place else first
        key = drawing.box(f"reached {subject.cloud.value} {place} {name}", "reached", 2, first, second)
        drawing.edge(own, key, _verbs(reached[name]))
    if len(things) > _MOST:
        rest = (f"and {len(things) - _MOST} more", f"of {subject.name}")
        drawing.edge(own, drawing.box(f"reached more {own}", "reached", 2, *rest), "")


def _halves(thing: str) -> tuple[str, str]:
    first, _, second = thing.partition(" ")
    return (first, second) if second else ("resource", first)


def _thing(resource: str, statement: Statement) -> str:
    """`s3 acme-ckpt/run/*` of an ARN; of `*`, the services that the actions are of."""
    parts = resource.split(":", 5)
    if len(parts) == 6 and parts[0] == "arn":  # noqa: PLR2004 - an ARN has six parts
        return f"{parts[2]} {parts[5]}"
    services = sorted({action.split(":", 1)[0] for action in statement.actions})
    return f"{'/'.join(services)} {resource}" if services else resource


def _names(thing: str, other: Subject, holder: Subject) -> bool:
    """A role, by its ARN's last part; an account or managed identity, by its own name."""
    return thing == other.name or names(thing, other, holder.origin.partition(" ")[0])


def _verbs(actions: Iterable[str]) -> str:
    found = sorted(actions)
    return found[0].split(":", 1)[-1].rsplit("/", 1)[-1] if len(found) == 1 else f"{len(found)} actions"


def _place(drawing: _Drawing) -> float:
    """Boxes of each column from the top; outer columns in the order of the middle of what they touch."""
    rank = {key: number for number, key in enumerate(k for k, box in drawing.boxes.items() if box.column == 1)}
    middles = _middles(drawing, rank)
    bottom = 0.0
    for column in (1, 0, 2):
        keys = [k for k, box in drawing.boxes.items() if box.column == column]
        if column != 1:
            keys.sort(key=lambda k: (middles.get(k, 0.0), k))
        top = float(_TOP)
        for key in keys:
            drawing.boxes[key].top = top
            top += _HEIGHT + _GAP
        bottom = max(bottom, top)
    _center(drawing, bottom)
    return bottom + _SIDE


def _center(drawing: _Drawing, bottom: float) -> None:
    for column in range(3):
        boxes = [box for box in drawing.boxes.values() if box.column == column]
        if boxes:
            shift = (bottom - max(box.top for box in boxes) - _HEIGHT - _GAP) / 2
            for box in boxes:
                box.top += shift


def _middles(drawing: _Drawing, rank: dict[str, int]) -> dict[str, float]:
    """Of each outer box, the mean place of the identities that it touches."""
    touched: defaultdict[str, list[int]] = defaultdict(list)
    for a, b in drawing.edges:
        for key, other in ((a, b), (b, a)):
            if other in rank:
                touched[key].append(rank[other])
    return {key: sum(places) / len(places) for key, places in touched.items()}


def _left(column: int) -> int:
    return _SIDE + column * (_WIDTH + _BETWEEN)


def _svg(drawing: _Drawing, title: str, height: float) -> str:
    width = _left(2) + _WIDTH + _SIDE
    counts = [sum(box.column == column for box in drawing.boxes.values()) for column in range(3)]
    told = f"{counts[1]} identities, {counts[0]} that may assume them, {counts[2]} things that they reach."
    box = f'width="{width}" height="{height:g}" viewBox="0 0 {width} {height:g}"'
    font = 'font-family="system-ui, sans-serif" font-size="12"'
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} role="img" aria-labelledby="title desc" {font}>',
        f'<title id="title">{_text(title)}</title>',
        f'<desc id="desc">{_text(told)} {_text(_told(drawing))}</desc>',
        _ARROW,
        f'<rect width="{width}" height="{height:g}" fill="#ffffff"/>',
        f'<text x="{_SIDE}" y="34" font-size="18" font-weight="600" fill="#1c2430">{_text(title)}</text>',
    ]
    for column, head in enumerate(("who may assume it", "identity", "what it reaches")):
        out.append(f'<text x="{_left(column)}" y="70" font-weight="600" fill="#5b6675">{head}</text>')
    out += _edges(drawing)
    out += [_drawn(box) for box in drawing.boxes.values()]
    return "\n".join([*out, "</svg>", ""])


def _told(drawing: _Drawing) -> str:
    """The edges in words, for who cannot see them."""
    name = {key: " ".join(filter(None, box.lines)) for key, box in drawing.boxes.items()}
    return " ".join(f"{name[a]} to {name[b]}{f': {word}' if word else ''}." for (a, b), word in drawing.edges.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Line:
    """An edge with its ends and where its word stands."""

    path: str
    dashed: bool
    x: float
    y: float
    anchor: str


def _beside(source: _Box, target: _Box, number: int) -> _Line:
    """One identity hands on or assumes another: an arc beside their column, the next one farther out."""
    x, y1, y2 = _left(source.column) + _WIDTH, source.top + _HEIGHT / 2, target.top + _HEIGHT / 2
    bow = x + 34 + min(abs(y2 - y1) / 12, 60) + number % 6 * 16
    path = f"M{x} {y1:g}C{bow:g} {y1:g} {bow:g} {y2:g} {x} {y2:g}"
    return _Line(path=path, dashed=True, x=x + 0.75 * (bow - x) + 4, y=(y1 + y2) / 2, anchor="start")


def _across(source: _Box, target: _Box, *, at_source: bool) -> _Line:
    """From one column to the next.  The word stands at the end that fewer edges share, on the side that the line does not come from."""
    x1, x2 = _left(source.column) + _WIDTH, _left(target.column)
    y1, y2 = source.top + _HEIGHT / 2, target.top + _HEIGHT / 2
    half = (x1 + x2) / 2
    path = f"M{x1} {y1:g}C{half:g} {y1:g} {half:g} {y2:g} {x2} {y2:g}"
    if at_source:
        return _Line(path=path, dashed=False, x=x1 + 6, y=y1 + (13 if y2 < y1 else -5), anchor="start")
    return _Line(path=path, dashed=False, x=x2 - 10, y=y2 + (13 if y1 < y2 else -5), anchor="end")


def _edges(drawing: _Drawing) -> list[str]:
    """All lines, then all words, so that no line crosses a word."""
    out, into = Counter(a for a, _ in drawing.edges), Counter(b for _, b in drawing.edges)
    lines: list[str] = []
    words: list[str] = []
    drawn: list[_Line] = []
    taken: list[tuple[float, float, float]] = []
    for (a, b), word in drawing.edges.items():
        source, target = drawing.boxes[a], drawing.boxes[b]
        same = source.column == target.column
        line = (
            _beside(source, target, sum(one.dashed for one in drawn))
            if same
            else _across(source, target, at_source=into[b] > out[a])
        )
        drawn.append(line)
        dash = ' stroke-dasharray="5 3"' if line.dashed else ""
        lines.append(
            f'<path d="{line.path}" fill="none" stroke="#5b6675" stroke-width="1.2"{dash} marker-end="url(#arrow)"/>'
        )
        if shown := _cut(word, _WORD_LETTERS):
            y = _free(line, shown, taken)
            place = f'x="{line.x:g}" y="{y:g}" text-anchor="{line.anchor}"'
            words.append(
                f'<text {place} font-size="10" fill="#3b4553" stroke="#ffffff" stroke-width="3" paint-order="stroke">'
                f"{_text(shown)}</text>"
            )
    return [*lines, *words]


def _free(line: _Line, word: str, taken: list[tuple[float, float, float]]) -> float:
    """Where its word touches no other: below, where another one stands.  `taken`: left, right and line of each."""
    wide = len(word) * _LETTER_WIDE
    left = line.x if line.anchor == "start" else line.x - wide
    y = line.y
    while any(left < right and other < left + wide and abs(y - at) < _WORD_HIGH for other, right, at in taken):
        y += _WORD_HIGH
    taken.append((left, left + wide, y))
    return y


def _drawn(box: _Box) -> str:
    x, y = _left(box.column), box.top
    radius = {"who": 18, "reached": 2}.get(box.kind, 8)
    first, second = (_text(_cut(line, _LETTERS)) for line in box.lines)
    whole = _text(" ".join(filter(None, box.lines)))
    rect = f'<rect x="{x}" y="{y:g}" width="{_WIDTH}" height="{_HEIGHT}" rx="{radius}" fill="{_FILLS[box.kind]}" stroke="#8a94a3"/>'
    upper = f'<text x="{x + 12}" y="{y + 16:g}" font-weight="600" fill="#1c2430">{first}</text>'
    lower = f'<text x="{x + 12}" y="{y + 32:g}" fill="#3b4553">{second}</text>' if second and second != first else ""
    return f"<g><title>{whole}</title>{rect}{upper}{lower}</g>"


def _cut(text: str, letters: int) -> str:
    """Long names keep both ends, which tell them apart."""
    text = printable(text)
    half = (letters - 1) // 2
    return text if len(text) <= letters else f"{text[:half]}…{text[-half:]}"


def _text(text: str) -> str:
    return escape(printable(text), {'"': "&quot;"})
