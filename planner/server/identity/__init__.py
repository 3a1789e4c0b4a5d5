"""Who a machine is, by its platform's own words: one verifier a scheme of docs/node-protocol.md.  A scheme that is not set up is not there, and refused."""

from __future__ import annotations

from collections.abc import Mapping

from planner.model.server import IdentityTrust
from planner.server.identity import aws_document, aws_sts, azure, gcp, nebius, one_time
from planner.server.identity.fetch import fetcher
from planner.server.identity.port import Answer as Answer
from planner.server.identity.port import Asked as Asked
from planner.server.identity.port import Fetch as Fetch
from planner.server.identity.port import Verifier as Verifier


def verifiers(trust: IdentityTrust, *, fetch: Fetch | None = None) -> Mapping[str, Verifier]:
    """By scheme.  Raises InputError (SKY-RUN-520) for a certificate that is none, and for a `ca_file` that cannot be read."""
    ask = fetch or fetcher(trust.ca_file)
    out: dict[str, Verifier] = {}
    if trust.aws_certificates:
        out[aws_document.SCHEME] = aws_document.AwsDocument(trust.aws_certificates)
    if trust.aws_sts:
        out[aws_sts.SCHEME] = aws_sts.AwsSts(trust.aws_sts, trust.audience, ask)
    if trust.gcp:
        out[gcp.SCHEME] = gcp.GcpToken(trust.gcp, ask)
    if trust.azure:
        out[azure.SCHEME] = azure.AzureToken(trust.azure, ask)
    if trust.nebius:
        out[nebius.SCHEME] = nebius.NebiusToken(trust.nebius, ask)
    if trust.one_time:
        out[one_time.SCHEME] = one_time.OneTime()
    return out
