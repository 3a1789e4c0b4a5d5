"""`nebius-jwt`: the token of a Nebius service account, where its issuer publishes keys.

Nebius documents neither an issuer nor claims for its machines' tokens (read 2026-11): this scheme works only where the operator knows both and says them in
the settings.  What is taken from a token is its `sub`, the service account's id; it says nothing of the machine.  Never run against live Nebius.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from planner.model.record import stamp
from planner.model.runtime import NodeIdentity
from planner.model.server import TokenIssuer
from planner.server.identity.port import Fetch, refuse
from planner.server.identity.tokens import TokenJudge, text

SCHEME: Final = "nebius-jwt"
LONGEST: Final = timedelta(hours=12)
_ACCOUNT: Final = re.compile(r"serviceaccount-[a-z0-9-]{1,64}", re.ASCII)


class NebiusToken:
    """See the module."""

    def __init__(self, issuers: Sequence[TokenIssuer], fetch: Fetch) -> None:
        self._judge = TokenJudge(issuers, fetch, longest=LONGEST)

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        """See `Verifier`."""
        held = self._judge.judged(value, now)
        account = text(held.claims, "sub")
        if not _ACCOUNT.fullmatch(account):
            refuse("the token is of no service account")
        return NodeIdentity(scheme=SCHEME, cloud="nebius", principal=account, expires_at=stamp(held.expires_at))
