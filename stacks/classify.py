"""What a failed launch means: no capacity, a quota, a missing permission, or something skyplan does not know.  Pure.

The words are in `stacks.failures`: the clouds' error codes, few sentences where a provider shows no code, and some of Terraform's own about this machine
(no credentials, no provider), which stop everything like a missing permission does.  Whatever is not listed is unknown and is shown whole.
A code that is stated as one is believed before a code found in prose, a code before a sentence, and a cloud's own code before gRPC's or HTTP's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.model.diagnostic import Diagnostic, Severity
from stacks.failures import (
    AWS,
    AZURE,
    CAPACITY,
    CONDITIONS,
    GCP,
    GENERIC,
    HERE,
    NEBIUS,
    PERMISSION,
    QUOTA,
    SENTENCES,
    UNKNOWN,
)

#: kind -> skyplan's code
CODES = {CAPACITY: "SKY-APPLY-308", QUOTA: "SKY-APPLY-309", PERMISSION: "SKY-APPLY-317", UNKNOWN: "SKY-APPLY-310"}
KINDS: dict[str, str] = {**AWS, **GCP, **AZURE, **NEBIUS}

_OTHERS = {**GCP, **AZURE, **NEBIUS}
_API_ERROR = re.compile(r"api error ([A-Za-z][\w.]*)")
#: the ways in which Azure's provider and SDKs state a code
_STATED = re.compile(
    r"""with error: ([A-Za-z]\w+)|\b[Cc]ode\\?"?[:=]\s*\\?"?([A-Za-z]\w+)|\bERROR CODE: (\w+)|\bStatus: "(\w+)\""""
)
#: how Google's provider and gRPC name a code, which is often too general to be believed alone
_NAMED = re.compile(r"(?s)googleapi: Error \d+:.*, ([a-z]\w+)\b|rpc error: code = (\w+)")
#: a permission stops everything; capacity and quota only this candidate
_ORDER = (PERMISSION, QUOTA, CAPACITY, UNKNOWN)


def _words(codes: Sequence[str], after: str) -> re.Pattern[str]:
    return re.compile(r"\b(" + "|".join(sorted(codes, key=len, reverse=True)) + r")\b(?=" + after + "|$)")


_KNOWN_AWS = _words(tuple(AWS), r"[:,.\s(]")
_KNOWN = _words(tuple(_OTHERS), r"""[:,.\s()"'\\\]]""")


def classify(diagnostics: Sequence[Diagnostic]) -> tuple[str, str]:
    """(kind, the cloud's own code) of the errors among the diagnostics; the code is "" where none was given."""
    errors = [found.summary for found in diagnostics if found.severity is Severity.ERROR]
    judged = [classify_text(text) for text in errors] or [(UNKNOWN, "")]
    return min(judged, key=lambda pair: (_ORDER.index(pair[0]), pair[1] == "", pair[1]))


def classify_text(text: str) -> tuple[str, str]:
    """The same for one message.  A code said as `api error CODE` is AWS's, and no other is looked for."""
    for words, code in HERE.items():
        if words in text:
            return PERMISSION, code
    if said := [code.rstrip(".") for code in _API_ERROR.findall(text)]:
        known = [code for code in said if code in AWS]
        return (AWS[known[0]], known[0]) if known else (UNKNOWN, said[0])
    if (found := _KNOWN_AWS.search(text)) and found[1] != "Unsupported":
        return AWS[found[1]], found[1]
    return _of_another_cloud(text)


def _of_another_cloud(text: str) -> tuple[str, str]:
    stated = ["".join(found) for found in _STATED.findall(text)]
    for code in stated or _KNOWN.findall(text):
        if code in _OTHERS and (code not in CONDITIONS or CONDITIONS[code].search(text)):
            return _OTHERS[code], code
    for sentence in (*SENTENCES, *GENERIC):
        if found := sentence.pattern.search(text):
            return sentence.kind, found[0] if sentence.code == "AADSTS" else sentence.code
    named = stated or ["".join(found) for found in _NAMED.findall(text)]
    return UNKNOWN, named[0] if named else ""
