"""How a node proves who it is, and how an answer proves where it came from.

A `Proof` judges one scheme.  There is one so far: HMAC-SHA256 with the node's one-time join secret.  Platform-signed identities (AWS instance
identity documents; tokens of GCP, Azure and Nebius) become further schemes beside it.  What is signed is `Claim.message`: lines that cannot hold a line break, so
that no two claims have one message.  `modules.agent.proof` makes the same bytes on the node; a test holds the two together.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from planner.server.peers_file import Member

DOMAIN = "skyplan-rendezvous-v1"
"""First line of everything signed, so that a signature made here means nothing elsewhere."""
HMAC_SHA256 = "hmac-sha256"
_MAC = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What a node says of itself.  `purpose` is `join` or `peers`; a `peers` claim has no key and no endpoint."""

    purpose: str
    job: str
    generation: int
    name: str
    nonce: str
    time: int
    public_key: str = ""
    endpoint: str = ""

    @property
    def message(self) -> bytes:
        """The bytes that a proof is about."""
        lines = (
            DOMAIN,
            self.purpose,
            self.job,
            str(self.generation),
            self.name,
            self.public_key,
            self.endpoint,
            self.nonce,
            str(self.time),
        )
        return "\n".join(lines).encode()


def answer_message(claim: Claim, status: int, body: bytes) -> bytes:
    """The bytes that an answer's seal is about: bound to the question by its nonce, so that no old answer passes for a new one."""
    about = (DOMAIN, "answer", claim.purpose, claim.job, str(claim.generation), claim.name, claim.nonce, str(status))
    return "\n".join((*about, hashlib.sha256(body).hexdigest())).encode()


class Proof(Protocol):
    """One way of proving.  `refuse` says why a proof is wrong, in words that reveal no secret; None where it holds."""

    def refuse(self, member: Member, claim: Claim, value: str) -> str | None:
        """Judge the proof `value` of a claim by that member."""
        ...

    def seal(self, member: Member, message: bytes) -> str | None:
        """What proves an answer to that member; None where the scheme leaves that to TLS."""
        ...


class JoinSecret:
    """HMAC-SHA256 under the SHA-256 of the node's one-time join secret."""

    def refuse(self, member: Member, claim: Claim, value: str) -> str | None:
        """In constant time."""
        if not _MAC.fullmatch(value):
            return "the proof must be 64 lower-case hex digits"
        if not hmac.compare_digest(_mac(member.key, claim.message), value):
            return f"the proof does not match {member.name}'s join secret and this request"
        return None

    def seal(self, member: Member, message: bytes) -> str | None:
        """With the same key, over a message of another form."""
        return _mac(member.key, message)


def _mac(key: bytes, message: bytes) -> str:
    return hmac.new(key, message, hashlib.sha256).hexdigest()
