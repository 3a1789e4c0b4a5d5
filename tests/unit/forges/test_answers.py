"""R25: what a forge may answer, and what becomes of it: limits, refusals, pages without end, proxies; a token goes to its own host and into no words (peers 11)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace

import pytest

from planner.app.comment_decide import What
from planner.forges.address import refuse_address
from planner.forges.again import Patience
from planner.forges.choose import opened
from planner.forges.port import Name
from planner.model.errors import ForgeError
from tests.emulators.forges import GitHub, Trouble, served
from tests.unit.forges.desk import NOW, NUMBER, REPO, TOKEN, Desk, body, desk

ANY = r"/repos/.*|/projects/.*"


@pytest.fixture(params=list(Name))
def at(request: pytest.FixtureRequest) -> Iterator[Desk]:
    with desk(request.param) as found:
        yield found


@pytest.fixture
def github() -> Iterator[Desk]:
    with desk(Name.GITHUB) as found:
        yield found


def refused(at: Desk, **given: str) -> str:
    with pytest.raises(ForgeError) as error:
        at.post(body(), **given)
    text = "\n".join(f"{d.code} {d.summary} {d.hint}" for d in error.value.diagnostics)
    assert TOKEN not in text
    return text


def test_a_forge_that_is_busy_is_asked_again_and_waited_for_as_it_says(at: Desk) -> None:
    at.forge.troubles = [
        Trouble("GET", ANY, status=429, headers={"Retry-After": "7"}),
        Trouble("GET", ANY, status=503),
        Trouble("POST", ANY, status=429, headers={"Retry-After": "Mon, 30 Nov 2026 12:00:20 GMT"}),
    ]
    assert at.post(body()).what is What.CREATED
    assert at.waits == [7.5, 1.0, 20.5]


def test_waits_without_a_word_from_the_forge_double_and_are_drawn() -> None:
    waits: list[float] = []
    patience = Patience(attempts=9, pause=waits.append, draw=lambda: 1.0)
    assert [patience.wait(k) for k in range(1, 10)] == [True] * 8 + [False]
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "3600"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 3600)},
    ],
)
def test_a_wait_longer_than_a_pipeline_can_bear_is_told_at_once(github: Desk, headers: dict[str, str]) -> None:
    said = {"message": "API rate limit exceeded for installation."}
    github.forge.troubles = [Trouble("GET", ANY, status=403, body=said, headers=headers, times=99)]
    text = refused(github)
    assert "SKY-APPLY-334" in text
    assert "3600 s" in text
    assert github.waits == []


def test_githubs_primary_limit_is_waited_for_where_it_ends_soon(github: Desk) -> None:
    headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 20)}
    github.forge.troubles = [
        Trouble("GET", ANY, status=403, body={"message": "API rate limit exceeded"}, headers=headers)
    ]
    assert github.post(body()).what is What.CREATED
    assert github.waits == [20.5]


def test_githubs_two_kinds_of_403_are_told_apart(github: Desk) -> None:
    slow = {"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}
    github.forge.troubles = [Trouble("GET", ANY, status=403, body=slow, times=2)]
    assert github.post(body()).what is What.CREATED
    assert len(github.waits) == 2
    github.forge.users[TOKEN]["role"] = "read"
    text = _reads_only(github)
    assert "SKY-APPLY-332" in text
    assert "pull-requests: write" in text
    assert "fork" in text
    assert "pull_request_target" in text
    assert len(github.waits) == 2


def _reads_only(at: Desk) -> str:
    with pytest.raises(ForgeError) as error:
        at.post(body("another", tag="other"))
    return "\n".join(f"{d.code} {d.summary} {d.hint}" for d in error.value.diagnostics)


def test_a_gitlab_token_without_rights_is_told_what_it_needs() -> None:
    with desk(Name.GITLAB, role="read") as at:
        text = refused(at)
    assert "SKY-APPLY-332" in text
    assert "scope `api`" in text


def test_an_unknown_token_is_told_so(at: Desk) -> None:
    at.forge.users.clear()
    text = refused(at)
    assert "SKY-APPLY-331" in text
    assert ("CI_JOB_TOKEN" in text) == (at.name is Name.GITLAB)


def test_a_pull_request_that_is_not_there_is_told_so(at: Desk) -> None:
    del at.forge.comments[REPO, NUMBER]
    text = refused(at)
    assert "SKY-APPLY-333" in text
    assert "--number" in text


def test_a_proxys_page_is_no_list_of_comments(at: Desk) -> None:
    at.forge.troubles = [Trouble("GET", ANY, status=200, raw=b"<html>sign in</html>", times=99)]
    text = refused(at)
    assert "SKY-APPLY-335" in text
    assert "proxy" in text
    assert at.forge.writes() == []


def test_a_proxys_page_in_place_of_the_new_comment_is_an_error(at: Desk) -> None:
    at.forge.troubles = [Trouble("POST", ANY, status=200, raw=b"<html>sign in</html>", times=99)]
    assert "proxy" in refused(at)


@pytest.mark.parametrize("odd", [{}, {"id": "7"}, [], None])
def test_json_that_is_no_comment_is_an_error(at: Desk, odd: object) -> None:
    at.forge.troubles = [Trouble("POST", ANY, status=201, body=odd, times=99)]
    assert "SKY-APPLY-335" in refused(at)


@pytest.mark.parametrize("odd", [{"message": "x"}, "text", None, {"a": [[[[[["deep"]]]]]]}])
def test_json_that_is_no_list_is_an_error(at: Desk, odd: object) -> None:
    at.forge.troubles = [Trouble("GET", ANY, status=200, body=odd, times=99)]
    assert "SKY-APPLY-335" in refused(at)


def test_rows_that_are_no_comments_are_passed_over(at: Desk) -> None:
    rows = [
        None,
        3,
        {},
        {"id": None, "body": body()},
        {"id": 5, "body": None},
        {"id": 6, "body": body(), "author": 3, "user": 3},
    ]
    at.forge.troubles = [Trouble("GET", ANY, status=200, body=rows)]
    assert at.post(body()).what is What.CREATED


def test_pages_without_end_end(at: Desk) -> None:
    loop = {"Link": f'<{at.forge.url}/repos/x?page=2>; rel="next"', "X-Next-Page": "2"}
    at.forge.troubles = [Trouble("GET", ANY, status=200, body=[], headers=loop, times=9999)]
    assert "no end" in refused(at)
    assert len(at.forge.asked) < 5


def test_a_redirect_to_another_host_never_carries_the_token(at: Desk) -> None:
    with served(GitHub()) as other:
        to = {"Location": f"{other.url}/repos/acme/jobs/issues/7/comments?secret=x"}
        for status in (301, 302, 307, 308):
            at.forge.troubles = [Trouble("GET", ANY, status=status, headers=to)]
            text = refused(at)
            assert "SKY-APPLY-336" in text
            assert "secret=x" not in text
        assert other.asked == []


@pytest.mark.parametrize("to", ["http://[::1", "//[", "http://127.0.0.1:99999999/", "\x7f", "http://x y/"])
def test_a_redirect_to_what_is_no_address_is_an_error(at: Desk, to: str) -> None:
    at.forge.troubles = [Trouble("GET", ANY, status=302, headers={"Location": to}, times=99)]
    assert "SKY-APPLY-33" in refused(at)


@pytest.mark.parametrize(
    "link", ["<http://[::1>; rel=next", "<>; rel=next", "; rel=next", "<", '<x>; rel="next"; =', ","]
)
def test_a_link_that_is_none_does_no_harm(github: Desk, link: str) -> None:
    github.forge.troubles = [Trouble("GET", ANY, status=200, body=[], headers={"Link": link}, times=99)]
    if "[" in link or "<x>" in link:
        assert "SKY-APPLY-33" in refused(github)
    else:
        assert github.post(body()).what is What.CREATED


def test_graphql_may_lack_a_comment_that_was_deleted_meanwhile(github: Desk) -> None:
    github.post(body("one"))
    there = github.forge.place(REPO, NUMBER)[0]
    nodes = {"data": {"nodes": [{"id": f"IC_{there['id']}", "viewerDidAuthor": True, "isMinimized": False}, None]}}
    errors = [{"type": "NOT_FOUND", "message": "Could not resolve to a node"}]
    github.forge.troubles = [Trouble("POST", "/graphql", status=200, body={**nodes, "errors": errors})]
    done = github.post(body("two", at="2026-11-30T11:00:00Z"))
    assert done.what is What.UPDATED
    assert done.notes == ()


def test_a_link_to_another_host_is_not_followed(github: Desk) -> None:
    with served(GitHub()) as other:
        link = {"Link": f'<{other.url}/repos/x?page=2>; rel="next"'}
        github.forge.troubles = [Trouble("GET", ANY, status=200, body=[], headers=link)]
        assert "SKY-APPLY-336" in refused(github)
        assert other.asked == []


def test_a_repository_that_was_renamed_is_followed_within_its_host(github: Desk) -> None:
    to = {"Location": f"{github.forge.url}/repos/acme/jobs/issues/7/comments?per_page=100"}
    old = replace(github.place, repo="acme/old")
    github.forge.troubles = [Trouble("GET", r"/repos/acme/old/.*", status=301, headers=to, times=9)]
    with opened(old, TOKEN, github.patience) as forge:
        assert forge.comments(lambda _: True) == []
    github.forge.troubles = [Trouble("GET", ANY, status=301, headers=to, times=99)]
    assert "from one address to the next" in refused(github)


@pytest.mark.parametrize(
    "url",
    [
        "http://api.github.com",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example/api",
        "https://user:pw@github.example/api",
        "https://github.example/api?x=1",
        "https://github.example/#x",
        "ftp://github.example",
        "file:///etc/passwd",
        "github.example/api",
        "https://",
        "https://[::1",
        "https://x:99999999/",
        "",
    ],
)
def test_an_address_that_no_token_may_go_to_is_refused(url: str) -> None:
    with pytest.raises(ForgeError) as error:
        refuse_address(url)
    assert error.value.diagnostics[0].code == "SKY-APPLY-336"
    assert "pw" not in error.value.diagnostics[0].summary


@pytest.mark.parametrize(
    "url", ["https://api.github.com", "http://127.0.0.1:8080/api/v3", "http://[::1]:1/", "http://localhost:9"]
)
def test_an_address_of_an_api_is_taken(url: str) -> None:
    refuse_address(url)


@pytest.mark.parametrize("secret", ["a b", "a\nX-Evil: 1", "t\u00f6ken", "a" * 5000])
def test_a_token_that_is_none_is_refused_unseen(at: Desk, secret: str) -> None:
    with pytest.raises(ForgeError) as error:
        at.post(body(), token=secret)
    assert error.value.diagnostics[0].code == "SKY-APPLY-331"
    assert secret not in str(error.value)


def test_the_token_is_in_no_words_no_log_and_no_repr(at: Desk, caplog: pytest.LogCaptureFixture) -> None:
    """Case 11: not even where the forge itself repeats it."""
    caplog.set_level(logging.DEBUG)
    at.forge.troubles = [Trouble("GET", ANY, status=400, body={"message": f"token {TOKEN} is odd"}, times=9)]
    text = refused(at)
    assert "[token]" in text
    with opened(at.place, TOKEN) as forge:
        assert TOKEN not in repr(forge) + repr(vars(forge))
    assert TOKEN not in caplog.text


def test_a_forges_message_is_one_short_printable_line(at: Desk) -> None:
    at.forge.troubles = [Trouble("GET", ANY, status=400, body={"message": "\x1b[31mred\n" + "x" * 9000}, times=9)]
    text = refused(at)
    assert "\x1b" not in text
    assert len(text) < 700


def test_nobody_there_is_an_error_after_all_attempts(at: Desk) -> None:
    gone = replace(at.place, api="http://127.0.0.1:9")
    with opened(gone, TOKEN, at.patience) as forge, pytest.raises(ForgeError, match="does not answer"):
        forge.comments(lambda _: True)
    assert len(at.waits) == at.attempts - 1


def test_githubs_enterprise_has_its_graphql_beside_its_rest() -> None:
    forge = GitHub(prefix="/api/v3")
    forge.user(TOKEN, "skyplan[bot]", kind="Bot")
    forge.place(REPO, NUMBER)
    with served(forge):
        at = Desk(forge=forge, name=Name.GITHUB)
        at.post(body("one"))
        at.post(body("two", at="2026-11-30T11:00:00Z"), behavior="hide-and-new")
    assert [c["minimised"] for c in forge.place(REPO, NUMBER)] == [True, False]
