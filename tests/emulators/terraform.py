"""Finds the real Terraform and the AWS provider's mirror, and writes the CLI configuration and environment a test runs it with.

Nothing is downloaded: what is not on the machine is a reason to skip, in words.  Which folders are searched is a list of habits
(plugin folders, caches, two levels of the folders software is put in), never one machine's path.
"""

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.emulators import stub_provider

AWS = "registry.terraform.io/hashicorp/aws"
SOURCES = {
    "aws": "hashicorp/aws",
    "google": "hashicorp/google",
    "azurerm": "hashicorp/azurerm",
    "nebius": "nebius/nebius",
}
SCHEMAS = Path(__file__).resolve().parents[2] / "modules" / "schemas"
# variables that would reach over into a test from whoever runs it
FOREIGN = re.compile(r"AWS_|TF_|SKYPLAN_|GOOGLE_|ARM_|NEBIUS_|STUB_|CI$|https?_proxy$|all_proxy$", re.IGNORECASE)


@dataclass(frozen=True)
class Terraform:
    """A Terraform and the providers it may use, ready to run in any folder."""

    binary: Path
    environment: Mapping[str, str]

    def run(self, folder: Path, *arguments: str, timeout: float = 300, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs to the end; output and errors are text in `stdout` (merged).  `more`: additional environment."""
        return subprocess.run(
            [self.binary, *arguments],
            cwd=folder,
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=timeout,
            check=False,
        )

    def ok(self, folder: Path, *arguments: str, timeout: float = 300, **more: str) -> str:
        """Runs and returns the output; an exit code other than 0 is an AssertionError with the whole output."""
        done = self.run(folder, *arguments, timeout=timeout, **more)
        assert done.returncode == 0, f"terraform {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}"
        return done.stdout


@cache
def find_terraform() -> Path | None:
    """`SKYPLAN_TERRAFORM`, else `terraform` or `tofu` on PATH."""
    named = os.environ.get("SKYPLAN_TERRAFORM")
    found = shutil.which(named) if named else shutil.which("terraform") or shutil.which("tofu")
    return Path(found) if found else None


@cache
def find_aws_mirror() -> Path | None:
    """The filesystem mirror with an AWS provider 5.x for this platform, if the machine has one."""
    return next((mirror for mirror in _mirrors() if _has_aws(mirror)), None)


def _mirrors() -> Iterator[Path]:
    config = Path(os.environ.get("TF_CLI_CONFIG_FILE") or Path.home() / ".terraformrc")
    if config.is_file():
        for path in re.findall(r'^\s*path\s*=\s*"([^"]+)"', config.read_text(encoding="utf-8"), re.MULTILINE):
            yield Path(path)
    if cached := os.environ.get("TF_PLUGIN_CACHE_DIR"):
        yield Path(cached)
    home = Path.home()
    yield from (home / ".terraform.d" / "plugins", home / ".terraform.d" / "plugin-cache")
    yield home / ".local" / "share" / "terraform" / "plugins"
    for root in (Path("/usr/share"), Path("/usr/local/share"), Path("/opt"), Path("/usr/lib"), Path("/var/lib")):
        yield from (root / "terraform" / "plugins", root)
        for depth in ("*", "*/*"):
            yield from sorted(p.parent for p in root.glob(f"{depth}/registry.terraform.io"))


def _has_aws(mirror: Path) -> bool:
    try:
        unpacked = any((mirror / AWS).glob("5.*/*/terraform-provider-aws*"))
        return unpacked or any((mirror / AWS).glob("terraform-provider-aws_5.*.zip"))
    except OSError:
        return False


def missing(*, aws: bool) -> str | None:
    """Why Terraform tests cannot run here; None if they can.  `aws`: with the real AWS provider."""
    if find_terraform() is None:
        return "no Terraform: put terraform or tofu on PATH or name it in SKYPLAN_TERRAFORM"
    if aws and find_aws_mirror() is None:
        return f"no filesystem mirror holds {AWS} 5.x: set TF_PLUGIN_CACHE_DIR or a CLI config that names one"
    return None


def prepare(folder: Path, *, stubs: Mapping[str, Path] | None = None, **variables: str) -> Terraform:
    """Writes CLI config, provider cache and stub mirror under `folder`.

    `stubs`: providers served by `stub_provider`, as {name: schema file}; a stubbed `aws` takes the real one's place.
    `variables`: environment on top, e.g. AWS_ENDPOINT_URL.
    """
    binary = find_terraform()
    assert binary is not None, missing(aws=False)
    folder = folder.resolve()
    cache_folder = folder / "provider-cache"
    cache_folder.mkdir(parents=True, exist_ok=True)
    sources = [f"registry.terraform.io/{SOURCES[name]}" for name in stubs or {}]
    mirrors = [(folder / "stubs", sources)] if stubs else []
    if (mirror := find_aws_mirror()) and AWS not in sources:
        mirrors.append((mirror, [AWS]))
    for name, schema in (stubs or {}).items():
        _install_stub(folder / "stubs", name, schema)
    blocks = "".join(
        f"  filesystem_mirror {{\n    path    = {json.dumps(str(path))}\n    include = {json.dumps(include)}\n  }}\n"
        for path, include in mirrors
    )
    config = folder / "terraform.rc"
    config.write_text(f"provider_installation {{\n{blocks}}}\ndisable_checkpoint = true\n", encoding="utf-8")
    own = {k: v for k, v in os.environ.items() if not FOREIGN.match(k)}
    return Terraform(
        binary,
        {
            **own,
            "TF_CLI_CONFIG_FILE": str(config),
            "TF_PLUGIN_CACHE_DIR": str(cache_folder),
            "TF_IN_AUTOMATION": "1",
            "TF_INPUT": "0",
            "CHECKPOINT_DISABLE": "1",
            "SKYPLAN_TERRAFORM": str(binary),
            **variables,
        },
    )


def _install_stub(mirror: Path, name: str, schema: Path) -> None:
    document: dict[str, Any] = stub_provider.load(schema)
    version = document["version"]
    platform = f"{'darwin' if sys.platform == 'darwin' else 'linux'}_{_architecture()}"
    folder = mirror / "registry.terraform.io" / SOURCES[name] / version / platform
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"terraform-provider-{name}_v{version}"
    script = Path(stub_provider.__file__).resolve()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" serve "{schema.resolve()}"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _architecture() -> str:
    machine = os.uname().machine
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
