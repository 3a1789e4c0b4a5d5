"""How a node takes its seat: its proof is judged, then the record decides; the token it gets is known here for as long as the answer takes.

Decides what a proof's replay is recognised by, and how long a session is.  Which machine may have which seat is the record's.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from planner.model.errors import Unavailable
from planner.model.runtime import SESSION_SECONDS, Joined, NodeIdentity, Refusal, Refused, Seat
from planner.server import bodies
from planner.server.answers import Busy
from planner.server.sessions import digest

if TYPE_CHECKING:
    from planner.server.services import Services

_SIGNATURE: Final = re.compile(r"Signature=([0-9a-f]{64})", re.ASCII)


def join(services: Services, wanted: bodies.Join, seat: Seat) -> bodies.Joined:
    """Blocks: it asks the record, and for some schemes the platform.  Raises Refused, Busy."""
    now = services.clock()
    verifier = services.verifiers.get(wanted.proof.scheme)
    if verifier is None:
        raise Refused(Refusal.IDENTITY, f"proofs by `{wanted.proof.scheme}` are not taken here")
    try:
        identity = verifier.verify(wanted.proof.value, now)
    except Unavailable as error:
        raise Busy(f"the proof cannot be judged now: {error}") from None
    _of_its_account(services, seat, identity)
    token = secrets.token_urlsafe(32)
    joined = services.runtime.admit(
        seat,
        identity,
        instance_id=wanted.instance_id or "",
        key_sha256=digest(wanted.key),
        proof_sha256=proof_digest(wanted.proof.scheme, wanted.proof.value),
        token_sha256=digest(token),
        at=now,
        expires_at=now + timedelta(seconds=SESSION_SECONDS),
    )
    return _answer(services, joined, token)


def _of_its_account(services: Services, seat: Seat, identity: NodeIdentity) -> None:
    """In an account of his own anybody can make what names a machine as he likes: a session of a role, another machine of that name.  Raises Refused."""
    if not (identity.account or identity.principal):
        return
    run = next((r for r in services.record.runs(seat.job) if r.generation == seat.generation), None)
    if run is None or not 0 <= seat.rank < run.nodes:
        return  # refused by the record, in its own words
    place = run.part_of(seat.rank)
    account = services.accounts.get((place.cloud, place.target))
    if account is not None and identity.account and account.lower() != identity.account.lower():
        raise Refused(Refusal.IDENTITY, f"the proof is of another account than that of {place.cloud}:{place.target}")
    # where the platform does not say which machine it is, whom it runs as must: any machine of the account could name another
    unnamed = identity.principal and not identity.instance_id
    if unnamed and services.names is not None and services.names.denies(seat.job, place, identity):
        raise Refused(Refusal.IDENTITY, f"the proof is of another identity than that of {seat.job}'s nodes")


def renew(services: Services, token_sha256: str) -> bodies.Joined:
    """The same with a new token.  The record is asked for the session, not the memory.  Raises Refused."""
    now = services.clock()
    session = services.runtime.session(token_sha256, now)
    if session is None:
        raise Refused(Refusal.UNKNOWN, "the session is not known or has ended: join again")
    token = secrets.token_urlsafe(32)
    joined = services.runtime.renew(
        session, token_sha256=digest(token), at=now, expires_at=now + timedelta(seconds=SESSION_SECONDS)
    )
    return _answer(services, joined, token)


def proof_digest(scheme: str, value: Any) -> str:
    """By what a proof is recognised: the part that its signature is about or is, so that no other writing of it passes for a new one."""
    fields = _fields(value)
    if scheme == "one-time":
        return digest(str(value))
    if scheme == "aws-iid" and isinstance(fields.get("document"), str):
        return digest(fields["document"])
    if scheme == "aws-sts":
        signed = (str(text) for name, text in _fields(fields.get("headers")).items() if name.lower() == "authorization")
        if found := _SIGNATURE.search(next(signed, "")):
            return digest(found[1])
    if isinstance(value, str) and value.count(".") == 2:  # noqa: PLR2004 - a JWT: header.payload.signature
        return digest(value.rpartition(".")[0])
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _fields(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def skew_seconds(said: datetime | None, now: datetime) -> float:
    """How far a node's clock is off."""
    return abs((said - now).total_seconds()) if said else 0.0


def _answer(services: Services, joined: Joined, token: str) -> bodies.Joined:
    return bodies.Joined(
        session=token,
        expires_at=joined.session.expires_at,
        renew_after_seconds=SESSION_SECONDS // 2,
        manifest_key=joined.manifest_key.hex(),
        project=services.project,
        nodes=joined.nodes,
        stop_at=joined.stop_at,
        stream=joined.stream or None,
        through=joined.through,
        broker=services.settings.broker_url,
    )
