"""What a repository and its owner's machine already say: a backend, accounts, the forge, the name.  Offline, and nothing secret is read.

Looked at are `*.tf` and `*.tf.json`, git's own answers, and the settings (never the credentials) of the clouds' command line tools.  Only what stands there as a
plain value counts; what Terraform would compute is not guessed.  Decides what is found; what is written of it is `init_files`'s.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from planner.app.init_hcl import Block, Reference, Unreadable, Value, blocks, json_blocks
from planner.app.init_tools import ACCOUNT_IN_ARN, FoundAccount, Tools, plain_text

CLOUD_OF: Final = {"aws": "aws", "google": "gcp", "google-beta": "gcp", "azurerm": "azure", "nebius": "nebius"}
SKIPPED: Final = frozenset({"node_modules", "cdktf.out", "__pycache__", "venv"})
MOST_FILES: Final = 5000
OURS: Final = "# Written by `skyplan synth"
"""How committed stacks of ours begin (stacks/hcl.py): they follow skyplan.yaml and say nothing of their own."""
GIT_SECONDS: Final = 20
#: what of a backend is carried over: names and switches, no credential and nothing that says where one state lies
CARRIED: Final[dict[str, tuple[str, ...]]] = {
    "s3": ("bucket", "region", "dynamodb_table", "use_lockfile", "encrypt", "kms_key_id", "profile"),
    "gcs": ("bucket", "impersonate_service_account", "kms_encryption_key"),
    "azurerm": (
        "storage_account_name",
        "container_name",
        "resource_group_name",
        "subscription_id",
        "tenant_id",
        "use_azuread_auth",
        "use_oidc",
        "use_msi",
    ),
}
_WORD: Final = re.compile(r"\b(?:backend|provider)\b")
_USEFUL: Final = re.compile(r"\b(?:terraform|provider|variable|locals)\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBackend:
    """A backend as it stands in a file; `settings` are those that are carried over and plain."""

    kind: str
    settings: tuple[tuple[str, str], ...]
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """`root`: of the repository, None outside of one; `remote`: the URL of `origin`; `commit`: whether there is one."""

    root: Path | None = None
    remote: str = ""
    branch: str = ""
    commit: bool = False

    @property
    def host(self) -> str:
        """`github.com`; "" where the remote is a folder or there is none."""
        found = re.match(r"(?:[a-z+]+://(?:[^@/]*@)?|[\w.-]+@)([\w.-]+)", self.remote)
        return found[1].lower() if found else ""

    @property
    def path(self) -> str:
        """`acme/infra`."""
        found = re.match(r"(?:[a-z+]+://[^/]+/|[\w.-]+@[\w.-]+:)(.+?)(?:\.git)?/?$", self.remote)
        return found[1].lstrip("/") if found else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All of it; `notes` are sentences for people: what was left out, and why."""

    git: Git
    backends: tuple[FoundBackend, ...] = ()
    accounts: tuple[FoundAccount, ...] = ()
    notes: tuple[str, ...] = ()


def look(folder: Path, environment: Mapping[str, str], home: Path) -> Found:
    """Everything that can be found out from `folder`."""
    git = git_of(folder)
    notes: list[str] = []
    backends: list[FoundBackend] = []
    accounts: list[FoundAccount] = []
    tools = Tools(environment, home)
    for directory, files in _terraform(folder, git.root or folder, notes):
        plain = _plain_values(files.values())
        for name, file in files.items():
            for block in file.blocks:
                if block.kind == "terraform":
                    given = _backend_files(folder / directory)
                    for one in block.within("backend"):
                        backends += [_backend(one, given, _at(directory / name, one))] if one.labels else []
                elif block.kind == "provider" and block.labels and block.labels[0] in CLOUD_OF:
                    cloud = CLOUD_OF[block.labels[0]]
                    accounts.append(_account(cloud, block, plain, _at(directory / name, block), tools))
    return Found(
        git=git, backends=tuple(backends), accounts=_once(accounts), notes=tuple(dict.fromkeys((*notes, *tools.notes)))
    )


def _at(path: Path, block: Block) -> str:
    return f"{_shown(path)}:{block.line}" if block.line else _shown(path)


def _shown(path: Path) -> str:
    """One printable line: it stands in comments of YAML, which a line break in a folder's name would end."""
    return "".join(c if c.isprintable() else "?" for c in path.as_posix())


def git_of(folder: Path) -> Git:
    """What git says; an empty answer where there is no git, or no repository."""
    root = _git(folder, "rev-parse", "--show-toplevel")
    if not root or Path(root) not in {
        folder.resolve(),
        *folder.resolve().parents,
    }:  # GIT_DIR and GIT_WORK_TREE, as in a hook, name any other
        return Git()
    head = _git(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD").partition("/")[2]
    return Git(
        root=Path(root),
        remote=_git(folder, "config", "--get", "remote.origin.url"),
        branch=head or _git(folder, "symbolic-ref", "--quiet", "--short", "HEAD"),
        commit=bool(_git(folder, "rev-parse", "--verify", "--quiet", "HEAD")),
    )


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words],
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return "" if done.returncode else os.fsdecode(done.stdout).strip()


