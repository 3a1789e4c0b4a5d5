"""What secrets look like: tokens by their issuers' own shapes, and names whose values are secret if they look random.

Shapes are the issuers' published or well-known ones (2026-11); those of Nebius are documented by nobody and are what its keys and tokens were seen to
look like, so there names do most of the work.  Holds no text to scan and reports nothing.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of secret.  The secret is the group `it`, or the whole match.

    hint    text without which there is no match: what makes a scan cheap
    mixed   upper case, lower case and digits must all be there: a word or a hash is none
    """

    kind: str
    pattern: re.Pattern[str]
    hint: str = ""
    mixed: bool = False


def _shape(kind: str, pattern: str, hint: str = "", *, mixed: bool = False) -> Shape:
    return Shape(kind=kind, pattern=re.compile(pattern), hint=hint, mixed=mixed)


_B, _E = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"

SHAPES: Final = (
    _shape(
        "private key",
        r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
        "PRIVATE KEY",
    ),
    _shape("JWT", r"(?<![\w-])eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]{16,}", "eyJ"),
    _shape("AWS access key id", rf"{_B}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_E}(?<!EXAMPLE)"),
    _shape("AWS session token", rf"{_B}(?:IQoJ|FwoG|FQoG)[A-Za-z0-9+/]{{100,}}={{0,2}}"),
    _shape("Google API key", rf"{_B}AIza[\w-]{{35}}(?![\w-])", "AIza"),
    _shape("Google access token", rf"{_B}ya29\.[\w-]{{20,}}", "ya29."),
    _shape("Google client secret", rf"{_B}GOCSPX-[\w-]{{28}}", "GOCSPX-"),
    _shape("Google HMAC key id", rf"{_B}GOOG1E[A-Z0-9]{{55}}{_E}", "GOOG1E"),
    _shape("Azure storage key", r"(?<![A-Za-z0-9+/=-])[A-Za-z0-9+/]{86}==(?![A-Za-z0-9+/=])", "==", mixed=True),
    _shape("Azure shared access key", r"(?i:SharedAccessKey|AccountKey)=(?P<it>[A-Za-z0-9+/]{40,}={1,2})", "Key="),
    _shape(
        "Azure SAS signature", r"(?:[?&]|&amp;|\\u0026|\b)sig=(?P<it>(?:[A-Za-z0-9+/]|%[0-9A-Fa-f]{2}){40,}=?)", "sig="
    ),
    _shape("Azure client secret", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~-])", "Q~"),
    _shape("Nebius key", rf"{_B}NAKI[A-Za-z0-9]{{12,}}{_E}", "NAKI"),
    _shape("Nebius token", rf"{_B}(?:ne1|v1\.)[A-Za-z0-9_-]{{80,}}", mixed=True),
    _shape("GitHub token", rf"{_B}gh[pousr]_[A-Za-z0-9]{{36,}}", "gh"),
    _shape("GitHub token", rf"{_B}github_pat_\w{{22,}}", "github_pat_"),
    _shape("GitLab token", rf"{_B}gl(?:pat|rt|dt|cbt|ptt|soat|ft|imt|agent)-[\w-]{{20,}}", "gl"),
    _shape("Hugging Face token", rf"{_B}(?:hf_|api_org_)[A-Za-z0-9]{{30,}}"),
    _shape("OpenAI or Anthropic key", rf"{_B}sk-(?:[a-z]+\d*-)*(?P<tail>[\w-]{{20,}})", "sk-", mixed=True),
    _shape("Slack token", rf"{_B}xox[abeoprs]-[A-Za-z0-9-]{{10,}}", "xox"),
    _shape("Slack webhook", r"hooks\.slack\.com/services/(?P<it>T\w{6,}/B\w{6,}/\w{16,})", "hooks.slack.com"),
    _shape("npm token", rf"{_B}npm_[A-Za-z0-9]{{36}}{_E}", "npm_"),
    _shape("PyPI token", rf"{_B}pypi-AgE[\w-]{{50,}}", "pypi-"),
    _shape("Docker token", rf"{_B}dckr_(?:pat|oat)_[\w-]{{20,}}", "dckr_"),
    _shape("Vault token", rf"{_B}hv[sbr]\.[\w-]{{24,}}", "hv"),
    _shape("age key", r"AGE-SECRET-KEY-1[A-Z0-9]{50,}", "AGE-SECRET-KEY-1"),
    _shape("PuTTY key", r"PuTTY-User-Key-File-\d: ", "PuTTY-User-Key-File"),
    _shape("Tailscale key", rf"{_B}tskey-[a-z]+-\w{{8,}}-?\w{{8,}}", "tskey-"),
    _shape("NVIDIA key", rf"{_B}nvapi-[\w-]{{40,}}", "nvapi-"),
    _shape("Replicate token", rf"{_B}r8_[A-Za-z0-9]{{30,}}{_E}", "r8_", mixed=True),
    _shape("DigitalOcean token", rf"{_B}do[opr]_v1_[0-9a-f]{{64}}{_E}", "_v1_"),
    _shape("SendGrid key", rf"{_B}SG\.[\w-]{{20,24}}\.[\w-]{{40,50}}(?![\w-])", "SG."),
    _shape("Databricks token", rf"{_B}dapi[0-9a-f]{{32}}(?:-\d)?{_E}", "dapi"),
    _shape("Terraform Cloud token", rf"{_B}[A-Za-z0-9]{{14}}\.atlasv1\.[\w-]{{50,}}", ".atlasv1."),
    _shape("Grafana token", rf"{_B}gls?[ac]_[A-Za-z0-9]{{32,}}_[0-9a-f]{{8}}{_E}", "gl"),
    _shape("Telegram token", r"(?<![\w:])\d{8,10}:AA[\w-]{33}(?![\w-])", ":AA"),
    _shape("Stripe key", rf"{_B}[rs]k_live_[A-Za-z0-9]{{20,}}", "k_live_"),
    _shape(
        "WireGuard key",
        r"(?i:private_?key|preshared_?key)\\?[\"']?\s*[:=]\s*\\?[\"']?(?P<it>[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=)",
    ),
    _shape(
        "password on a command line",
        r"(?:(?<!\S)--password[= ]|\bsshpass -p ?|\bdocker login\b[^\n|;&]{0,400}? -p |\bcurl\b[^\n|;&]{0,400}? (?:-u|--user)[ =][\"']?[^\s:$\"']{1,100}:)"
        r"[\"']?(?P<it>[^\s$\"'`|;&<>(){}=-][^\s\"'`|;&<>(){}]{7,})",
        mixed=True,
    ),
    _shape(
        "password of a login",
        r"(?:(?<![\w.-])machine \S+\s+login \S+\s+password |\becho\s+[\"']?[a-z_][\w-]{0,40}:(?=[^\n|]{0,400}\|\s*(?:sudo )?chpasswd))(?P<it>[^\s$\"'`|{}<>]{6,})",
    ),
    _shape(
        "authorization header",
        r"(?i:authorization\\?[\"']?\s*[:=]\s*\\?[\"']?(?:bearer|basic))\s+(?P<it>[\w.~+/=-]{16,})",
    ),
    _shape("password in a URL", r"[a-z][a-z0-9+.-]*://[^\s/:@\"'<>]*:(?P<it>[^\s/@\"'<>]{3,})@", "://"),
)

