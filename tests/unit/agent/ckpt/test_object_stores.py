"""What the object stores send and how they take what comes back: signatures against botocore's, pages, faults, refusals.  The emulators' part is tests/e2e/test_stores.py."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from modules.agent.ckpt import remote, s3
from modules.agent.ckpt.azure import AzureStore
from modules.agent.ckpt.errors import Absent, CredentialRefused, Exists, StoreError
from modules.agent.ckpt.gcs import GcsStore
from modules.agent.ckpt.open import open_store
from modules.agent.ckpt.remote import Ask
from modules.agent.ckpt.s3 import S3Store
from modules.agent.ckpt.store import Content, read_small
from modules.agent.ckpt.wire import Wire
from tests.unit.agent.ckpt.scripted import HANG_UP, Say, Scripted

LEASE = {
    "id": "one",
    "aws": {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "secret", "session_token": "token"},
    "gcp": {"access_token": "ya29.token"},
    "azure": {"sas": "sig=abc"},
}
SECRETS = ("AKIDEXAMPLE", "secret", "token", "sig=abc")
Serve = Callable[..., Scripted]


@pytest.fixture
def serve(socket_enabled: None) -> Iterator[Serve]:
    made: list[Scripted] = []

    def start(*answers: Say) -> Scripted:
        made.append(Scripted(answers))
        return made[-1]

    yield start
    for server in made:
        server.close()


@pytest.fixture
def opened() -> Iterator[Callable[..., Any]]:
    """`opened(kind, server, …)`: a store; `store.slept` is how long it paused."""
    made: list[Any] = []

    def make(kind: str, server: Scripted, credential: Any = None, **other: Any) -> Any:
        slept: list[float] = []
        uri = {"s3": "s3://ckpt/train/", "gs": "gs://ckpt/train/", "az": "az://acme/ckpt/train/"}[kind]
        world = {"sleep": slept.append, "chance": lambda: 1.0, **other}
        store: Any = open_store(uri, credential or (lambda access, refused: LEASE), endpoint=server.url, **world)
        store.slept = slept
        made.append(store)
        return store

    yield make
    for store in made:
        store.close()


ERROR = '<?xml version="1.0"?><Error><Code>{}</Code><Message>m</Message></Error>'


def refusal(code: str, status: int) -> Say:
    return Say(status, ERROR.format(code).encode(), (("x-ms-error-code", code),))


class TestSignature:
    @pytest.mark.parametrize("target", ["a.pt", "a%20b/%C3%BC%2B.pt", ""])
    @pytest.mark.parametrize("query", [(), (("list-type", "2"), ("prefix", "a b/ü+"), ("continuation-token", "x/=="))])
    @pytest.mark.parametrize("token", ["", "a/token=="])
    def test_is_that_of_botocore(self, target: str, query: tuple[tuple[str, str], ...], token: str) -> None:
        from botocore.auth import S3SigV4Auth
        from botocore.awsrequest import AWSRequest
        from botocore.credentials import Credentials

        lease = {"aws": {"access_key_id": "AKID", "secret_access_key": "s3cr3t/+", "session_token": token}}
        moment = dt.datetime(2026, 11, 30, 12, 0, 0, tzinfo=dt.UTC)
        store = S3Store("s3://acme-ckpt/t/", lambda a, r: lease, region="eu-central-1", clock=moment.timestamp)
        ask = Ask("PUT" if not query else "GET", target, query, (("if-none-match", "*"),))
        wire = store._wire(lease)
        signed = store._sign(ask, lease, wire)
        assert wire.origin == "https://acme-ckpt.s3.eu-central-1.amazonaws.com"

        request = AWSRequest(
            ask.method, wire.origin + signed.target, {"If-None-Match": "*", "X-Amz-Content-SHA256": s3._EMPTY}
        )
        request.context.update({"timestamp": "20261130T120000Z", "payload_signing_enabled": True})
        auth = S3SigV4Auth(Credentials("AKID", "s3cr3t/+", token or None), "s3", "eu-central-1")
        request.headers["X-Amz-Date"] = "20261130T120000Z"
        if token:
            request.headers["X-Amz-Security-Token"] = token
        canonical = auth.canonical_request(request)
        given = auth.signature(auth.string_to_sign(request, canonical), request)
        assert signed.headers["authorization"].endswith(f"Signature={given}")
        assert ("x-amz-security-token" in signed.headers) is bool(token)

    def test_a_bucket_with_a_dot_or_an_own_endpoint_is_path_style(self) -> None:
        dotted = S3Store("s3://acme.ckpt/t/", lambda a, r: LEASE, region="eu-west-1")
        assert dotted._wire(LEASE).path == "/acme.ckpt"
        nebius = S3Store("nebius://ckpt/t/", lambda a, r: LEASE)
        lease = {
            "nebius": {
                "access_key_id": "k",
                "secret_access_key": "s",
                "endpoint": "https://storage.eu-north1.nebius.cloud",
            }
        }
        wire = nebius._wire(lease)
        assert (wire.host, wire.path) == ("storage.eu-north1.nebius.cloud", "/ckpt")
        assert "/eu-north1/s3/" in nebius._sign(Ask("GET", "x"), lease, wire).headers["authorization"]

    def test_nothing_goes_in_the_clear_to_another_machine(self) -> None:
        with pytest.raises(StoreError, match="plain HTTP"):
            Wire("http://storage.example.com")

    def test_the_region_is_learnt_from_the_first_answer(self, serve: Serve, opened: Any) -> None:
        server = serve(Say(301, b"", (("x-amz-bucket-region", "eu-west-3"),)), Say(200, b"x"))
        assert read_small(opened("s3", server), "x", 9) == b"x"
        assert "/eu-west-3/s3/" in server.asked[1].headers["authorization"]

    def test_a_clock_that_is_off_is_corrected_by_the_stores(self, serve: Serve, opened: Any) -> None:
        late = Say(403, ERROR.format("RequestTimeTooSkewed").encode(), (("Date", "Mon, 30 Nov 2026 18:00:00 GMT"),))
        server = serve(late, Say(200, b"x"))
        assert read_small(opened("s3", server, clock=lambda: 0.0), "x", 9) == b"x"
        assert server.asked[1].headers["x-amz-date"].startswith("20261130T1")


def s3_page(*keys: str, more: str = "") -> Say:
    rows = "".join(f"<Contents><Key>train/{key}</Key><Size>1</Size></Contents>" for key in keys)
    ends = (
        f"<IsTruncated>true</IsTruncated><NextContinuationToken>{more}</NextContinuationToken>"
        if more
        else "<IsTruncated>false</IsTruncated>"
    )
    return Say(
        200,
        f'<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{rows}{ends}</ListBucketResult>'.encode(),
    )


class TestListing:
    def test_s3_goes_to_the_last_page(self, serve: Serve, opened: Any) -> None:
        server = serve(s3_page("g1/a", "g1/b%2Bc", more="a/b=="), s3_page("g1/d"))
        assert [entry.name for entry in opened("s3", server).entries("g1/")] == ["g1/a", "g1/b+c", "g1/d"]
        assert "continuation-token=a%2Fb%3D%3D" in server.asked[1].path
        assert "prefix=train%2Fg1%2F" in server.asked[1].path

    def test_gcs_goes_to_the_last_page(self, serve: Serve, opened: Any) -> None:
        first = b'{"items": [{"name": "train/g1/a", "size": "7"}], "nextPageToken": "t+"}'
        server = serve(Say(200, first), Say(200, b"{}"))
        assert list(opened("gs", server).entries("g1/")) == [("g1/a", 7)]
        assert "pageToken=t%2B" in server.asked[1].path

    def test_azure_goes_to_the_last_page(self, serve: Serve, opened: Any) -> None:
        def page(name: str, marker: str) -> Say:
            blob = (
                f"<Blob><Name>train/g1/{name}</Name><Properties><Content-Length>3</Content-Length></Properties></Blob>"
            )
            return Say(
                200,
                f'\ufeff<?xml version="1.0"?><EnumerationResults><Blobs>{blob}</Blobs><NextMarker>{marker}</NextMarker></EnumerationResults>'.encode(),
            )

        server = serve(page("a", "m!1"), page("b", ""))
        assert [tuple(e) for e in opened("az", server).entries("g1/")] == [("g1/a", 3), ("g1/b", 3)]
        assert "marker=m%211" in server.asked[1].path
        assert server.asked[1].path.endswith("&sig=abc")

    @pytest.mark.parametrize("kind", ["s3", "gs", "az"])
    @pytest.mark.parametrize("answer", [Say(404), Say(400, b"no"), Say(200, b"<html>"), Say(200, b""), Say(200, b"[]")])
    def test_one_that_fails_is_an_error_and_never_short(
        self, serve: Serve, opened: Any, kind: str, answer: Say
    ) -> None:
        store = opened(kind, serve(*[answer] * 9))
        with pytest.raises(StoreError) as caught:
            list(store.entries("g1/"))
        assert not isinstance(caught.value, Absent) or kind == "s3"

    @pytest.mark.parametrize(
        ("kind", "body"),
        [
            ("s3", b'<html xmlns="http://www.w3.org/1999/xhtml"><body>Back soon</body></html>'),
            ("s3", b"<ListBucketResult><Contents><Key>train/g1/a</Key><Size>much</Size></Contents></ListBucketResult>"),
            ("s3", b'<?xml version="1.0" encoding="big5"?><ListBucketResult/>'),
            ("az", b'<html xmlns="http://www.w3.org/1999/xhtml"><body>Back soon</body></html>'),
            ("az", b"<EnumerationResults><Blobs><Blob><Name>train/g1/a</Name></Blob></Blobs></EnumerationResults>"),
            ("gs", b'{"message": "back soon"}'),
            ("gs", b'{"items": 5}'),
            ("gs", b'{"items": [{"name": "train/g1/a"}]}'),
            ("gs", b'{"items": [{"name": "train/g1/a", "size": "-1"}]}'),
            ("gs", b"[" * 100_000),
        ],
    )
    def test_what_is_no_listing_is_an_error_and_no_empty_store(
        self, serve: Serve, opened: Any, kind: str, body: bytes
    ) -> None:
        with pytest.raises(StoreError):
            list(opened(kind, serve(Say(200, body))).entries("g1/"))

    @pytest.mark.parametrize("kind", ["s3", "gs", "az"])
    def test_one_that_goes_in_a_circle_ends(self, serve: Serve, opened: Any, kind: str) -> None:
        def page(token: str) -> Say:
            if kind == "s3":
                return s3_page("g1/a", more=token)
            if kind == "gs":
                return Say(200, f'{{"nextPageToken": "{token}"}}'.encode())
            return Say(200, f"<EnumerationResults><NextMarker>{token}</NextMarker></EnumerationResults>".encode())

        with pytest.raises(StoreError, match="again"):
            list(opened(kind, serve(page("a"), page("b"), page("a"), page("b"))).entries("g1/"))

    @pytest.mark.parametrize("kind", ["s3", "gs", "az"])
    def test_a_length_that_is_none_is_an_error(self, serve: Serve, opened: Any, kind: str) -> None:
        server = serve(Say(200, b"x", (("Content-Length", "much"),)))
        with pytest.raises(StoreError), opened(kind, server).opened("g1/a"):
            pass

    def test_one_that_fails_on_its_second_page_is_an_error(self, serve: Serve, opened: Any) -> None:
        store = opened("s3", serve(s3_page("g1/a", more="t"), *[Say(503)] * 20))
        with pytest.raises(StoreError, match="503"):
            list(store.entries("g1/"))

    def test_one_without_the_way_to_its_next_page_is_an_error(self, serve: Serve, opened: Any) -> None:
        body = b"<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>"
        with pytest.raises(StoreError, match="not where"):
            list(opened("s3", serve(Say(200, body))).entries("g1/"))

    def test_a_document_with_entities_is_refused(self, serve: Serve, opened: Any) -> None:
        with pytest.raises(StoreError, match="document type"):
            list(opened("s3", serve(Say(200, b'<!DOCTYPE a [<!ENTITY b "c">]><a/>'))).entries("g1/"))


class TestFaults:
    @pytest.mark.parametrize("kind", ["s3", "gs", "az"])
    @pytest.mark.parametrize("fault", [Say(503), Say(500), Say(429), HANG_UP, Say(200, b"x" * 50, cut=10)])
    def test_what_passes_is_asked_again(self, serve: Serve, opened: Any, kind: str, fault: Say) -> None:
        listing = {"s3": s3_page(), "gs": Say(200, b"{}"), "az": Say(200, b"<EnumerationResults/>")}[kind]
        store = opened(kind, serve(fault, fault, listing))
        assert list(store.entries("g1/")) == []
        assert store.slept == [0.6, 1.2]

    def test_what_does_not_pass_ends_after_a_minute_of_pauses(self, serve: Serve, opened: Any) -> None:
        store = opened("s3", serve(*[Say(503)] * 20))
        with pytest.raises(StoreError, match="503"):
            store.put("g1/x", Content.of(b"x"))
        assert len(store.slept) == remote.MAX_TRIES - 1
        assert 30 < sum(store.slept) < 90

    @pytest.mark.parametrize("kind", ["s3", "gs", "az"])
    def test_reading_goes_on_where_the_connection_broke(self, serve: Serve, opened: Any, kind: str) -> None:
        body, tag = bytes(range(256)) * 8, (("ETag", '"e1"'),)
        server = serve(
            Say(200, body, tag, cut=1000), HANG_UP, Say(206, body[1000:], tag, cut=50), Say(206, body[1050:], tag)
        )
        assert read_small(opened(kind, server), "g1/x", 1 << 20) == body
        assert [asked.headers.get("range") for asked in server.asked] == [
            None,
            "bytes=1000-",
            "bytes=1000-",
            "bytes=1050-",
        ]
        assert server.asked[3].headers["if-match"] == '"e1"'

    def test_a_file_that_changed_meanwhile_is_no_file(self, serve: Serve, opened: Any) -> None:
        server = serve(Say(200, b"x" * 100, (("ETag", '"e1"'),), cut=10), Say(412, b""))
        with pytest.raises(StoreError):
            read_small(opened("s3", server), "g1/x", 1000)

    def test_a_store_that_begins_anew_is_not_believed(self, serve: Serve, opened: Any) -> None:
        server = serve(Say(200, b"x" * 100, cut=10), Say(200, b"x" * 100))
        with pytest.raises(StoreError, match="another place"):
            read_small(opened("s3", server), "g1/x", 1000)

    def test_one_that_breaks_again_and_again_ends(self, serve: Serve, opened: Any) -> None:
        server = serve(Say(200, b"x" * 100, cut=0), *[Say(200, b"x" * 100, cut=0)] * 20)
        with pytest.raises(StoreError, match="again and again"):
            read_small(opened("s3", server), "g1/x", 1000)

    def test_an_upload_that_fails_with_200_is_none(self, serve: Serve, opened: Any) -> None:
        begun = Say(200, b"<R><UploadId>u</UploadId></R>")
        part = Say(200, b"", (("ETag", '"e"'),))
        failed = Say(200, ERROR.format("InternalError").encode())
        server = serve(begun, part, part, failed, Say(200, b"<CompleteMultipartUploadResult/>"))
        store = opened("s3", server)
        store.part_bytes = 4
        store.put("g1/x", Content.of(b"12345678"))
        assert server.asked[4].headers["if-none-match"] == "*"
        assert b"<PartNumber>2</PartNumber>" in server.asked[4].body

    def test_an_upload_whose_answer_was_lost_exists(self, serve: Serve, opened: Any) -> None:
        begun = Say(200, b"<R><UploadId>u</UploadId></R>")
        server = serve(
            begun,
            Say(200, b"", (("ETag", '"e"'),)),
            Say(200, b"", (("ETag", '"e"'),)),
            HANG_UP,
            refusal("NoSuchUpload", 404),
            Say(204),
        )
        store = opened("s3", server)
        store.part_bytes = 4
        with pytest.raises(Exists):
            store.put("g1/x", Content.of(b"12345678"))
        assert server.asked[-1].method == "DELETE"

    @pytest.mark.parametrize(
        ("kind", "answer"),
        [("s3", refusal("PreconditionFailed", 412)), ("gs", Say(412)), ("az", refusal("BlobAlreadyExists", 409))],
    )
    def test_a_put_whose_answer_was_lost_exists(self, serve: Serve, opened: Any, kind: str, answer: Say) -> None:
        server = serve(HANG_UP, answer)
        with pytest.raises(Exists):
            opened(kind, server).put("g1/x", Content.of(b"x"))

    def test_puts_are_conditional(self, serve: Serve, opened: Any) -> None:
        for kind in ("s3", "az"):
            server = serve(Say(201))
            opened(kind, server).put("g1/x", Content.of(b"x"))
            assert server.asked[0].headers["if-none-match"] == "*"
        server = serve(Say(200, b"{}"))
        opened("gs", server).put("g1/x", Content.of(b"x"))
        assert "ifGenerationMatch=0" in server.asked[0].path

    def test_s3_conflicts_are_asked_again(self, serve: Serve, opened: Any) -> None:
        opened("s3", serve(refusal("ConditionalRequestConflict", 409), Say(200))).put("g1/x", Content.of(b"x"))


STEP = 256 << 10


class TestResumable:
    """Google's uploads in pieces."""

    def begun(self, server_url: str = "") -> Say:
        return Say(200, b"", (("Location", f"{server_url}/upload/storage/v1/b/ckpt/o?upload_id=u"),))

    def test_goes_on_from_what_the_store_has(self, serve: Serve, opened: Any) -> None:
        body = bytes(2 * STEP + 10)
        server = serve(
            self.begun(),
            Say(308, b"", (("Range", f"bytes=0-{STEP - 1}"),)),
            Say(503),
            Say(308, b"", (("Range", f"bytes=0-{2 * STEP - 1}"),)),
            Say(200, b"{}"),
        )
        store = opened("gs", server)
        store.part_bytes = STEP
        store.put("g1/x", Content.of(body))
        assert "ifGenerationMatch=0" in server.asked[0].path
        assert "uploadType=resumable" in server.asked[0].path
        total = len(body)
        assert [asked.headers["content-range"] for asked in server.asked[1:]] == [
            f"bytes 0-{STEP - 1}/{total}",
            f"bytes {STEP}-{2 * STEP - 1}/{total}",
            f"bytes {STEP}-{2 * STEP - 1}/{total}",
            f"bytes {2 * STEP}-{total - 1}/{total}",
        ]

    def test_begins_anew_where_the_store_forgot(self, serve: Serve, opened: Any) -> None:
        server = serve(self.begun(), Say(410), self.begun(), Say(200, b"{}"))
        store = opened("gs", server)
        store.part_bytes = 4
        store.put("g1/x", Content.of(b"12345678"))

    def test_gives_the_token_to_no_other_host(self, serve: Serve, opened: Any) -> None:
        server = serve(self.begun("http://127.0.0.2:1"))
        store = opened("gs", server)
        store.part_bytes = 4
        with pytest.raises(StoreError, match="another host"):
            store.put("g1/x", Content.of(b"12345678"))

    def test_one_that_does_not_go_on_ends(self, serve: Serve, opened: Any) -> None:
        server = serve(self.begun(), *[Say(308)] * 9)
        store = opened("gs", server)
        store.part_bytes = 4
        with pytest.raises(StoreError, match="does not go on"):
            store.put("g1/x", Content.of(b"12345678"))


