"""`skyplan init`: what a repository needs to be planned in, made of what it says already.

Decides which files are written and which are only proposed.  A file that is there is never overwritten: `.gitignore` gets lines at its end, every other one is left
and what it lacks is shown.  All files are written or none.  Asks no cloud and nobody; what cannot be found out is a flag.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from planner.app import init_ci, init_files, init_find, schemas
from planner.app.files import write_together
from planner.app.init_places import File, Files, read
from planner.app.inputs import PROJECT_FILE
from planner.app.inputs import shown as shown_path
from planner.model.diagnostic import Diagnostic, Location, Severity, ordered
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.project import Backend
from planner.spec.backend import REQUIRED
from planner.spec.project import parse_project

if TYPE_CHECKING:
    from planner.app.init_find import Found, FoundAccount, FoundBackend
    from planner.model.words import Words

CLOUDS: Final = ("aws", "gcp", "azure", "nebius")
SCHEMAS: Final = "schemas"
EXAMPLE: Final = Path("jobs") / "example.yaml"
CODEOWNERS: Final = ("CODEOWNERS", ".github/CODEOWNERS", ".gitlab/CODEOWNERS", "docs/CODEOWNERS")
WRITTEN_SCHEMAS: Final = ("job", "project")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The flags.  `clouds` () = those found; `accounts`: (cloud, id); `project`, `backend`, `forge` "" = as found; `source`: where CI gets skyplan from."""

    folder: Path
    clouds: tuple[str, ...] = ()
    accounts: tuple[tuple[str, str], ...] = ()
    project: str = ""
    backend: str = ""
    forge: str = ""
    ci: bool = True
    cdktf: bool = False
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What is to be written (`texts`: absolute path -> bytes), what is proposed, what was found (key -> words), and the commands to go on with."""

    folder: Path
    files: tuple[File, ...]
    texts: Mapping[Path, bytes]
    found: Mapping[str, str]
    notes: tuple[str, ...]
    next: tuple[str, ...]

    @property
    def changes(self) -> bool:
        """Whether anything is written."""
        return bool(self.texts)


def prepare(asked: Asked, words: Words, environment: Mapping[str, str], home: Path) -> Outcome:
    """What a run would do.  Raises InputError where flags or a file that is there are wrong, or something stands in the way; nothing is written."""
    folder = asked.folder.resolve()
    found = init_find.look(folder, environment, home)
    files = Files(folder=folder, top=found.git.root or folder)
    notes = list(found.notes)
    name = asked.project or project_name(folder, found.git.path)
    project_file = folder / PROJECT_FILE
    standing = _standing(project_file, words)
    if standing is not None:
        name = standing
    forge = asked.forge or forge_of(files.top, found.git.host)
    backend, backend_at = _backend(asked, found.backends, notes)
    targets = init_files.targets_of(_accounts(asked, found, environment, home, notes))
    sections = init_files.project_sections(name=name, targets=targets, backend=backend, backend_at=backend_at)
    text = init_files.project_text(
        sections,
        f"{SCHEMAS}/project{schemas.SUFFIX}",
        ci=found.git,
        ci_provider=_ci_provider(forge, found.git.host, found.git),
    )
    _project(files, project_file, text, sections, words)
    example = _example(files, folder)
    for one in WRITTEN_SCHEMAS:
        path = folder / SCHEMAS / f"{one}{schemas.SUFFIX}"
        text = pretty(schemas.one(one)).decode()
        files.given(path, text, f"of another version; `skyplan schema {one} --out {SCHEMAS}` writes this one's")
    _gitignore(files, folder / ".gitignore")
    if asked.cdktf:
        files.given(folder / "cdktf.json", init_files.cdktf_text(name), "it is yours; take `app` and `output` over")
    if asked.ci:
        _ci(files, forge, found, replace(asked, project=name), notes)
    _owners(files, notes)
    if found.git.root is None:
        notes.append("this is no git repository: changes of plans are reviewed in one; `git init` makes it")
    if files.problems:
        raise InputError(ordered(files.problems))
    return Outcome(
        folder=folder,
        files=tuple(files.files),
        texts=files.texts,
        found=_found(name, targets, backend, backend_at, forge),
        notes=tuple(dict.fromkeys(notes)),
        next=_next(example, found),
    )


def write(outcome: Outcome) -> None:
    """All files or none; folders that were made for them are taken away again where one cannot be written.  Raises InputError."""
    absent = sorted({p for path in outcome.texts for p in path.parents if not p.exists()}, key=lambda p: -len(p.parts))
    try:
        write_together(outcome.texts)
    except InputError:
        for path in absent:
            with contextlib.suppress(OSError):
                path.rmdir()
        raise


def project_name(folder: Path, repository: str) -> str:
    """The repository's, else the folder's, as skyplan.yaml takes it."""
    for text in (repository.rpartition("/")[2], folder.name):
        made = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").lstrip("0123456789-")[:40].rstrip("-")
        if len(made) > 1:
            return made
    return "skyplan-jobs"


def forge_of(root: Path, host: str) -> str:
    """`github`, `gitlab`, or "" where neither a CI's files nor the remote say it.  What CI files say goes before a remote's name."""
    files = [name for name, path in (("github", ".github"), ("gitlab", ".gitlab-ci.yml")) if (root / path).exists()]
    if len(files) == 1:
        return files[0]
    return next((name for name in ("github", "gitlab") if name in host), "")


def _standing(path: Path, words: Words) -> str | None:
    """The project's name where skyplan.yaml is there.  Raises InputError where it has errors: they come first."""
    text = read(path)
    if text is None:
        return None
    project, problems = parse_project(text, shown_path(path), words)
    if any(d.severity is Severity.ERROR for d in problems):
        raise InputError(problems)
    return project.name


