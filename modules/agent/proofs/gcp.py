"""What Google says of this machine: an identity token for the audience, with project, zone, instance and service account.  Never run against the live GCP."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from . import metadata


def token(audience: str) -> dict[str, Any]:
    """The `gcp-jwt` proof.  Raises NoAnswer.  `format=full`: without it the token does not name the machine."""
    asked = urlencode({"audience": audience, "format": "full"})
    text = metadata.gcp(f"instance/service-accounts/default/identity?{asked}")
    return {"scheme": "gcp-jwt", "value": text.strip()}
