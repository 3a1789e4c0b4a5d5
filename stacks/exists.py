"""What a refused create says is there already: the resource's address and the id by which it can be imported.  Pure; whether to import is not decided here.

Terraform writes its state after the cloud's reply, so a killed apply may leave something of a network or access stack that no state knows.  Where names are
unique the next create of it is refused, in these words.  Nebius's provider and EC2 (of security groups) name no id, so that such a refusal stays one; and
where names are not unique (the rest of EC2) nothing is refused, and the first one stays behind.
Read from providers' sources (azurerm 4.55, google 6.50, aws 6.25); none was provoked on a live cloud by us.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from planner.model.diagnostic import Diagnostic

_ADDRESS = re.compile(r'^([\w-]+\.[\w-]+(?:\["[^"]*"\])?): ')
_SAID = (
    (re.compile(r'A resource with the ID "([^"]+)" already exists'), "{0}"),
    (re.compile(r"The resource '([^']+)' already exists"), "{0}"),
    (
        re.compile(r"Service account ([\w-]+) already exists within project projects/([\w-]+)"),
        "projects/{1}/serviceAccounts/{0}@{1}.iam.gserviceaccount.com",
    ),
    (re.compile(r"EntityAlreadyExists: (?:Role with name|Instance Profile) ([\w+=,.@-]+?) already exists"), "{0}"),
)


def existing(diagnostics: Sequence[Diagnostic]) -> tuple[tuple[str, str], ...]:
    """(address, id) of what could not be created because it is there, in order, each once."""
    found: dict[str, str] = {}
    for said in diagnostics:
        address = _ADDRESS.match(said.summary)
        for words, shape in _SAID:
            if address and (told := words.search(said.summary)):
                found.setdefault(address[1], shape.format(*told.groups()))
    return tuple(found.items())