def _terraform(folder: Path, root: Path, notes: list[str]) -> Iterator[tuple[Path, dict[str, Block]]]:
    """(path below the folder, its Terraform files by name), in the order of paths, of folders that name a backend or a provider."""
    seen = 0
    start = root if root in {folder, *folder.parents} else folder
    for where, names, files in os.walk(start):
        names[:] = sorted(n for n in names if not n.startswith(".") and n not in SKIPPED)
        here = sorted(f for f in files if f.endswith((".tf", ".tf.json")))
        seen += len(here)
        if seen > MOST_FILES:
            notes.append(f"more than {MOST_FILES} Terraform files: the rest was not looked at")
            return
        directory = Path(os.path.relpath(where, folder))
        read = {name: plain_text(Path(where) / name) for name in here}
        texts = {name: text for name, text in read.items() if text is not None and not text.startswith(OURS)}
        if not any(_WORD.search(text) for text in texts.values()):
            continue
        parsed: dict[str, Block] = {}
        for name, text in texts.items():
            if not _USEFUL.search(text):
                continue
            try:
                parsed[name] = json_blocks(text) if name.endswith(".json") else blocks(text)
            except (Unreadable, RecursionError) as error:
                notes.append(f"{_shown(directory / name)} cannot be read ({error}); left out")
        yield directory, parsed


Plain = Mapping[tuple[str, str], Value]


def _plain_values(files: Iterable[Block]) -> Plain:
    """Defaults of variables, and locals, that are plain."""
    found: dict[tuple[str, str], Value] = {}
    for file in files:
        for block in file.blocks:
            if block.kind == "variable" and block.labels:
                found["var", block.labels[0]] = block.values.get("default")
            elif block.kind == "locals":
                found |= {("local", name): value for name, value in block.values.items()}
    return found


def _text_of(value: Value, plain: Plain, *, steps: int = 4) -> str | None:
    while isinstance(value, Reference) and steps:
        value, steps = plain.get((value.kind, value.name)), steps - 1
    return value if isinstance(value, str) and value else None


def _backend(block: Block, given: Mapping[str, Value], at: str) -> FoundBackend:
    """Backends take no references, so none is looked up; what is not plain comes from `given`, or from a command line that nobody sees here."""
    kind = block.labels[0]
    values = {**given, **block.values}
    settings = tuple(
        (name, value) for name in CARRIED.get(kind, ()) if isinstance(value := values.get(name), str) and value
    )
    return FoundBackend(kind=kind, settings=settings, at=at)


def _backend_files(directory: Path) -> Mapping[str, Value]:
    """Values of the one file for `-backend-config` that lies there; nothing where there are several, one for each environment."""
    try:
        found = sorted({*directory.glob("*.tfbackend"), *directory.glob("backend*.hcl")})
    except OSError:
        return {}
    if len(found) != 1:
        return {}
    try:
        return blocks(plain_text(found[0]) or "").values
    except (Unreadable, RecursionError):
        return {}


def _account(cloud: str, block: Block, plain: Plain, at: str, tools: Tools) -> FoundAccount:
    def plainly(name: str) -> str | None:
        return _text_of(block.values.get(name), plain)

    region = plainly("region") or plainly("location")
    account, tenant = None, None
    match cloud:
        case "aws":
            account = _aws_account(block, plain)
            profile = plainly("profile")
            if account is None and (said := tools.aws(profile)):
                account, at = said.account, f"{at}, {said.at}"
                region = region or (said.regions[0] if said.regions else None)
        case "gcp":
            account = plainly("project")
        case "azure":
            account, tenant = plainly("subscription_id"), plainly("tenant_id")
        case _:
            account = plainly("parent_id")
    return FoundAccount(cloud=cloud, account=account, tenant=tenant, regions=(region,) if region else (), at=at)


def _aws_account(block: Block, plain: Plain) -> str | None:
    given = block.values.get("allowed_account_ids")
    while isinstance(given, Reference):
        given = plain.get((given.kind, given.name))
        if isinstance(given, Reference):
            return None
    if isinstance(given, tuple) and len(given) == 1:
        return given[0]
    for role in block.within("assume_role"):
        arn = _text_of(role.values.get("role_arn"), plain) or ""
        if found := ACCOUNT_IN_ARN.match(arn):
            return found[1]
    return None


def _once(accounts: Iterable[FoundAccount]) -> tuple[FoundAccount, ...]:
    """One of each account, with the regions of all of its providers; those without an account only where their cloud has none with."""
    merged: dict[tuple[str, str | None], FoundAccount] = {}
    for one in accounts:
        before = merged.get((one.cloud, one.account))
        regions = tuple(sorted({*(before.regions if before else ()), *one.regions}))
        kept = before or one
        merged[one.cloud, one.account] = FoundAccount(
            cloud=one.cloud, account=one.account, tenant=kept.tenant or one.tenant, regions=regions, at=kept.at
        )
    named = {cloud for cloud, account in merged if account is not None}
    return tuple(one for (cloud, account), one in sorted(merged.items(), key=_order) if account or cloud not in named)


def _order(row: tuple[tuple[str, str | None], FoundAccount]) -> tuple[int, str]:
    (cloud, account), _ = row
    return (list(CLOUD_OF.values()).index(cloud), account or "")


def usual(backends: Iterable[FoundBackend]) -> tuple[FoundBackend | None, tuple[FoundBackend, ...]]:
    """The store that most stacks keep their state in, the first of them by path where two are equal; and one each of the other stores."""
    found = list(backends)
    counted = Counter((one.kind, one.settings) for one in found)
    if not counted:
        return None, ()
    best = max(counted, key=lambda key: (counted[key], -[(b.kind, b.settings) for b in found].index(key)))
    first: dict[tuple[str, tuple[tuple[str, str], ...]], FoundBackend] = {}
    for one in found:
        first.setdefault((one.kind, one.settings), one)
    return first.pop(best), tuple(first.values())
