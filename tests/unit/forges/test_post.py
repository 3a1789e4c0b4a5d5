"""R25: one comment a pull request and tag, found exactly, never over a newer one, written once (peers 9, 10, 11, 13, 17), on both forges."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from planner.app.comment import Request, draft_of
from planner.app.comment_decide import What
from planner.forges.port import Name
from planner.model.errors import ForgeError, InputError
from planner.render.comment import read_hidden
from tests.emulators.forges import GITHUB_LONGEST, Asked, Trouble
from tests.unit.forges.desk import EARLY, LATE, MID, NOW, NUMBER, REPO, TOKEN, Desk, body, desk

QUIET = "**skyplan: no change.** 3 jobs stay as they are; $1,200 to finish.\n"
CREATE = r"/repos/acme/jobs/issues/7/comments|/projects/acme%2Fjobs/merge_requests/7/notes"


@pytest.fixture(params=list(Name))
def at(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with desk(request.param) as found:
        yield found


@pytest.fixture
def github() -> Iterator[Desk]:
    with desk(Name.GITHUB) as found:
        yield found


@pytest.fixture
def gitlab() -> Iterator[Desk]:
    with desk(Name.GITLAB) as found:
        yield found


def said(error: pytest.ExceptionInfo[ForgeError]) -> str:
    return "\n".join(f"{d.code} {d.summary} {d.hint}" for d in error.value.diagnostics)


def test_the_first_is_created_and_the_next_updates_it(at: Desk) -> None:
    assert at.post(body("one")).what is What.CREATED
    assert at.post(body("two", at=LATE)).what is What.UPDATED
    assert [b.strip() for b in at.there()] == [body("two", at=LATE).strip()]


def test_what_is_there_already_is_not_written_again(at: Desk) -> None:
    """Case 13: the same inputs, the same bytes, no write."""
    at.post(body())
    writes = len(at.forge.writes())
    for behavior in ("update", "new", "hide-and-new", "delete-and-new"):
        assert at.post(body(), behavior=behavior).what is What.UNCHANGED
    assert len(at.forge.writes()) == writes


def test_the_same_words_of_a_later_run_only_move_the_date_so_that_a_run_between_them_cannot_win(at: Desk) -> None:
    at.post(body("one", at=EARLY))
    assert at.post(body("one", at=LATE), behavior="new").what is What.UPDATED
    assert at.post(body("two", at=MID)).what is What.SUPERSEDED
    assert [read_hidden(b).valid_at for b in at.there()] == [LATE]


def test_prod_never_finds_the_comment_of_non_prod(at: Desk) -> None:
    """Case 10."""
    for tag in ("prod", "non-prod", "prod/eu", "Prod"):
        assert at.post(body(tag=tag)).what is What.CREATED
    assert at.post(body("new", tag="prod", at=LATE)).what is What.UPDATED
    assert [read_hidden(b).tag for b in at.there() if "new" in b] == ["prod"]
    assert len(at.there()) == 4


def test_a_diff_and_an_audit_of_one_tag_are_two_comments(at: Desk) -> None:
    at.post(body(kind="diff"))
    assert (
        at.post("## skyplan audit\n\n**1 to settle before this may go in**: 1 high.\n", tag="prod").what is What.CREATED
    )
    assert at.post("## skyplan replan\n\n**1 to move, 0 stay.**\n", tag="prod").what is What.CREATED
    assert [read_hidden(b).kind for b in at.there()] == ["diff", "audit", "replan"]


def test_an_older_run_leaves_the_newer_ones_comment_and_says_so(at: Desk) -> None:
    """Case 10."""
    at.post(body("newer", at=LATE))
    for behavior in ("update", "new", "hide-and-new", "delete-and-new"):
        done = at.post(body("older", at=MID), behavior=behavior)
        assert done.what is What.SUPERSEDED
        assert "later run's comment" in done.notes[0]
    assert "newer" in at.there()[0]
    assert len(at.there()) == 1


def test_a_commit_dated_in_the_future_freezes_no_comment(at: Desk) -> None:
    """Whoever writes a commit chooses its date."""
    done = at.post(body("first", at="2099-01-01T00:00:00Z"))
    assert done.hidden_line.valid_at == "2026-11-30T12:00:00Z"
    at.forge.place(REPO, NUMBER)[0]["body"] = body("by an older version", at="2099-01-01T00:00:00Z")
    assert at.post(body("second", at=LATE)).what is What.UPDATED


def test_when_the_pipeline_was_asked_for_counts_before_what_a_commit_says(at: Desk) -> None:
    at.post(body("harmless", at=LATE), asked_at=EARLY)
    assert at.post(body("not harmless, dated back", at="2020-01-01T00:00:00Z"), asked_at=MID).what is What.UPDATED


def test_a_strangers_comment_with_our_line_is_neither_updated_nor_obeyed(at: Desk) -> None:
    at.forge.user("other", "mallory")
    at.forge.write((REPO, NUMBER), body("mine is the newest", at=LATE), at.forge.users["other"])
    assert at.post(body("true", at=MID)).what is What.CREATED
    assert at.there()[0].startswith("<!-- skyplan-diff")
    assert "mine is the newest" in at.there()[0]


def test_a_line_that_only_looks_like_ours_is_not_ours(at: Desk) -> None:
    line = body().partition("\n")[0]
    for first in (f" {line}", f"{line} x", f"> {line}", f"text\n{line}", line.replace("skyplan-diff", "skyplan-diffs")):
        at.forge.write((REPO, NUMBER), f"{first}\nwords", at.me)
    assert at.post(body(at=LATE)).what is What.CREATED


def test_the_comment_is_found_on_the_last_page_of_many(at: Desk) -> None:
    at.post(body("one"))
    mine = at.forge.place(REPO, NUMBER).pop()
    for k in range(437):
        at.forge.write((REPO, NUMBER), f"chatter {k}", at.me)
    at.forge.place(REPO, NUMBER).append(mine)
    assert at.post(body("two", at=LATE)).what is What.UPDATED
    assert len([b for b in at.there() if b.startswith("<!--")]) == 1


def test_gitlabs_pages_without_links_are_followed_too(gitlab: Desk) -> None:
    gitlab.forge.links = False
    for k in range(250):
        gitlab.forge.write((REPO, NUMBER), f"chatter {k}", gitlab.me)
    gitlab.post(body("one"))
    assert gitlab.post(body("two", at=LATE)).what is What.UPDATED


def test_hide_and_new_leaves_the_earlier_one_hidden_and_a_new_one_below(github: Desk) -> None:
    github.post(body("one"))
    done = github.post(body("two", at=LATE), behavior="hide-and-new")
    assert (done.what, len(done.hidden)) == (What.CREATED, 1)
    assert [("two" in b) for b in github.there()] == [True]
    assert len(github.forge.bodies(REPO, NUMBER)) == 2
    github.post(body("three", at="2026-11-30T11:30:00Z"), behavior="hide-and-new")
    assert len([a for a in github.forge.writes() if a.path == "/graphql"]) == 2  # no comment is hidden twice


def test_gitlab_cannot_hide_so_the_earlier_one_is_folded_under_a_line_that_says_outdated(gitlab: Desk) -> None:
    gitlab.post(body("one"))
    done = gitlab.post(body("two", at=LATE), behavior="hide-and-new")
    first, second = gitlab.there()
    assert (done.what, "two" in second) == (What.CREATED, True)
    assert read_hidden(first).outdated
    assert "<details><summary>Outdated" in first
    assert "one" in first
    assert first.endswith("</details>")
    assert gitlab.post(body("three", at="2026-11-30T11:30:00Z")).what is What.UPDATED
    assert gitlab.there()[0] == first


def test_delete_and_new_deletes_and_new_leaves(at: Desk) -> None:
    at.post(body("one", at=EARLY))
    at.post(body("two", at=MID), behavior="new")
    assert len(at.there()) == 2
    done = at.post(body("three", at=LATE), behavior="delete-and-new")
    assert len(done.deleted) == 2
    assert ["three" in b for b in at.there()] == [True]


@pytest.mark.parametrize("behavior", ["update", "hide-and-new", "delete-and-new"])
def test_of_doubles_the_newest_stays(at: Desk, behavior: str) -> None:
    """Case 9: what belongs together is replaced together."""
    for moment in (MID, EARLY, EARLY):
        at.forge.write((REPO, NUMBER), body(f"of {moment}", at=moment), at.me)
    at.post(body("last", at=LATE), behavior=behavior)
    shown = [b for b in at.there() if not read_hidden(b).outdated]
    assert len(shown) == 1
    assert "last" in shown[0]


@pytest.mark.parametrize("behavior", ["update", "hide-and-new", "delete-and-new"])
def test_two_runs_at_once_end_with_one_comment(at: Desk, behavior: str) -> None:
    """Case 17: both looked before either wrote."""
    gate = threading.Barrier(2, timeout=20)

    def before(asked: Asked) -> None:
        if asked.method == "POST" and "/graphql" not in asked.path:
            gate.wait()

    at.forge.before = before
    done = []
    runs = [
        threading.Thread(target=lambda m=m: done.append(at.post(body(f"of {m}", at=m), behavior=behavior)))
        for m in (MID, LATE)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    shown = [b for b in at.there() if not read_hidden(b).outdated]
    assert len(done) == 2
    assert [read_hidden(b).valid_at for b in shown] == [LATE]


def test_a_later_run_that_writes_in_between_keeps_its_place(at: Desk) -> None:
    def before(asked: Asked) -> None:
        if asked.method == "POST" and "/graphql" not in asked.path and len(at.forge.place(REPO, NUMBER)) == 0:
            at.forge.write((REPO, NUMBER), body("later", at=LATE), at.me)

    at.forge.before = before
    done = at.post(body("earlier", at=MID))
    assert (done.what, len(done.hidden)) == (What.CREATED, 1)
    assert any("that one stays" in n for n in done.notes)
    assert ["later" in b for b in at.there() if not read_hidden(b).outdated] == [True]


def test_only_on_change_posts_nothing_new_but_brings_what_is_there_up_to_date(at: Desk) -> None:
    """Case 17: no change is one line."""
    assert at.post(QUIET, tag="prod", only_on_change=True, valid_at=MID).what is What.SKIPPED
    assert at.there() == []
    at.post(body("one", at=EARLY))
    done = at.post(QUIET, tag="prod", only_on_change=True, behavior="hide-and-new", valid_at=MID)
    assert done.what is What.UPDATED
    assert at.there()[0].partition("\n")[2].strip() == QUIET.strip()
    assert at.post(QUIET, tag="prod", only_on_change=True, valid_at=MID).what is What.UNCHANGED


def test_a_change_of_outputs_alone_is_a_change(at: Desk) -> None:
    """Case 17."""
    text = "## skyplan diff\n\n**a to b**: 3 keep. Terraform: 1 output.\n"
    assert at.post(text, only_on_change=True).what is What.CREATED


def test_a_create_that_happened_without_an_answer_is_not_made_again(at: Desk) -> None:
    """Case 17: the same first comment twice."""
    at.forge.troubles = [Trouble("POST", CREATE, happens=True, dropped=True)]
    done = at.post(body())
    assert done.what is What.CREATED
    assert len(at.there()) == 1
    assert "no answer" in done.notes[0]


def test_another_runs_comment_is_not_taken_for_the_one_that_got_no_answer(at: Desk) -> None:
    at.forge.troubles = [Trouble("POST", CREATE, dropped=True)]

    def before(asked: Asked) -> None:
        if asked.method == "POST" and "/graphql" not in asked.path and not at.forge.place(REPO, NUMBER):
            at.forge.write((REPO, NUMBER), body("earlier", at=EARLY), at.me)

    at.forge.before = before
    assert at.post(body("mine", at=MID)).what is What.CREATED
    assert ["mine" in b for b in at.there() if not read_hidden(b).outdated] == [True]


def test_a_slow_create_that_did_happen_is_not_made_again(at: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planner.forges.rest.TIMEOUT_SECONDS", 0.5)
    held = threading.Event()
    at.forge.troubles = [Trouble("POST", CREATE, happens=True, held=held, dropped=True)]
    try:
        assert at.post(body()).what is What.CREATED
    finally:
        held.set()
    assert len(at.there()) == 1


def test_a_create_that_did_not_happen_is_made_again(at: Desk) -> None:
    at.forge.troubles = [Trouble("POST", CREATE, dropped=True), Trouble("POST", CREATE, status=502, body={})]
    assert at.post(body()).what is What.CREATED
    assert len(at.there()) == 1


def test_a_forge_that_stays_away_is_an_error_and_leaves_nothing_twice(at: Desk) -> None:
    at.forge.troubles = [Trouble("POST", CREATE, status=503, body={}, times=99)]
    with pytest.raises(ForgeError) as error:
        at.post(body())
    assert "SKY-APPLY-335" in said(error)
    assert len(at.waits) == at.attempts - 1
    assert at.there() == []


def test_a_comment_that_was_deleted_meanwhile_is_written_anew(at: Desk) -> None:
    at.post(body("one"))

    def before(asked: Asked) -> None:
        if asked.method in {"PATCH", "PUT"}:
            at.forge.place(REPO, NUMBER).clear()

    at.forge.before = before
    assert at.post(body("two", at=LATE)).what is What.CREATED
    assert len(at.there()) == 1


def test_a_body_that_is_too_long_is_cut_before_it_is_sent(github: Desk) -> None:
    """Case 9."""
    folded = [
        f"<details><summary>job {k}</summary>\n\n| a | b |\n|---|---|\n| {'x' * 400} | y |\n\n</details>"
        for k in range(300)
    ]
    done = github.post(body("\n\n".join(["**totals**", *folded, "the end"])))
    text = github.there()[0]
    assert done.cut
    assert len(text) < GITHUB_LONGEST
    assert text.count("<details>") == text.count("</details>") > 100
    assert "**totals**" in text
    assert "the end" in text
    assert "Shortened" in text
    assert [a.method for a in github.forge.writes()] == ["POST"]


def test_where_the_forge_finds_it_too_long_all_the_same_it_is_cut_again(at: Desk) -> None:
    long = {"message": "Validation Failed", "errors": [{"message": "Body is too long (maximum is 20000 characters)"}]}
    status = 422 if at.name is Name.GITHUB else 400
    at.forge.troubles = [Trouble("POST", CREATE, status=status, body=long, times=2)]
    done = at.post(body("\n\n".join(f"block {k} {'x' * 990}" for k in range(50))))
    assert done.cut
    sent = [len(a.body["body"]) for a in at.forge.writes()]
    assert sent[0] > 50_000
    assert sent[1] <= sent[0] / 2
    assert sent[2] <= sent[0] / 4
    assert "Shortened" in at.there()[0]


def test_a_forge_that_takes_no_length_is_an_error_in_the_end(at: Desk) -> None:
    status = 422 if at.name is Name.GITHUB else 400
    at.forge.troubles = [Trouble("POST", CREATE, status=status, body={"message": "body is too long"}, times=99)]
    with pytest.raises(ForgeError) as error:
        at.post(body("x " * 9_000))
    assert "SKY-APPLY-337" in said(error)


@pytest.mark.parametrize(
    "secret",
    [
        "AKIA" + "QWERTYUIOPASDFGH"[:16].replace("I", "2").replace("O", "3"),
        "ghp\\_" + "a1B2c3D4" * 5,
        "password: &quot;hunter2&quot; token=" + "Zx9kQ2mW7pL4vN8sT1rY",
    ],
)
def test_a_secrets_shape_is_posted_nowhere(at: Desk, secret: str) -> None:
    """Case 11: also where Markdown's own escapes stand in it."""
    with pytest.raises(InputError) as error:
        at.post(body(f"| env | {secret} |"))
    shown = "\n".join(f"{d.code} {d.summary} {d.hint}" for d in error.value.diagnostics)
    assert "SKY-IAM-504" in shown
    assert secret not in shown
    assert at.forge.asked == []


