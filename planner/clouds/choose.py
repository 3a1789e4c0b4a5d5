"""The adapter for a cloud."""

from __future__ import annotations

from planner.clouds.port import ResourceLister, Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError


class RealClouds:
    """Listers by their SDKs, made once per place.  Each adapter imports its SDK when its first lister is made."""

    def __init__(self) -> None:
        self._listers: dict[Where, ResourceLister] = {}

    def lister(self, where: Where) -> ResourceLister:
        """See `Clouds`."""
        if where not in self._listers:
            self._listers[where] = _made(where)
        return self._listers[where]


def _made(where: Where) -> ResourceLister:
    match where.cloud:
        case "aws":
            from planner.clouds.aws import AwsLister  # noqa: PLC0415 - boto3

            return AwsLister(where)
        case "gcp":
            from planner.clouds.gcp import GcpLister  # noqa: PLC0415 - google-auth

            return GcpLister(where)
        case "azure":
            from planner.clouds.azure import AzureLister  # noqa: PLC0415 - azure-identity

            return AzureLister(where)
        case "nebius":
            from planner.clouds.nebius import NebiusLister  # noqa: PLC0415 - grpc

            return NebiusLister(where)
        case _:
            summary = f"machines on {where.cloud} cannot be listed"
            raise InputError([Diagnostic(code="SKY-APPLY-315", summary=summary)])
