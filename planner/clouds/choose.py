"""The adapter for a cloud."""

from __future__ import annotations

from planner.clouds.port import ResourceLister, RightsReader, Where
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


def rights_reader(where: Where) -> RightsReader:
    """What an account really grants.  Raises MissingPart without boto3, InputError (SKY-IAM-902) for a cloud whose rights are not read live."""
    if where.cloud != "aws":
        summary = f"what {where.cloud} really grants is not read in this version: rights can be compared with a live account on AWS only"
        raise InputError([Diagnostic(code="SKY-IAM-902", summary=summary)])
    from planner.clouds.aws_iam import AwsIam  # noqa: PLC0415 - boto3

    return AwsIam(where)
