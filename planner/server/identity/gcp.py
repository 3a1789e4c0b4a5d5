"""`gcp-jwt`: a Compute Engine identity token (`format=full`): project, zone, instance, service account.

Held to the documented claims (Compute Engine: verify the identity of an instance, read 2026-11); never run against live Google Cloud.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

from planner.model.record import stamp
from planner.model.runtime import NodeIdentity
from planner.model.server import TokenIssuer
from planner.server.identity.port import Fetch, refuse
from planner.server.identity.tokens import TokenJudge, text

SCHEME: Final = "gcp-jwt"
LONGEST: Final = timedelta(hours=1)


class GcpToken:
    """See the module."""

    def __init__(self, issuers: Sequence[TokenIssuer], fetch: Fetch) -> None:
        self._judge = TokenJudge(issuers, fetch, longest=LONGEST)

    def verify(self, value: Any, now: datetime) -> NodeIdentity:
        """See `Verifier`.  A token without the machine (`format=standard`) is any workload's of that service account, and refused."""
        held = self._judge.judged(value, now)
        google = held.claims.get("google")
        machine = cast("dict[str, Any]", google).get("compute_engine") if isinstance(google, dict) else None
        if not isinstance(machine, dict):
            refuse("the token does not say of which machine it is: ask for `format=full`")
        about = cast("dict[str, Any]", machine)
        if held.claims.get("email_verified") is not True:
            refuse("the token's service account is not verified")
        return NodeIdentity(
            scheme=SCHEME,
            cloud="gcp",
            account=text(about, "project_id"),
            instance_id=text(about, "instance_name"),
            principal=text(held.claims, "email"),
            where=text(about, "zone"),
            expires_at=stamp(held.expires_at),
        )
