"""The text of each file that `skyplan init` writes, from what was found.  Pure: reads and writes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from planner.app.init_find import FoundAccount, Git
from planner.spec.targets import ACCOUNT_WORD

if TYPE_CHECKING:
    from planner.model.project import Backend

IGNORED: Final = (".skyplan/", "cdktf.out/")
"""The record and work folders; written stacks."""
JOB: Final = """\
{modeline}
# A job: what it needs, how much work there is, what to run.  Every field: `skyplan schema job`, or complete it in an editor.
name: example
resources:
  accelerators: {{gpu_memory: 22GiB+, count: 1}}   # or a model: "H100:8", or a list of those that will do
  capacity: [on_demand]                          # add `spot` once it has a checkpoint: an interruption starts it over
work: {{hours: 4, on: "L4:1"}}                     # 4 hours on one L4; other GPUs are reckoned by their speed
image: python:3.12-slim
run: python -c 'print("hello from a node")'
constraints:
  max_usd_total: 50
  stop_after: 12h                                # a node ends itself so long after its boot
# data:        [{{uri: "s3://acme-data/corpus/", region: us-east-1, size: 200GB}}]
# checkpoint:  {{uri: "s3://acme-ckpt/example/", region: us-east-1, size: 2GB, every: 30m}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A line of `targets`, and where it was found."""

    name: str
    cloud: str
    account: str | None
    tenant: str | None
    regions: tuple[str, ...]
    at: str


def targets_of(accounts: Sequence[FoundAccount]) -> tuple[Target, ...]:
    """One for each account; `main`, and a number where a cloud has several."""
    out: list[Target] = []
    for one in accounts:
        number = 1 + sum(t.cloud == one.cloud for t in out)
        out.append(
            Target(
                name="main" if number == 1 else f"main-{number}",
                cloud=one.cloud,
                account=one.account,
                tenant=one.tenant if one.cloud in {"azure", "nebius"} else None,
                regions=one.regions,
                at=one.at,
            )
        )
    return tuple(out)


def modeline(schema: str) -> str:
    """What editors read to know a file's schema; `schema` is relative to the file."""
    return f"# yaml-language-server: $schema={schema}"


def scalar(text: str) -> str:
    """A text as YAML, quoted where it would be read as something else."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_./@-]*", text, re.ASCII) and yaml.safe_load(text) == text:
        return text
    return json.dumps(text)


def project_sections(
    *, name: str, targets: Sequence[Target], backend: Backend | None, backend_at: str
) -> dict[str, str]:
    """Top-level key -> its lines, in the order in which they are written.  What was not found has no section."""
    out = {"project": f"project: {scalar(name)}\n"}
    if targets:
        lines = ["targets:   # where jobs may run; take away what they may not use"]
        for target in targets:
            lines.append(
                f"  - {_flow(_target(target))}   # {target.at}" if target.at else f"  - {_flow(_target(target))}"
            )
            if target.regions:
                regions = ", ".join(json.dumps(r) for r in target.regions)
                lines.append(f"    # the providers' own: `regions: [{regions}]` would keep jobs there")
        out["targets"] = "\n".join(lines) + "\n"
    if backend is not None:
        settings = dict(backend.settings)
        body = f"{{{backend.kind}: {_flow(settings)}}}" if settings else backend.kind
        at = f"{backend_at}; " if backend_at else ""
        out["backend"] = f"backend: {body}   # {at}states of stacks lie under skyplan/{name}/ in it\n"
    return out


def project_text(sections: dict[str, str], schema: str, *, ci: Git, ci_provider: str) -> str:
    """skyplan.yaml.  What people have to decide stands there as a comment: limits, and which CI may become what (`skyplan foundation`)."""
    head = (
        f"{modeline(schema)}\n"
        "# What the platform team decides.  A job can narrow these limits, never widen them.  Every field: `skyplan schema project`.\n"
    )
    entry = {"provider": ci_provider, "repository": ci.path, "branch": ci.branch}
    whose = (
        f"# foundation: {{ci: {_flow(entry)}}}   # whose CI may become planner and deployer\n" if ci_provider else ""
    )
    return f"{head}{''.join(sections.values())}{LIMITS}{whose}"


LIMITS: Final = """\
# data_prefixes: ["s3://acme-data/", "s3://acme-ckpt/"]   # what jobs may read and write; nothing said: anything they name
# max_usd_per_hour: 100
# max_usd_total: 5000
# stop_after: 7d                                          # the hard end of any job
"""


def job_text(schema: str) -> str:
    """jobs/example.yaml, which plans on every cloud."""
    return JOB.format(modeline=modeline(schema))


def missing_ignores(text: str, wanted: Sequence[str] = IGNORED) -> tuple[str, ...]:
    """Lines of .gitignore that are not there in any of the ways to write them."""
    there = {line.strip().removeprefix("**/").strip("/") for line in text.splitlines()}
    return tuple(line for line in wanted if line.strip("/") not in there)


def with_ignores(text: str, wanted: Sequence[str] = IGNORED) -> str:
    """.gitignore with those lines at its end, in the file's own line ends; the text itself where nothing is missing."""
    added = missing_ignores(text, wanted)
    if not added:
        return text
    end = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    glue = "" if not text or text.endswith("\n") else end
    return f"{text}{glue}{''.join(f'{line}{end}' for line in added)}"


CDKTF: Final[dict[str, object]] = {
    "language": "python",
    "app": "skyplan synth",
    "output": "cdktf.out",
    "sendCrashReports": "false",
    "terraformProviders": [],
    "terraformModules": [],
    "context": {},
}


def cdktf_text(name: str) -> str:
    """cdktf.json, by which `cdktf` starts `skyplan synth`."""
    return json.dumps({**CDKTF, "projectId": name}, indent=2, sort_keys=True) + "\n"


def _target(target: Target) -> dict[str, str]:
    found = {"name": target.name, "cloud": target.cloud}
    if target.account:
        found[ACCOUNT_WORD[target.cloud]] = target.account
    if target.tenant:
        found["tenant"] = target.tenant
    return found


def _flow(fields: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {_switch(value)}" for name, value in fields.items()) + "}"


def _switch(value: str) -> str:
    return value if value in {"true", "false"} else scalar(value)