def _project(files: Files, path: Path, text: str, sections: Mapping[str, str], words: Words) -> None:
    _, problems = parse_project(text, PROJECT_FILE, words)
    if errors := [d for d in problems if d.severity is Severity.ERROR]:
        # a flag's value, or one out of a file that Terraform takes and skyplan does not
        raise InputError(errors)
    before = read(path)
    if before is None:
        files.new(path, text)
        return
    lacking = [lines for key, lines in sections.items() if not re.search(rf"^{key}\s*:", before, re.MULTILINE)]
    if not lacking:
        files.keep(path, "it is yours")
        return
    end = "" if not before or before.endswith("\n") else "\n"
    files.propose(path, before, f"{before}{end}{''.join(lacking)}", "what was found and does not stand in it")


def _example(files: Files, folder: Path) -> str:
    """How the jobs are named to `skyplan plan`.  Written only where no job is there yet."""
    path = folder / EXAMPLE
    if read(path) is not None:
        files.keep(path, "it is yours")
    elif any(_is_job(one) for one in sorted((folder / "jobs").glob("*.y*ml"))):
        return "jobs/*.yaml"
    else:
        files.new(path, init_files.job_text(f"../{SCHEMAS}/job{schemas.SUFFIX}"))
    return EXAMPLE.as_posix()


def _is_job(path: Path) -> bool:
    return bool(re.search(r"^work\s*:", read(path) or "", re.MULTILINE))


def _gitignore(files: Files, path: Path) -> None:
    try:
        before = path.read_bytes().decode("utf-8", "surrogateescape") if path.is_file() else None
    except OSError as error:
        summary = f"cannot be read: {error.strerror}"
        files.problems.append(Diagnostic(code="SKY-SPEC-101", summary=summary, location=Location(files.shown(path))))
        return
    after = init_files.with_ignores(before or "")
    if before is None:
        files.new(path, after)
    elif after == before:
        files.keep(path)
    else:
        files.append(path, before, after)


def _ci(files: Files, forge: str, found: Found, asked: Asked, notes: list[str]) -> None:
    inner = Path(os.path.relpath(files.folder, files.top)).as_posix()
    source = asked.source or init_ci.source()
    match forge:
        case "github":
            text = init_ci.github(inner=inner, name=asked.project, source=source)
            files.given(files.top / init_ci.GITHUB, text, "it is yours; take over what you want")
        case "gitlab":
            text = init_ci.gitlab(inner=inner, name=asked.project, source=source)
            files.given(files.top / init_ci.GITLAB_PART, text, "it is yours; take over what you want")
            _include(files)
        case _:
            where = f"{found.git.host} is neither" if found.git.host else "no remote says which it is"
            notes.append(
                f"no CI file: it is written for GitHub and GitLab, and {where}; --forge github or --forge gitlab"
            )
            return
    if not (init_ci.uses_of(source) if forge == "github" else source):
        notes.append(init_ci.WHERE_FROM[forge])


def _include(files: Files) -> None:
    """`.gitlab-ci.yml` is one file for everything: it is written where there is none, and else proposed."""
    path = files.top / init_ci.GITLAB
    before = read(path, errors="surrogateescape")
    if before is None:
        files.new(path, init_ci.include(""))
    elif init_ci.GITLAB_PART in before:
        files.keep(path)
    else:
        files.propose(path, before, init_ci.include(before), "add the include")


def _owners(files: Files, notes: list[str]) -> None:
    """A proposal only: who owns limits and budgets is for people to say."""
    inner = Path(os.path.relpath(files.folder, files.top)).as_posix()
    pattern = f"/{PROJECT_FILE}" if inner == "." else f"/{inner}/{PROJECT_FILE}"
    for name in CODEOWNERS:
        path = files.top / name
        before = read(path, errors="surrogateescape")
        if before is None:
            continue
        if PROJECT_FILE in before:
            return
        every = re.search(r"^\*\s+(\S.*)$", before, re.MULTILINE)
        line = f"{pattern} {every[1].strip() if every else '@OWNERS-OF-ACCOUNTS'}\n"
        end = "" if before.endswith("\n") else "\n"
        files.propose(path, before, f"{before}{end}{line}", "limits belong to who answers for the accounts")
        return
    notes.append(
        f"{PROJECT_FILE} holds limits and budgets: `{pattern} @who-owns-the-accounts` in CODEOWNERS keeps them reviewed"
    )