def test_what_our_own_renderer_cut_out_is_no_secret(at: Desk) -> None:
    assert at.post(body("password=\\[secret\\] and https://me:[secret]@example.com/")).what is What.CREATED


def test_account_and_subscription_ids_are_cut_out_once_more(at: Desk) -> None:
    """Case 11."""
    at.post(
        body(
            "role arn:aws:iam::123456789012:role/x in 6f1c2d3e-aaaa-bbbb-cccc-0123456789ab, projects/acme-ml-prod/zones"
        )
    )
    text = at.there()[0]
    assert "123456789012" not in text
    assert "6f1c2d3e" not in text
    assert "acme-ml-prod" not in text
    assert "[account]" in text


def test_no_note_gives_gitlab_an_order(gitlab: Desk) -> None:
    gitlab.post(body("/merge\n\n  /close\n> /assign @me\n\n```\n/approve\n```"))
    assert gitlab.forge.orders == []
    assert "\\/merge" in gitlab.there()[0]


@pytest.mark.parametrize(
    ("text", "asked", "why"),
    [
        ("", {}, "nothing in it"),
        ("\n\n \n", {}, "nothing in it"),
        (body("x", tag="prod"), {"tag": "dev"}, "tagged `prod`"),
        ("words", {"tag": "a--b"}, "is no tag"),
        ("words", {"tag": 'a" valid-at="2099'}, "is no tag"),
        ("words", {"valid_at": "soon"}, "soon"),
        ("words", {"tag": "prod-123456789012"}, "account's number"),
        (body("x", tag="6f1c2d3e-aaaa-bbbb-cccc-0123456789ab"), {}, "account's number"),
    ],
)
def test_what_cannot_be_posted_is_said_before_anything_is_asked(at: Desk, text: str, asked: dict, why: str) -> None:
    with pytest.raises(InputError) as error:
        at.post(text, **asked)
    assert why in error.value.diagnostics[0].summary
    assert error.value.diagnostics[0].code == "SKY-APPLY-337"
    assert at.forge.asked == []


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(InputError, match="no UTF-8"):
        draft_of(Request(text=b"\xff\xfe\x00", origin="diff.md"), NOW)


