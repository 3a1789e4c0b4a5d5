"""What Microsoft says of this machine: its managed identity's token for the audience, an application of the tenant (IMDS gives no token for less).

Never run against the live Azure.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from . import metadata
from .metadata import NoAnswer


def token(audience: str, client_id: str = "") -> dict[str, Any]:
    """The `azure-jwt` proof.  Raises NoAnswer.  `client_id` chooses among several identities of one machine."""
    asked = {"api-version": "2018-02-01", "resource": audience, **({"client_id": client_id} if client_id else {})}
    text = metadata.azure(f"identity/oauth2/token?{urlencode(asked)}")
    try:
        value = str(json.loads(text)["access_token"])
    except (ValueError, KeyError, TypeError):
        raise NoAnswer("identity/oauth2/token") from None
    return {"scheme": "azure-jwt", "value": value}