#: an AWS secret key has no shape of its own; beside a key id, 40 such characters are one
AWS_SECRET: Final = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
AWS_KEY_ID: Final = re.compile(r"(?<![A-Z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Z0-9])")

_SECRET_NAME = re.compile(
    r"(?i)secret|token|passw(?:or)?d|passphrase|passwd|(?:^|_|-)pwd|api_?-?key|apikey|access_?-?key|account_?-?key|private_?-?key|preshared_?-?key"
    r"|auth_?-?key|shared_?-?key|signing_?-?key|encryption_?-?key|storage_?-?key|connection_?-?string|credential|(?:^|_)(?:auth|pass|pat)$|(?-i:[A-Z0-9]_KEY$)"
)
#: of such a name, what it means is no secret: how many tokens, where the secret lies, what it is called
_HARMLESS_NAME = re.compile(
    r"(?i)tokens|tokeni[sz]|token_?-?(?:count|len|limit|type|size|ttl|id|dim|per)|(?:^|_|-)public"
    r"|(?:_|-|\.)(?:id|ids|name|names|arn|file|path|dir|folder|url|uri|endpoint|host|type|kind|version|versions|ttl|seconds|hours|days|count|size|required"
    r"|enabled|region|store|ref|refs|reference|policy|role|rotation|status|digest|hash|md5|sha256|fingerprint|algorithm|format|env|mount|scope|issuer|audience)$"
    r"|secretsmanager|secretmanager|keyvault|credential_?-?source|metadata"
)
#: NAME=value, NAME: value, "NAME": "value", however often it is quoted; not within an ARN, where `secret:` comes before a name
#: a value is looked at as far as tells, since each `=` of a long text begins one
ASSIGNMENT: Final = re.compile(
    r"(?<![\w:/.-])(?P<name>[A-Za-z_][\w.-]{1,80})\\*[\"']?[^\S\n]*(?:=|:=?)[^\S\n]*\\*[\"']?(?=(?P<it>[^\s\"'`,;\\<>(){}\[\]|]{8,512}))"
)
_REFERENCE = re.compile(
    r"\$|%|<|\{|\*{3}|[a-z][a-z0-9+.-]*://|arn:|/|\.{1,2}/|projects/|sha(?:256|384|512)[:-]|ssh-|ecdsa-|data\.|var\.|local\.|each\.|module\.|null$|true$|false$|p[0-9a-f]{10}$"
)
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
#: a word of a name: in one case or in camels' humps, with a short number
_WORD = re.compile(r"(?:[a-z]*|[A-Z]*|[A-Z]?[a-z]{2,}(?:[A-Z][a-z]{2,})*)\d{0,4}")
_BETWEEN = re.compile(r"[-_./:@]")
_NUMBER = re.compile(r"[-+]?[\d.:,TZ-]+")
#: shorter is nothing that was made to be secret
SHORTEST: Final = 8
_LONG = 16


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret, if its value looks like one."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name)


def looks_secret(value: str) -> bool:
    """Whether a value with such a name is a secret, and no reference, name, digest, id or number."""
    bare = value.strip()
    if AWS_SECRET.fullmatch(bare) and is_mixed(bare):
        return True  # one in 64 begins as a path does
    if len(bare) < SHORTEST or _REFERENCE.match(bare) or "${" in bare or " " in bare:
        return False
    if any(shape.fullmatch(bare) for shape in (_UUID, _NUMBER)) or _is_name(bare):
        return False
    bits = entropy(bare)
    classes = sum(bool(re.search(kind, bare)) for kind in ("[a-z]", "[A-Z]", r"\d", r"[^A-Za-z0-9]"))
    return (classes > 1 and bits >= 2.5) if len(bare) < _LONG else bits >= 2.8  # noqa: PLR2004 - bits per character


def _is_name(text: str) -> bool:
    return all(_WORD.fullmatch(word) for word in _BETWEEN.split(text))


def entropy(text: str) -> float:
    """Shannon's, in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) if text else 0.0


def is_mixed(text: str) -> bool:
    """Upper case, lower case and digits."""
    return all(re.search(kind, text) for kind in ("[a-z]", "[A-Z]", r"\d"))