def _backend(asked: Asked, found: Iterable[FoundBackend], notes: list[str]) -> tuple[Backend | None, str]:
    if asked.backend:
        return _backend_flag(asked.backend), ""
    one, others = init_find.usual(found)
    if one is None:
        notes.append(
            "no backend was found: states stay in .skyplan/, which is not for CI; --backend s3:bucket=…,region=…"
        )
        return None, ""
    notes += [f"another backend stands in {other.at} ({other.kind}); it was not taken" for other in others]
    if one.kind not in REQUIRED:
        notes.append(
            f"the backend `{one.kind}` of {one.at} is none that skyplan writes ({', '.join(REQUIRED)}); --backend"
        )
        return None, ""
    lacking = [name for name in REQUIRED[one.kind] if name not in dict(one.settings)]
    if lacking:
        what = ", ".join(f"{name}=…" for name in lacking)
        notes.append(f"the backend of {one.at} does not say {', '.join(lacking)}; --backend {one.kind}:{what}")
        return None, ""
    return Backend(kind=one.kind, settings=one.settings), one.at


def _backend_flag(text: str) -> Backend:
    """`KIND` or `KIND:NAME=VALUE,…`.  Whether it will do is what skyplan.yaml's own reader says."""
    kind, _, rest = text.partition(":")
    pairs = [part.partition("=") for part in rest.split(",") if part]
    return Backend(kind=kind, settings=tuple((name.strip(), value.strip()) for name, _, value in pairs))


def _accounts(
    asked: Asked, found: Found, environment: Mapping[str, str], home: Path, notes: list[str]
) -> list[FoundAccount]:
    tools = init_find.Tools(environment, home)
    given = dict(asked.accounts)
    wanted = asked.clouds or tuple(c for c in CLOUDS if c in given or any(a.cloud == c for a in found.accounts))
    out: list[FoundAccount] = []
    for cloud in wanted:
        here = [one for one in found.accounts if one.cloud == cloud]
        if cloud in given:
            regions = here[0].regions if here else ()
            here = [init_find.FoundAccount(cloud=cloud, account=given[cloud], regions=regions, at="")]
        elif not any(one.account for one in here) and (said := tools.of(cloud)) is not None:
            here = [said]
        out += _usable(cloud, here, notes, asked=bool(asked.clouds))
    notes += tools.notes
    return out


def _usable(cloud: str, here: Sequence[FoundAccount], notes: list[str], *, asked: bool) -> Sequence[FoundAccount]:
    """A cloud without an account is planned for by whoever's credentials are there; Nebius needs one to be ranked at all."""
    if any(one.account for one in here):
        return here
    hint = f"--account {cloud}=…"
    if cloud == "nebius":
        if asked:
            summary = "a target on nebius needs `project`, in which it makes resources"
            raise InputError([Diagnostic(code="SKY-SPEC-103", summary=summary, hint=hint)])
        notes.append(f"nebius was left out: nothing says in which project; {hint}")
        return ()
    notes.append(f"nothing says which account of {cloud} is meant: who applies decides it; {hint}")
    return here or [init_find.FoundAccount(cloud=cloud, account=None, at="")]


def _ci_provider(forge: str, host: str, git: init_find.Git) -> str:
    """Only of the two public forges: the issuer of any other is not known here."""
    ours = {"github": "github.com", "gitlab": "gitlab.com"}
    return forge if forge and host == ours[forge] and git.path and git.branch else ""


def _found(
    name: str, targets: Sequence[init_files.Target], backend: Backend | None, at: str, forge: str
) -> dict[str, str]:
    clouds = ", ".join(f"{t.cloud} {t.account or 'as configured'}" for t in targets) or "every cloud, as configured"
    where = "" if backend is None else dict(backend.settings).get("bucket", "")
    kept = "local files" if backend is None else " ".join(filter(None, (backend.kind, where, f"({at})" if at else "")))
    return {"project": name, "targets": clouds, "backend": kept, "forge": forge or "unknown"}


def _next(example: str, found: Found) -> tuple[str, ...]:
    git = found.git
    before = "" if git.root is not None else "git init && "
    before += "" if git.commit else 'git commit --allow-empty -m "Before skyplan" && '
    compare = f"{before}skyplan diff --base HEAD"
    return (f"skyplan plan {example} --out plans", compare, "skyplan audit")


def document(outcome: Outcome, *, dry_run: bool) -> dict[str, Any]:
    """For `--json`."""
    files = [
        {
            "path": f.path,
            "action": f.action,
            **({"diff": f.diff} if f.diff else {}),
            **({"why": f.why} if f.why else {}),
        }
        for f in outcome.files
    ]
    return cast(
        "dict[str, Any]",
        {
            "format_version": "1.0",
            "dry_run": dry_run,
            "changed": outcome.changes and not dry_run,
            "found": dict(outcome.found),
            "files": files,
            "notes": list(outcome.notes),
            "next": list(outcome.next),
        },
    )
