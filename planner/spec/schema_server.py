"""server.yaml and broker.yaml as JSON Schema.  Decides their form and their words for the reader; they admit everything that is read from them."""

from __future__ import annotations

from typing import Final

from planner.spec.schema_words import DIALECT, STRINGS, Schema, listed, optional, record, text
from planner.spec.server import GROUPS, ROLES

_HTTPS: Final = "^https?://"
_AUDIENCE: Final = text("What tokens must be made for; `identity.audience` where nothing is said.")
_RATE: Final[Schema] = {"type": "number", "exclusiveMinimum": 0, "description": "Requests per second and caller."}


def server_schema() -> Schema:
    """The settings of `skyplan serve`."""
    settings = record(
        "Whom a control plane and a broker believe, and where they listen.",
        ("url",),
        url=text("As nodes and people reach it.", "https://skyplan.example.com", pattern=_HTTPS),
        listen=text("HOST:PORT; off loopback only with `tls` and `people`.", "0.0.0.0:8443", pattern=":[0-9]+$"),
        tls=_tls(),
        broker=text("Where nodes get data credentials: told to them when they join.", pattern=_HTTPS),
        identity=_identity(),
        people=_people(),
        rates=record("Limits; by group of routes.", (), **dict.fromkeys(GROUPS, _RATE)),
        principals=_principals(),
    )
    return {"$schema": DIALECT, "title": "skyplan server (server.yaml)"} | optional(settings)


def broker_schema() -> Schema:
    """The settings of `skyplan broker`."""
    account = text("Its name.", "acmeckpt", pattern="^[a-z0-9]{3,24}$")
    settings = record(
        "Whom a broker believes about machines, and where it listens.",
        ("url", "listen", "identity"),
        url=text("As nodes reach it; not the control plane's.", "https://broker.example.com", pattern=_HTTPS),
        listen=text("HOST:PORT; off loopback only with `tls`.", "0.0.0.0:443", pattern=":[0-9]+$"),
        tls=_tls(),
        identity=_identity(),
        principals=_principals(),
        hierarchical_accounts=listed(
            account, "Azure's storage accounts with hierarchical namespace, where they do not tell."
        ),
    )
    return {"$schema": DIALECT, "title": "skyplan broker (broker.yaml)"} | optional(settings)


def _principals() -> Schema:
    principal = record(
        "Of a job's nodes in a target.",
        ("job", "target", "principal"),
        job=text("The job.", "train"),
        target=text("The target of skyplan.yaml.", "neb"),
        principal=text("The nodes' identity as the platform writes it.", "serviceaccount-e00…"),
    )
    return {
        "type": "array",
        "items": principal,
        "description": "Identities whose names do not tell whose they are: Nebius.",
    }


def _tls() -> Schema:
    return record(
        "Its certificate; files.",
        ("certificate", "key"),
        certificate=text("The certificate and its chain, in PEM.", "tls/server.pem"),
        key=text("The private key, in PEM.", "tls/server.key"),
    )


def _identity() -> Schema:
    issuer = text("As in the tokens' `iss`.", pattern=_HTTPS)
    keys = text("Its public keys, as a JWK set.", pattern=_HTTPS)
    return record(
        "Which platforms' words about a machine are believed; a scheme that is not here is refused.",
        (),
        audience=text("What a proof must be made for; `url` where nothing is said."),
        aws=record(
            "Instance identity documents and signed GetCallerIdentity requests.",
            (),
            certificates=STRINGS
            | {
                "description": 'AWS\'s public certificate by region, or `"*"`: files in PEM.',
                "examples": [{"us-east-1": "aws/us-east-1.pem"}],
            },
            sts=listed(text("A host, as a glob.", "sts.*.amazonaws.com"), "Where signed requests may be sent on to."),
        ),
        gcp=listed(
            record("Google, where nothing is said.", (), issuer=issuer, keys_url=keys, audience=_AUDIENCE),
            "Tokens of Google Cloud's machines; `{}` is enough.",
        ),
        azure=listed(
            record("A tenant.", ("tenant",), tenant=text("Its id, a UUID."), audience=_AUDIENCE),
            "Managed identities' tokens.",
        ),
        nebius=listed(
            record("", ("issuer", "keys_url"), issuer=issuer, keys_url=keys, audience=_AUDIENCE),
            "Service accounts' tokens.",
        ),
        one_time={"type": "boolean", "description": "Tokens made by an operator; true where nothing is said."},
        ca_file=text("An extra certificate authority, for fetching keys."),
    )


def _people() -> Schema:
    binding = record(
        "Whoever's token has this value in this claim has this role.",
        ("claim", "value", "role"),
        claim=text("A claim.", "groups", "email"),
        value=text("Its value, or one of its values.", "ml-platform"),
        role={"enum": list(ROLES), "description": "viewer < auditor < operator."},
        jobs=listed(text("A job, as a glob.", "llama-*"), "For which jobs; absent means all."),
    )
    return record(
        "By whom people are known (OpenID Connect).  Without it only this machine is answered.",
        ("issuer", "client_id", "bindings"),
        issuer=text("As in the tokens' `iss`.", "https://login.example.com", pattern=_HTTPS),
        client_id=text("As the issuer knows this service."),
        audience=text("Of bearer tokens; the client id where nothing is said."),
        scopes=listed(text("A scope.", "openid", "email", "groups"), "Asked for at sign-in."),
        bindings=listed(binding, "Who may do what."),
    )