def test_a_dry_run_writes_nothing_and_says_what_would_be(at: Desk) -> None:
    assert at.post(body(), dry_run=True).what is What.CREATED
    at.post(body())
    assert at.post(body("two", at=LATE), dry_run=True).what is What.UPDATED
    assert len(at.forge.writes()) == 1


def test_where_an_earlier_comment_cannot_be_hidden_the_new_one_stands_and_that_is_said(github: Desk) -> None:
    github.post(body("one"))
    errors = {"data": None, "errors": [{"message": "Resource not accessible by integration"}]}
    hiding = [Trouble("POST", "/graphql", status=200, body=errors, times=9)]

    def before(asked: Asked) -> None:
        github.forge.troubles = hiding if "minimizeComment" in str(asked.body) else []

    github.forge.before = before
    done = github.post(body("two", at=LATE), behavior="hide-and-new")
    assert done.what is What.CREATED
    assert "an earlier comment stays" in done.notes[0]


def test_without_graphql_the_tokens_user_is_asked_for(github: Desk) -> None:
    github.forge.troubles = [Trouble("POST", "/graphql", status=404, body={"message": "Not Found"}, times=99)]
    github.forge.users[TOKEN]["type"] = "User"
    github.forge.user("other", "mallory")
    github.forge.write((REPO, NUMBER), body("false", at=LATE), github.forge.users["other"])
    github.post(body("one"))
    assert github.post(body("two", at=LATE)).what is What.UPDATED


def test_where_nobody_says_whose_the_token_is_only_bots_count_and_that_is_said(github: Desk) -> None:
    github.forge.troubles = [Trouble("POST", "/graphql", status=404, body={"message": "Not Found"}, times=99)]
    github.forge.user("other", "mallory")
    github.forge.write((REPO, NUMBER), body("false", at=LATE), github.forge.users["other"])
    assert github.post(body("one")).what is What.CREATED
    done = github.post(body("two", at=LATE))
    assert done.what is What.UPDATED
    assert "does not say whose" in done.notes[0]
