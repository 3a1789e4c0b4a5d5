"""What a secret looks like, and what a reference to one looks like.

Decides whether a text may be shown or kept.  Holds no secret, fetches none, and no message made here contains the text it is about.
"""

from __future__ import annotations

import re
from typing import Final

from planner.model.workload import SecretRef

#: scheme of a reference -> an example of one
STORES: Final[dict[str, str]] = {
    "aws-secretsmanager": "aws-secretsmanager://acme/hf",
    "gcp-secretmanager": "gcp-secretmanager://acme-ml/hf-token",
    "azure-keyvault": "azure-keyvault://acme-vault/hf-token",
    "nebius-mysterybox": "nebius-mysterybox://mbsec-e00example/hf-token",
}
REFERENCE_HINT: Final = f"write a reference such as {STORES['aws-secretsmanager']}; stores are {', '.join(STORES)}"
NOT_SHOWN: Final = "(not shown: it looks like a secret)"

_SHOWN_LENGTH: Final = 60
_REFERENCE: Final = re.compile(r"([a-z][a-z-]*)://([A-Za-z0-9][A-Za-z0-9/_+=.@:-]{0,510})", re.ASCII)
_LOOKS: Final = re.compile(
    r"(?:AKIA|ASIA)[0-9A-Z]{16}"
    r"|\bhf_[A-Za-z0-9]{16,}|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bsk-[A-Za-z0-9_-]{20,}|\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[0-9A-Za-z_-]{20,}"
    r"|\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}|\bdckr_pat_[A-Za-z0-9_-]{20,}"
    r"|-----BEGIN|\bAccountKey=|\bSharedAccessSignature=|[?&]sig=[A-Za-z0-9%+/]{20,}"
    r"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}"
    r"|[a-z][a-z0-9+.-]*://[^/\s:@$]+:[^/\s@$]+@",
)
_NAMES: Final = re.compile(
    r"(?:PASSWORD|PASSWD|SECRET|SECRET_KEY|API_?KEY|ACCESS_KEY|PRIVATE_KEY|(?:HF|GH|GITHUB|AUTH|ACCESS|BEARER|API)_TOKEN)$",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z0-9+/=_.-]{16,}")


def looks_secret(text: str) -> bool:
    """The text has the form of a credential."""
    return _LOOKS.search(text) is not None


def env_looks_secret(name: str, value: str) -> bool:
    """The value has the form of a credential, or its name says that it is one and it has a token's form."""
    return looks_secret(value) or (_NAMES.search(name) is not None and _TOKEN.fullmatch(value) is not None)


def reference(text: str, env: str) -> SecretRef | None:
    """`aws-secretsmanager://acme/hf` as a value; None for whatever is no reference."""
    found = _REFERENCE.fullmatch(text)
    if found is None or found[1] not in STORES or looks_secret(found[2]):
        return None
    return SecretRef(env=env, store=found[1], path=found[2])


def shown(text: str) -> str:
    """The text for a message: on one line, not too long, never a secret."""
    if looks_secret(text):
        return NOT_SHOWN
    line = " ".join(text.split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return f"`{line if len(line) <= _SHOWN_LENGTH else line[: _SHOWN_LENGTH - 3] + '...'}`"
