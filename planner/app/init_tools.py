"""The settings of the clouds' command line tools on this machine: which account and region each acts on by itself.  Files of credentials are not opened."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import yaml

MOST_BYTES: Final = 1 << 20
ACCOUNT_IN_ARN: Final = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAccount:
    """Where Terraform acts already.  `account` None: nothing says it; `at`: the file, or the tool's settings, that do."""

    cloud: str
    account: str | None
    tenant: str | None = None
    regions: tuple[str, ...] = ()
    at: str


@dataclass
class Tools:
    """The settings of the clouds' command line tools: names, regions, accounts.  Files of credentials are not opened."""

    environment: Mapping[str, str]
    home: Path
    notes: list[str] = field(default_factory=list[str])

    def of(self, cloud: str) -> FoundAccount | None:
        """What the tool of a cloud acts on when nothing else is said."""
        match cloud:
            case "aws":
                return self.aws(None)
            case "gcp":
                return self._gcloud()
            case "azure":
                return self._azure()
            case _:
                return self._nebius()

    def aws(self, profile: str | None) -> FoundAccount | None:
        """A profile of `~/.aws/config`, the caller's own where none is named; None where it says neither account nor region."""
        path = expanded(self.environment.get("AWS_CONFIG_FILE") or self.home / ".aws" / "config")
        name = profile or self.environment.get("AWS_PROFILE") or "default"
        config = self._ini(path)
        section = "default" if name == "default" else f"profile {name}"
        given: Mapping[str, str] = dict(config[section]) if config is not None and section in config else {}
        account = given.get("sso_account_id") or ""
        if not account and (role := ACCOUNT_IN_ARN.match(given.get("role_arn") or "")):
            account = role[1]
        region = self.environment.get("AWS_REGION") or self.environment.get("AWS_DEFAULT_REGION") or given.get("region")
        if not account and not region:
            return None
        return FoundAccount(
            cloud="aws",
            account=account if re.fullmatch(r"\d{12}", account) else None,
            regions=(region,) if region else (),
            at=f"profile `{name}` of ~/.aws/config",
        )

    def _gcloud(self) -> FoundAccount | None:
        folder = expanded(self.environment.get("CLOUDSDK_CONFIG") or self.home / ".config" / "gcloud")
        named = self.environment.get("CLOUDSDK_ACTIVE_CONFIG_NAME") or (
            plain_text(folder / "active_config") or "default"
        )
        name = named.strip()
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            return None
        config = self._ini(folder / "configurations" / f"config_{name}")
        if config is None:
            return None
        project = config.get("core", "project", fallback="")
        region = config.get("compute", "region", fallback="")
        at = f"gcloud's configuration `{name}`"
        return FoundAccount(cloud="gcp", account=project or None, regions=(region,) if region else (), at=at)

    def _azure(self) -> FoundAccount | None:
        folder = expanded(self.environment.get("AZURE_CONFIG_DIR") or self.home / ".azure")
        text = plain_text(folder / "azureProfile.json")
        try:
            known: Any = json.loads((text or "{}").removeprefix("\ufeff"))
            rows = cast("list[dict[str, Any]]", known.get("subscriptions", []))
            default = next((row for row in rows if row.get("isDefault") is True), None)
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None
        if default is None:
            return None
        at = "the default subscription of `az`"
        return FoundAccount(
            cloud="azure", account=_word(default.get("id")), tenant=_word(default.get("tenantId")), at=at
        )

    def _nebius(self) -> FoundAccount | None:
        text = plain_text(self.home / ".nebius" / "config.yaml")
        try:
            known: Any = yaml.safe_load(text or "")
            name = known["default"]
            profile = cast("dict[str, Any]", known["profiles"][name])
            account = _word(profile.get("parent-id"))
        except (yaml.YAMLError, KeyError, TypeError, AttributeError, RecursionError):
            return None
        return FoundAccount(cloud="nebius", account=account, at=f"profile `{name}` of ~/.nebius/config.yaml")

    def _ini(self, path: Path) -> configparser.ConfigParser | None:
        text = plain_text(path)
        if text is None:
            return None
        config = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            config.read_string(text)
        except configparser.Error:
            self.notes.append(f"{path.name} of {path.parent.name} cannot be read; left out")
            return None
        return config


def _word(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def home() -> Path:
    """Whose machine it is.  A container's user may have none: then a folder that is not there, in which no tool has settings."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def expanded(path: str | Path) -> Path:
    """With `~` as a shell reads it, as it stands for a user without a home."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def plain_text(path: Path) -> str | None:
    """A file's text; None where it is none, is a link, is too large or cannot be read."""
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size > MOST_BYTES:
            return None
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
