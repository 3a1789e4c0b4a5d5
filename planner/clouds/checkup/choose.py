"""The checkup for a cloud and account.  Each adapter imports its SDK when it is made."""

from __future__ import annotations

from planner.clouds.checkup.port import Checkup
from planner.clouds.port import Where
from planner.model.diagnostic import Diagnostic
from planner.model.errors import InputError


class RealCheckups:
    """See `Checkups`."""

    def checkup(self, where: Where) -> Checkup:
        """See `Checkups`."""
        match where.cloud:
            case "aws":
                from planner.clouds.checkup.aws import AwsCheckup  # noqa: PLC0415 - boto3

                return AwsCheckup(where)
            case "gcp":
                from planner.clouds.checkup.gcp import GcpCheckup  # noqa: PLC0415 - google-auth

                return GcpCheckup(where)
            case "azure":
                from planner.clouds.checkup.azure import AzureCheckup  # noqa: PLC0415 - azure-identity

                return AzureCheckup(where)
            case "nebius":
                from planner.clouds.checkup.nebius import NebiusCheckup  # noqa: PLC0415 - grpc

                return NebiusCheckup(where)
            case _:
                summary = f"nothing is checked on {where.cloud}"
                raise InputError([Diagnostic(code="SKY-APPLY-315", summary=summary)])
