"""Which lease may be minted: the rule itself, over any grants, seats and URIs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from planner.app.mint_rules import BOUNDS, SLACK, Allowed, NotGranted, Wanted, allowed, lifetime_seconds, parts
from planner.model.grants import Grant, Identity, Permission
from planner.model.runtime import Refusal, Refused, Seat
from planner.model.workload import Store

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
WORDS = st.sampled_from(["a", "b", "ckpt", "g1", "g3", "g33", "data", "x*y", "${q}", "o'b"])
PREFIXES = st.lists(WORDS, max_size=3).map("/".join)
BUCKETS = st.sampled_from(["one", "two"])


@st.composite
def uris(draw: st.DrawFn) -> str:
    store = draw(st.sampled_from(list(Store)))
    bucket = draw(BUCKETS)
    place = f"acct/{bucket}" if store is Store.AZURE_BLOB else bucket
    prefix, slash = draw(PREFIXES), draw(st.sampled_from(["", "/"]))
    return f"{store.value}://{place}/{prefix}{slash if prefix else ''}"


GRANTS = st.lists(
    st.builds(
        Grant,
        identity=st.sampled_from([Identity.NODE_DATA, Identity.NODE_CHECKPOINT]),
        permission=st.sampled_from([Permission.READ_OBJECTS, Permission.WRITE_CHECKPOINTS, Permission.READ_SECRET]),
        resource=uris(),
        reason=st.just("why"),
    ),
    max_size=6,
)
SEATS = st.builds(Seat, job=st.just("train"), generation=st.integers(1, 40), rank=st.integers(0, 3))


def grant(uri: str, permission: Permission) -> Grant:
    return Grant(identity=Identity.NODE_DATA, permission=permission, resource=uri, reason="")


def judged(grants, seat: Seat, uri: str, access: str) -> Allowed | None:
    try:
        return allowed(grants, Wanted(seat=seat, uri=uri, access=access))
    except NotGranted:
        return None


@given(GRANTS, SEATS, uris(), st.sampled_from(["read", "write"]))
def test_nothing_is_minted_that_no_grant_names(grants, seat, uri, access):
    found = judged(grants, seat, uri, access)
    same = [g for g in grants if parts(g.resource) == parts(uri)]
    data = [g for g in same if g.permission in {Permission.READ_OBJECTS, Permission.WRITE_CHECKPOINTS}]
    written = [g for g in same if g.permission is Permission.WRITE_CHECKPOINTS]
    assert (found is not None) == bool(written if access == "write" else data)
    if found is None:
        return
    store, bucket, prefix = parts(uri)
    assert (found.scope.store, found.scope.bucket) == (store.value, bucket)
    assert found.scope.reads == (prefix,)
    assert found.scope.writes == ((f"{prefix}g{seat.generation}/",) if access == "write" else ())


@given(GRANTS, SEATS, uris(), st.text(max_size=30))
def test_no_written_key_is_another_generations(grants, seat, uri, name):
    found = judged([*grants, grant(uri, Permission.WRITE_CHECKPOINTS)], seat, uri, "write")
    assert found is not None
    (own,) = found.scope.writes
    for other in range(1, 45):
        if other != seat.generation:
            assert not f"{found.scope.reads[0]}g{other}/{name}".startswith(own)


@given(GRANTS, GRANTS, SEATS, uris(), st.sampled_from(["read", "write"]))
def test_more_grants_never_widen_what_one_prefix_gets(grants, more, seat, uri, access):
    before, after = judged(grants, seat, uri, access), judged([*more, *grants], seat, uri, access)
    if before is not None:
        assert after == before


@given(st.text(max_size=40))
def test_any_text_is_a_prefix_or_a_refusal(text):
    for uri in (text, f"s3://{text}", f"s3://bucket/{text}", f"az://{text}/{text}"):
        try:
            store, bucket, prefix = parts(uri)
        except NotGranted:
            continue
        assert bucket
        assert not prefix or prefix.endswith("/")
        assert "//" not in f"/{prefix}"
        assert not {".", ".."} & set(prefix.split("/"))
        assert f"{store.value}://{bucket}/{prefix}".rstrip("/") == uri.rstrip("/")


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/ckpt/../other/",
        "s3://bucket/./ckpt/",
        "s3://bucket//ckpt/",
        "s3://bucket/ckpt//",
        "s3:///ckpt/",
        "s3://",
        "az://acct",
        "az://acct//x",
        "http://bucket/ckpt",
        "bucket/ckpt",
        "s3://bucket/ck\npt/",
        "S3://bucket/ckpt/",
        "s3://bucket/" + "x" * 3000,
    ],
)
def test_what_hides_something_is_refused(uri):
    with pytest.raises(NotGranted):
        parts(uri)


@pytest.mark.parametrize("uri", ["s3://all/ckpt", "s3://all/ckpt/"])
def test_the_last_slash_makes_no_difference(uri):
    found = judged(
        [grant("s3://all/ckpt/", Permission.WRITE_CHECKPOINTS)], Seat(job="t", generation=3, rank=0), uri, "write"
    )
    assert found is not None
    assert (found.uri, found.granted) == ("s3://all/ckpt/g3/", "ckpt/")


@pytest.mark.parametrize(
    "uri", ["s3://all/", "s3://all/ckpt/g3/", "s3://all/ckp/", "s3://all/ckpt2/", "s3://other/ckpt/", "gs://all/ckpt/"]
)
@pytest.mark.parametrize("access", ["read", "write"])
def test_neither_more_nor_less_than_a_grants_prefix(uri, access):
    grants = [grant("s3://all/ckpt/", Permission.WRITE_CHECKPOINTS)]
    assert judged(grants, Seat(job="t", generation=3, rank=0), uri, access) is None


@pytest.mark.parametrize("access", ["", "delete", "READ", "read write"])
def test_only_reading_and_writing(access):
    grants = [grant("s3://all/ckpt/", Permission.WRITE_CHECKPOINTS)]
    assert judged(grants, Seat(job="t", generation=3, rank=0), "s3://all/ckpt/", access) is None


LEFT = st.integers(-100_000, 100_000)


@given(st.sampled_from(list(Store)), st.none() | LEFT, st.integers(1, 10**6))
def test_a_lease_is_within_the_clouds_bounds_and_the_runs(store, left, asked):
    floor, ceiling = BOUNDS[store]
    hard_end = None if left is None else NOW + timedelta(seconds=left)
    if left is not None and left + SLACK.total_seconds() <= 0:
        with pytest.raises(Refused) as caught:
            lifetime_seconds(store, NOW, hard_end, asked)
        assert caught.value.word is Refusal.ENDED
        return
    seconds = lifetime_seconds(store, NOW, hard_end, asked)
    assert floor <= seconds <= ceiling
    if left is not None and left + SLACK.total_seconds() >= floor:
        assert seconds <= left + SLACK.total_seconds()
    assert seconds <= max(asked, floor)


@given(st.sampled_from(list(Store)), LEFT, LEFT)
def test_a_later_end_never_shortens_a_lease(store, one, other):
    assume(one <= other)
    ends = [NOW + timedelta(seconds=s) for s in (one, other)]
    try:
        first = lifetime_seconds(store, NOW, ends[0])
    except Refused:
        return
    assert first <= lifetime_seconds(store, NOW, ends[1])


def test_aws_is_never_below_botocores_floor_nor_above_role_chaining():
    """notes/iam.md §4, case 5: a chained session of more than an hour is a ValidationError; and the refresh storm below 15 minutes."""
    assert lifetime_seconds(Store.S3, NOW, None, 2 * 3600) == 3600
    assert lifetime_seconds(Store.S3, NOW, NOW - timedelta(minutes=14)) == 1800
