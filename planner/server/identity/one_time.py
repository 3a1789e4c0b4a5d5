"""`one-time`: a token that an operator made for one seat, for nodes set up by hand.

Decides its form only: whether it was made, for which seat and whether it is used up, is the record's, which knows its SHA-256.  It says nothing of a machine.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, Final

from planner.model.runtime import NodeIdentity
from planner.server.identity.port import refuse

SCHEME: Final = "one-time"
#: 32 random bytes, url-safe
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43,128}", re.ASCII)


class OneTime:
    """See the module."""

    def verify(self, value: Any, now: datetime) -> NodeIdentity:  # noqa: ARG002 - the record knows its end
        """See `Verifier`."""
        if not isinstance(value, str) or not _TOKEN.fullmatch(value):
            refuse("the one-time token has not the form of one")
        return NodeIdentity(scheme=SCHEME, cloud="")