class TestCredentials:
    REFUSALS = (
        ("s3", Say(400)),  # HEAD of an expired token: litData#458
        ("s3", refusal("ExpiredToken", 400)),
        ("s3", refusal("InvalidAccessKeyId", 403)),
        ("s3", refusal("AccessDenied", 403)),
        ("gs", Say(401, b'{"error": {"code": 401}}')),
        ("az", refusal("AuthenticationFailed", 403)),
        ("az", refusal("AuthorizationPermissionMismatch", 403)),
    )

    @pytest.mark.parametrize(("kind", "answer"), REFUSALS)
    def test_a_fresh_lease_is_asked_for_at_once(self, serve: Serve, opened: Any, kind: str, answer: Say) -> None:
        asked: list[tuple[str, str]] = []

        def credential(access: str, refused: str) -> Any:
            asked.append((access, refused))
            return LEASE

        store = opened(kind, serve(answer, Say(200, b"x")), credential)
        assert read_small(store, "x", 9) == b"x"
        assert asked == [("read", ""), ("read", "one")]
        assert store.slept == []

    @pytest.mark.parametrize(("kind", "answer"), REFUSALS)
    def test_refused_twice_is_a_credential_failure_without_secrets(
        self, serve: Serve, opened: Any, kind: str, answer: Say
    ) -> None:
        store = opened(kind, serve(answer, answer))
        with pytest.raises(CredentialRefused) as caught:
            store.put("x", Content.of(b"x"))
        assert not any(secret in str(caught.value) for secret in SECRETS)

    def test_head_of_an_expired_lease(self, serve: Serve, opened: Any) -> None:
        store = opened("s3", serve(Say(400), Say(200, b"12345")))
        assert store.size("x") == 5

    def test_google_limits_are_no_refusal(self, serve: Serve, opened: Any) -> None:
        store = opened(
            "gs", serve(Say(403, b'{"error": {"errors": [{"reason": "rateLimitExceeded"}]}}'), Say(200, b"x"))
        )
        assert read_small(store, "x", 9) == b"x"
        assert store.slept

    def test_a_lease_of_another_cloud_is_an_error(self, serve: Serve, opened: Any) -> None:
        for kind in ("s3", "gs", "az"):
            with pytest.raises(StoreError, match="lease is none"):
                opened(kind, serve(), lambda access, refused: {"id": "x"}).put("x", Content.of(b"x"))


def test_a_file_that_became_shorter_is_no_upload(serve: Serve, opened: Any, tmp_path: Path) -> None:
    """The store waits for what was promised and hangs up; nothing of that is taken for good."""
    path = tmp_path / "x"
    path.write_bytes(b"1")
    server = serve(*[Say(200)] * 9)
    store = opened("az", server)
    store._to._seconds = 0.2
    with pytest.raises(StoreError):
        store.put("g1/x", Content(path, 2, "0" * 64))


def test_every_store_has_its_scheme() -> None:
    credential: Any = lambda access, refused: LEASE  # noqa: E731
    kinds = [type(open_store(uri, credential)) for uri in ("s3://b/x", "nebius://b/x", "gs://b/x", "az://a/c/x")]
    assert kinds == [S3Store, S3Store, GcsStore, AzureStore]
    with pytest.raises(StoreError, match="no store of this kind"):
        open_store("ftp://x", credential)
