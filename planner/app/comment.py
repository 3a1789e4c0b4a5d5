"""Posting a text on a pull request: read, look for secrets, find the comment that is there, write, look after doubles.

Where it goes comes from flags and the pipeline's surroundings alone.  What is said to a forge is `planner.forges`', what is to be done `planner.app.comment_decide`'s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

from planner.app import comment_decide
from planner.app.comment_decide import Behavior, Draft, What
from planner.app.secrets_guard import refuse_text
from planner.forges.port import Comment, Forge, Gone, TooLong, Unknown
from planner.model.diagnostic import Diagnostic, Location
from planner.model.errors import ForgeError, InputError
from planner.render.comment import (
    Hidden,
    hidden_line,
    kind_of,
    read_hidden,
    says_no_change,
    shortened,
    without_hidden,
)
from planner.render.diff_words import without_ids

if TYPE_CHECKING:
    from planner.forges.again import Patience

TAG: Final = "skyplan"
"""Where neither the text nor a flag names one."""
LARGEST: Final = 16 * 2**20
"""Bytes of a text: sixteen times a forge's greatest comment is no text that anybody meant to post."""
_FEWEST = 2_000
_TRIES = 3
_FOLDED = "<details><summary>Outdated: a later comment stands in its place</summary>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked.

    origin    the text's file, for messages
    tag       "" = the text's own, else TAG
    valid_at  ISO; "" = asked_at, else the text's own, else now
    asked_at  when the pipeline was asked for, by the forge's clock; "" = not known
    """

    text: bytes
    origin: str
    tag: str = ""
    valid_at: str = ""
    asked_at: str = ""
    behavior: Behavior = Behavior.UPDATE
    only_on_change: bool = False
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What was done; with a dry run, what would be.  `hidden`, `deleted`: addresses of earlier comments, or their numbers."""

    what: What
    hidden_line: Hidden
    body: str
    url: str = ""
    hidden: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    cut: bool = False
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Tally:
    notes: list[str] = field(default_factory=list[str])
    hidden: list[str] = field(default_factory=list[str])
    deleted: list[str] = field(default_factory=list[str])
    cut: bool = False


def draft_of(request: Request, now: datetime) -> Draft:
    """The text as it may be posted.  Raises InputError: SKY-APPLY-337, and SKY-IAM-504 where it holds what looks like a secret."""
    whole = _decoded(request)
    given = read_hidden(whole)
    text = without_hidden(whole)
    if not text.strip():
        raise _unfit(request, "there is nothing in it", "a text of `skyplan diff --format markdown`, for one")
    if given and request.tag and given.tag != request.tag:
        raise _unfit(
            request,
            f"its hidden line is tagged `{given.tag}`, and --tag says `{request.tag}`",
            "leave --tag out, or give the same to `skyplan diff`",
        )
    tag = request.tag or (given.tag if given else TAG)
    refuse_text(f"{tag}\n{text}", origin=request.origin)
    text = without_ids(text)
    if without_ids(tag) != tag:
        raise _unfit(request, "its tag holds an account's number or id", "anybody can read it in the comment's source")
    try:
        at = comment_decide.dated(request.valid_at, request.asked_at, given.valid_at if given else "", now=now)
        hidden = Hidden(
            kind=given.kind if given else kind_of(text),
            tag=tag,
            valid_at=at,
        )
        hidden_line(hidden)
    except (ValueError, OverflowError) as error:
        raise _unfit(request, str(error), "") from None
    return Draft(hidden=hidden, text=text, quiet=says_no_change(text))


def post(request: Request, forge: Forge, patience: Patience, now: datetime, *, blind: bool = False) -> Done:
    """Find, decide, write.  `blind`: a dry run that may not even look.  Raises InputError, ForgeError."""
    draft = draft_of(request, now)
    tally = _Tally()
    whole = forge.safe(draft.body)
    fitting = shortened(whole, forge.longest)
    tally.cut = fitting != whole
    draft = replace(draft, text=without_hidden(fitting))
    found = _wanted(draft.hidden.key)
    for _ in range(_TRIES):
        there = [] if blind else forge.comments(found)
        verdict = comment_decide.decide(there, draft, request.behavior, now, only_on_change=request.only_on_change)
        if request.dry_run:
            return _done(verdict.what, draft, verdict.at, tally, forge)
        at = verdict.at
        try:
            if verdict.what is What.CREATED:
                at = _created(forge, draft, there, patience, tally)
                there = _all([*there, at, *([] if request.behavior is Behavior.NEW else forge.comments(found))])
            elif verdict.what is What.UPDATED and at is not None:
                was = at
                at = _fitted(forge, draft, tally, lambda body, was=was: forge.update(was, body))
                there = [at if c.id == at.id else c for c in there]
        except Gone:
            continue
        if verdict.what not in {What.SUPERSEDED, What.SKIPPED}:
            kept = _settle(forge, there, request.behavior, now, tally)
            if kept is not None and at is not None and kept.id != at.id:
                tally.notes.append("a later run wrote its comment meanwhile; that one stays")
        return _done(verdict.what, draft, at, tally, forge)
    raise _not_settled()


