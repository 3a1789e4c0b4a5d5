"""How this node proves itself at the rendezvous, and how it knows the answer is the service's.

HMAC-SHA256 with the SHA-256 of the one-time join secret.  The signed bytes are the service's (`planner.server.proof`): a test holds the two together.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from pathlib import Path

from .errors import CONFIG, AgentError

DOMAIN = "skyplan-rendezvous-v1"
SCHEME = "hmac-sha256"
SHORTEST_SECRET = 16
LONGEST_SECRET = 4096
_OTHERS = 0o077


def read_key(path: str) -> bytes:
    """The key of the proofs, from the secret's file.  Raises AgentError; the secret is in no message."""
    try:
        with Path(path).open("rb") as opened:
            shared = os.fstat(opened.fileno()).st_mode & _OTHERS
            secret = opened.read(LONGEST_SECRET).strip()
    except OSError as error:
        raise AgentError(CONFIG, f"the join secret cannot be read: {error}") from error
    if shared:
        raise AgentError(CONFIG, f"others may read the join secret: chmod 600 {path}")
    if len(secret) < SHORTEST_SECRET:
        raise AgentError(CONFIG, f"the join secret in {path} is shorter than {SHORTEST_SECRET} bytes")
    return hashlib.sha256(secret).digest()


def claim(
    *,
    purpose: str,
    job: str,
    generation: int,
    name: str,
    nonce: str,
    time: int,
    public_key: str = "",
    endpoint: str = "",
) -> bytes:
    """The bytes that a proof is about."""
    return "\n".join((DOMAIN, purpose, job, str(generation), name, public_key, endpoint, nonce, str(time))).encode()


def answer(*, purpose: str, job: str, generation: int, name: str, nonce: str, status: int, body: bytes) -> bytes:
    """The bytes that an answer's seal is about."""
    digest = hashlib.sha256(body).hexdigest()
    return "\n".join((DOMAIN, "answer", purpose, job, str(generation), name, nonce, str(status), digest)).encode()


def sign(key: bytes, message: bytes) -> str:
    """`SCHEME VALUE`."""
    return f"{SCHEME} {hmac.new(key, message, hashlib.sha256).hexdigest()}"


def holds(key: bytes, message: bytes, signed: str) -> bool:
    """In constant time."""
    return hmac.compare_digest(sign(key, message).encode(), signed.encode("utf-8", "replace"))
