"""The platforms' signatures by keys of the tests: identity tokens of Google, Microsoft and Nebius, AWS's identity documents, and an STS that knows whose SigV4 it sees.

Both sides are tested on these: the node's proofs (tests/unit/agent/proofs) and their verifiers (planner.server.identity).  The signature of a request is
judged by botocore's own code, not by ours.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import textwrap
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import jwt
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.x509.oid import NameOID

TENANT = "6e1d9a52-1111-4222-8333-944445555666"
SUBSCRIPTION = "0b1f6471-1bf0-4dda-aec3-cb9272f09590"
GOOGLE = "https://accounts.google.com"
MICROSOFT = f"https://login.microsoftonline.com/{TENANT}/v2.0"
NEBIUS = "https://auth.nebius.example"


@cache
def rsa_key(name: str) -> rsa.RSAPrivateKey:
    """One a name and test process: making them takes longer than the tests."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


class TokenSigner:
    """An issuer of JWTs.  `keys` is what stands at its JWKS address."""

    def __init__(self, issuer: str, name: str = "1") -> None:
        self.issuer, self.kid = issuer, f"test-key-{name}"
        self._key = rsa_key(issuer + name)

    @property
    def keys(self) -> dict[str, Any]:
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self._key.public_key()))
        return {"keys": [{**public, "kid": self.kid, "use": "sig", "alg": "RS256"}]}

    def token(self, claims: dict[str, Any], now: datetime, *, seconds: int = 3600, **header: Any) -> str:
        at = int(now.timestamp())
        said = {"iss": self.issuer, "iat": at, "exp": at + seconds, **claims}
        return jwt.encode(said, self._key, algorithm="RS256", headers={"kid": self.kid, **header})


def google_claims(audience: str, *, instance: str = "train-g3-r0", project: str = "acme-gpu") -> dict[str, Any]:
    """Of an instance's identity token with `format=full`."""
    account = f"job-train@{project}.iam.gserviceaccount.com"
    machine = {
        "project_id": project,
        "project_number": 739419398126,
        "zone": "us-central1-a",
        "instance_id": "152986662232938449",
        "instance_name": instance,
        "instance_creation_timestamp": 1793000000,
    }
    return {
        "aud": audience,
        "azp": "104029292853099978293",
        "sub": "104029292853099978293",
        "email": account,
        "email_verified": True,
        "google": {"compute_engine": machine},
    }


def azure_claims(audience: str, *, vm: str = "train-g3-r0", group: str = "skyplan") -> dict[str, Any]:
    """Of a user-assigned managed identity's token."""
    at = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{group}/providers"
    return {
        "aud": audience,
        "tid": TENANT,
        "oid": "11111111-2222-4333-8444-555555555555",
        "appid": "99999999-2222-4333-8444-555555555555",
        "xms_mirid": f"{at}/Microsoft.ManagedIdentity/userAssignedIdentities/job-train",
        "xms_az_rid": f"{at}/Microsoft.Compute/virtualMachines/{vm}",
    }


def nebius_claims(audience: str, *, account: str = "serviceaccount-e00train") -> dict[str, Any]:
    """A guess: Nebius documents no claims."""
    return {"aud": audience, "sub": account}


class DocumentSigner:
    """AWS's signer of identity documents in a region."""

    def __init__(self, region: str = "us-east-1") -> None:
        self._key = rsa_key("aws" + region)
        self.region = region

    @property
    def certificate(self) -> str:
        """PEM."""
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"test {self.region}")])
        begin = datetime(2024, 1, 1, tzinfo=UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(self._key.public_key())
            .serial_number(7)
            .not_valid_before(begin)
            .not_valid_after(begin + timedelta(days=3650))
            .sign(self._key, hashes.SHA256())
        )
        return made.public_bytes(serialization.Encoding.PEM).decode()

    def document(self, *, instance: str = "i-0123456789abcdef0", account: str = "111122223333") -> str:
        """As IMDS gives it: several lines."""
        about = {
            "accountId": account,
            "architecture": "x86_64",
            "availabilityZone": f"{self.region}a",
            "billingProducts": None,
            "imageId": "ami-0123456789abcdef0",
            "instanceId": instance,
            "instanceType": "p5.48xlarge",
            "pendingTime": "2026-11-30T10:00:00Z",
            "privateIp": "10.0.0.7",
            "region": self.region,
            "version": "2017-09-30",
        }
        return json.dumps(about, indent=2)

    def signature(self, document: str) -> str:
        """As IMDS gives it: base64 in lines."""
        signed = self._key.sign(document.encode(), padding.PKCS1v15(), hashes.SHA256())
        return "\n".join(textwrap.wrap(base64.b64encode(signed).decode(), 64))


_WRITTEN = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(\w+)/(\d{8})/([\w-]+)/sts/aws4_request, SignedHeaders=([\w;-]+), Signature=(\w+)"
)


class Sts:
    """GetCallerIdentity: says whose signature it sees.  `keys`: access key id -> (secret, session token, ARN)."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, str, str]] = {}
        self.asked = 0

    def give(self, role: str = "job-train", *, instance: str = "i-0123456789abcdef0", account: str = "111122223333"):
        """Keys of an instance's role, as IMDS shows them."""
        number = len(self.keys)
        key = f"ASIATEST{number:012d}"
        arn = f"arn:aws:sts::{account}:assumed-role/{role}/{instance}"
        self.keys[key] = (f"secret-{number}", f"token-{number}", arn)
        return {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": key,
            "SecretAccessKey": f"secret-{number}",
            "Token": f"token-{number}",
            "Expiration": (datetime.now(UTC) + timedelta(hours=6)).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }

    def answer(self, url: str, headers: dict[str, str], body: bytes, now: datetime) -> tuple[int, bytes]:
        """Status and XML."""
        self.asked += 1
        given = {name.lower(): value for name, value in headers.items()}
        written = _WRITTEN.fullmatch(given.get("authorization", ""))
        if not written or written[1] not in self.keys:
            return 403, b"<ErrorResponse><Error><Code>InvalidClientTokenId</Code></Error></ErrorResponse>"
        key, _day, region, names, signature = written.groups()
        secret, token, arn = self.keys[key]
        at = datetime.strptime(given["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(now - at) > timedelta(minutes=15):
            return 403, b"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
        request = AWSRequest(method="POST", url=url, data=body, headers={n: given[n] for n in names.split(";")})
        request.context["timestamp"] = given["x-amz-date"]
        judge = SigV4Auth(Credentials(key, secret, token), "sts", region)
        right = judge.signature(judge.string_to_sign(request, judge.canonical_request(request)), request)
        if not hmac.compare_digest(right, signature) or given.get("x-amz-security-token") != token:
            return 403, b"<ErrorResponse><Error><Code>SignatureDoesNotMatch</Code></Error></ErrorResponse>"
        said = f"<GetCallerIdentityResult><Arn>{arn}</Arn><UserId>AROATEST:{arn.rpartition('/')[2]}</UserId></GetCallerIdentityResult>"
        space = "https://sts.amazonaws.com/doc/2011-06-15/"
        return 200, f'<GetCallerIdentityResponse xmlns="{space}">{said}</GetCallerIdentityResponse>'.encode()
