"""`azure-jwt`: a managed identity's token for our audience: subscription, identity, and the machine where the token says it.

`xms_mirid` is the resource id of the managed identity: of a user-assigned one its own, of a system-assigned one the machine's.  `xms_az_rid`, where it is there, is
the machine that asked.  Neither claim is promised by Microsoft; without the first the token is refused, without the second the machine stays unknown and
the identity, which is one job's, stands for it.  Never run against live Azure.
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

SCHEME: Final = "azure-jwt"
LONGEST: Final = timedelta(hours=24, minutes=10)
"""Managed identities' tokens live 24 hours, a few minutes more with their back-dated issue (Microsoft: managed identities FAQ, read 2026-11)."""
_SUBSCRIPTION: Final = r"/subscriptions/([0-9a-f-]{36})/resourcegroups/[^/]{1,90}/providers/"
_IDENTITY: Final = re.compile(
    _SUBSCRIPTION + r"microsoft\.managedidentity/userassignedidentities/[^/]{1,128}", re.ASCII | re.IGNORECASE
)
_MACHINE: Final = re.compile(
    _SUBSCRIPTION + r"microsoft\.compute/virtualmachines/([^/]{1,64})", re.ASCII | re.IGNORECASE
)


class AzureToken:
    """See the module."""

    def __init__(self, issuers: Sequence[TokenIssuer], fetch: Fetch) -> None:
        self._judge = TokenJudge(issuers, fetch, longest=LONGEST)

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        """See `Verifier`."""
        held = self._judge.judged(value, now)
        # the issuer's URL names the tenant; a token whose own word for it differs is none of this issuer's
        if text(held.claims, "tid").lower() not in held.issuer.lower().split("/"):
            refuse("the token is of another tenant than its issuer")
        text(held.claims, "oid")
        text(held.claims, "appid" if "appid" in held.claims else "azp")
        principal = text(held.claims, "xms_mirid")
        machine = _MACHINE.fullmatch(text(held.claims, "xms_az_rid")) if "xms_az_rid" in held.claims else None
        own, systems = _IDENTITY.fullmatch(principal), _MACHINE.fullmatch(principal)
        named = own or systems
        if named is None:
            refuse("the token is of no managed identity")
        if machine is not None and systems is not None and machine[0].lower() != systems[0].lower():
            refuse("the token is of one machine and was asked for by another")
        seen = machine or systems
        return NodeIdentity(
            scheme=SCHEME,
            cloud="azure",
            account=(seen or named)[1].lower(),
            instance_id=seen[2] if seen else "",
            principal=principal,
            expires_at=stamp(held.expires_at),
        )