def _decoded(request: Request) -> str:
    if len(request.text) > LARGEST:
        raise _unfit(request, f"it has more than {LARGEST // 2**20} MiB", "a comment is read by people")
    try:
        text = request.text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unfit(request, f"it is no UTF-8: byte {error.start}", "write it with skyplan, or as UTF-8") from None
    text = text.replace("\r\n", "\n")
    return "".join(c for c in text if c in "\n\t" or ord(c) >= ord(" "))


def _unfit(request: Request, summary: str, hint: str) -> InputError:
    at = Location(request.origin)
    return InputError([Diagnostic(code="SKY-APPLY-337", summary=summary, location=at, hint=hint)])


def _not_settled() -> ForgeError:
    summary = "the comment is deleted each time it is found: somebody else works on it"
    return ForgeError([Diagnostic(code="SKY-APPLY-335", summary=summary)])


def _wanted(key: tuple[str, str]) -> Callable[[str], bool]:
    def wanted(body: str) -> bool:
        hidden = read_hidden(body)
        return hidden is not None and hidden.key == key and not hidden.outdated

    return wanted


def _created(forge: Forge, draft: Draft, there: Iterable[Comment], patience: Patience, tally: _Tally) -> Comment:
    """One new comment.  Where no answer came it is looked for before it is written again: a slow forge may have it already."""
    before = {c.id for c in there}
    found = _wanted(draft.hidden.key)
    attempt = 0
    while True:
        attempt += 1
        try:
            return _fitted(forge, draft, tally, forge.create)
        except Unknown as unknown:
            again = patience.wait(attempt)
            fresh = [c for c in forge.comments(found) if c.id not in before and read_hidden(c.body) == draft.hidden]
            if fresh:
                tally.notes.append("the forge gave no answer to the new comment; it was found there")
                return fresh[-1]
            if not again:
                raise unknown.why from None


def _fitted(forge: Forge, draft: Draft, tally: _Tally, write: Callable[[str], Comment]) -> Comment:
    """Written, cut to half as often as the forge finds it too long."""
    body = draft.body
    room = min(forge.longest, len(body.encode()))
    while True:
        try:
            return write(body)
        except TooLong:
            room //= 2
            if room < _FEWEST:
                summary = f"the forge finds {len(body.encode())} bytes too long"
                raise ForgeError([Diagnostic(code="SKY-APPLY-337", summary=summary)]) from None
            body = shortened(draft.body, room)
            tally.cut = True


def _all(comments: Iterable[Comment]) -> list[Comment]:
    """Each once; what was read last counts."""
    return list({c.id: c for c in comments}.values())


def _settle(forge: Forge, there: list[Comment], behavior: Behavior, now: datetime, tally: _Tally) -> Comment | None:
    """One stays: the latest, which is told.  A failure here is told and fails nothing: the comment stands."""
    keep = comment_decide.latest(there, now)
    if behavior is Behavior.NEW or keep is None:
        return None
    for other in there:
        if other.id == keep.id:
            continue
        try:
            if behavior is Behavior.DELETE_AND_NEW:
                forge.delete(other)
                tally.deleted.append(other.url or str(other.id))
            else:
                forge.hide(other, _folded(other, forge.longest))
                tally.hidden.append(other.url or str(other.id))
        except (ForgeError, TooLong) as error:
            tally.notes.append(f"an earlier comment stays as it is: {error}")
    return keep


def _folded(comment: Comment, longest: int) -> str:
    hidden = read_hidden(comment.body)
    assert hidden is not None  # noqa: S101 - it was found by it
    frame = f"{replace(hidden, outdated=True)}\n{_FOLDED}\n\n\n\n</details>\n"
    text = shortened(without_hidden(comment.body), longest - len(frame.encode())).strip()
    return f"{replace(hidden, outdated=True)}\n{_FOLDED}\n\n{text}\n\n</details>\n"


def _done(what: What, draft: Draft, at: Comment | None, tally: _Tally, forge: Forge) -> Done:
    notes = [*tally.notes, *forge.notes]
    if what is What.SUPERSEDED and at is not None:
        hidden = read_hidden(at.body)
        notes.append(
            f"a later run's comment stands there (valid at {hidden.valid_at if hidden else '?'}, this one at {draft.hidden.valid_at}); it was left"
        )
    return Done(
        what=what,
        hidden_line=draft.hidden,
        body=draft.body,
        url=at.url if at else "",
        hidden=tuple(tally.hidden),
        deleted=tuple(tally.deleted),
        cut=tally.cut,
        notes=tuple(notes),
    )
