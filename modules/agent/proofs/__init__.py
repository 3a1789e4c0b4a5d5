"""How a machine proves what it is, by the cloud it runs on.

    proof(cloud, audience) -> {"scheme": …, "value": …}       raises NoAnswer

Asked for anew at every exchange, and kept nowhere: sessions of metadata services run out, and a proof is taken only while it is fresh.
"""

from __future__ import annotations

from typing import Any

from . import aws, azure, gcp, nebius
from .metadata import NoAnswer

__all__ = ["NoAnswer", "proof"]


def proof(cloud: str, audience: str) -> dict[str, Any]:
    """The strongest that the cloud gives.

    On AWS a machine without a role proves itself by its document: enough to join, not for the broker, which wants to know whose rights it lends.
    """
    if cloud == "aws":
        try:
            return aws.caller(audience)
        except NoAnswer as error:
            if error.status != 404:  # noqa: PLR2004 - the service is there, and has no role
                raise
            return aws.document()
    if cloud == "gcp":
        return gcp.token(audience)
    if cloud == "azure":
        return azure.token(audience)
    if cloud == "nebius":
        return nebius.token()
    raise NoAnswer(f"no proof is known for `{cloud}`")
