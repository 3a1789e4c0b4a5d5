"""R21: every golden stack as native HCL: parsed by a parser that is not ours it has the same structure; Terraform and `terraform fmt` find nothing to change.

Equality is held by the plan: what Terraform would do with the HCL form is what it would do with the JSON form, with real schemas of four clouds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hcl2
import pytest

from planner.model.errors import InputError
from planner.model.offer import Cloud
from stacks import hcl, hcl_files, hcl_root
from tests.emulators import terraform as machine
from tests.emulators.terraform import SCHEMAS, SOURCES, Terraform
from tests.stacks import cases, golden_jobs

GOLDEN = Path(__file__).with_name("golden")
Document = dict[str, Any]


def _stacks(path: Path) -> list[tuple[str, Document]]:
    document: Document = json.loads(path.read_text(encoding="utf-8"))
    name = str(path.relative_to(GOLDEN)).removesuffix(".json")
    if "terraform" in document:
        return [(name, document)]
    return [(f"{name}-{part}", inner) for part, inner in document.items()]


STACKS = [stack for path in sorted(GOLDEN.rglob("*.json")) for stack in _stacks(path)]


def test_golden_stacks_of_all_clouds_and_kinds_were_found() -> None:
    assert {next(iter(d["terraform"]["required_providers"])) for _, d in STACKS} >= set(SOURCES)
    assert len(STACKS) > 180


# parsed by python-hcl2


def _parsed(files: dict[str, str]) -> Document:
    """What python-hcl2 reads, in the form of Terraform JSON."""
    options = hcl2.SerializationOptions(with_comments=False, explicit_blocks=False)
    out: Document = {}
    for text in files.values():
        for kind, blocks in hcl2.loads(text, serialization_options=options).items():
            for one in blocks:
                _merge(out.setdefault(kind, {}), kind, one)
    return _plain(out)


def _merge(into: Document, kind: str, one: Document) -> None:
    if kind == "terraform":
        into.update(one)
        return
    for label, inner in one.items():
        if kind in {"data", "resource"}:
            into.setdefault(label, {}).update(inner)
        elif kind == "provider":
            into.setdefault(label, []).append(inner)
        else:
            into[label] = inner


def _plain(value: Any) -> Any:
    """One form for both sides: quotes and spaces of expressions gone, a list of one object is the object (a block says not which it is)."""
    if isinstance(value, dict):
        return {_text(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        inner = [_plain(one) for one in value]
        return inner[0] if len(inner) == 1 and isinstance(inner[0], dict) else inner
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> str:
    """As Terraform JSON has it."""
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        # python-hcl2 leaves escapes as they were written
        parts = re.split(r"(\$\{[^}]*\})", value[1:-1])
        value = "".join(p if p.startswith("${") else json.loads(f'"{p}"') for p in parts)
    whole = re.fullmatch(r"\$\{(.*)\}", value, re.DOTALL)
    return re.sub(r"\s+", "", re.sub(r"^\((.*)\)$", r"\1", whole[1])) if whole else value


def _expected(document: Document) -> Document:
    made = {kind: inner for kind, inner in document.items() if kind != "//"}
    return _plain(json.loads(json.dumps(made)))


@pytest.mark.parametrize("document", [d for _, d in STACKS], ids=[n for n, _ in STACKS])
def test_another_parser_reads_the_same_structure(document: Document) -> None:
    assert _parsed(hcl.files(document)) == _expected(document)


def test_the_same_document_gives_the_same_bytes_in_any_order_of_its_keys() -> None:
    for _, document in STACKS:
        turned = json.loads(json.dumps(document, sort_keys=True))
        backwards = {kind: turned[kind] for kind in reversed(list(turned))}
        assert hcl.files(backwards) == hcl.files(document)


def test_what_no_stack_has_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="moved"):
        hcl.files({**STACKS[0][1], "moved": []})


# on disk


def _left(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_writing_touches_what_differs_and_removes_what_is_ours_alone(tmp_path: Path) -> None:
    text = f"{hcl.HEADER}\nvariable"
    first = {"acc-a": {"main.tf": text, "outputs.tf": text}, "job-a": {"main.tf": text, "access/main.tf": text}}
    hcl_files.write(first, tmp_path, stale=lambda _: False)
    (tmp_path / "acc-a" / ".terraform.lock.hcl").write_text("theirs")
    (tmp_path / "acc-a" / "backend.tf").write_text("theirs")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "main.tf").write_text("theirs")
    before = (tmp_path / "acc-a" / "main.tf").stat().st_mtime_ns
    written = hcl_files.write({"acc-a": {"main.tf": text}}, tmp_path, stale=lambda _: False)
    assert written == ((tmp_path / "acc-a" / "main.tf",), ())
    assert (tmp_path / "acc-a" / "main.tf").stat().st_mtime_ns == before
    kept = {"acc-a/.terraform.lock.hcl", "acc-a/backend.tf", "own/main.tf"}
    assert _left(tmp_path) == {*kept, "acc-a/main.tf", "job-a/main.tf", "job-a/access/main.tf"}
    written = hcl_files.write({"net": {"main.tf": text}}, tmp_path, stale=lambda _: True)
    assert written.emptied == (tmp_path / "acc-a", tmp_path / "job-a")
    assert _left(tmp_path) == {*kept, "net/main.tf"}
    assert not (tmp_path / "job-a").exists()


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_is_not_ours_is_not_written_over_and_then_nothing_is(tmp_path: Path, kind: str) -> None:
    text = f"{hcl.HEADER}\nvariable"
    mine, taken = tmp_path / "mine", tmp_path / "out" / "acc-a" / "outputs.tf"
    mine.write_text(text)
    taken.parent.mkdir(parents=True)
    match kind:
        case "file":
            taken.write_text('output "own" { value = 1 }\n')
        case "link":
            taken.symlink_to(mine)
        case _:
            taken.mkdir()
    new = f"{hcl.HEADER}\noutput"
    with pytest.raises(InputError, match="symbolic link" if kind == "link" else "not of skyplan"):
        hcl_files.write({"acc-a": {"main.tf": new, "outputs.tf": new}}, tmp_path / "out", stale=lambda _: True)
    assert mine.read_text() == text
    assert [p.name for p in taken.parent.iterdir()] == ["outputs.tf"]
    assert kind != "file" or "own" in taken.read_text()


def test_a_file_of_ours_with_other_line_ends_is_still_ours(tmp_path: Path) -> None:
    text = f"{hcl.HEADER}\nvariable\n"
    (tmp_path / "acc-a").mkdir()
    (tmp_path / "acc-a" / "main.tf").write_bytes(text.replace("\n", "\r\n").encode())
    hcl_files.write({"acc-a": {"main.tf": text}}, tmp_path, stale=lambda _: False)
    assert (tmp_path / "acc-a" / "main.tf").read_bytes() == text.encode()


# Terraform's own opinion

terraform_only = pytest.mark.terraform
Made = Callable[[str], Terraform]


@pytest.fixture(scope="session")
def stubbed(tmp_path_factory: pytest.TempPathFactory) -> Terraform:
    """All four providers with their real schemas, served by the stub."""
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    stubs = {name: SCHEMAS / f"{name}.json.gz" for name in SOURCES}
    return machine.prepare(tmp_path_factory.mktemp("stubs"), stubs=stubs)


def _put(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@terraform_only
def test_terraform_fmt_would_change_nothing(tmp_path: Path) -> None:
    if reason := machine.missing(aws=False):
        pytest.skip(reason)
    for number, (_, document) in enumerate(STACKS):
        _put(tmp_path / str(number), hcl.files(document))
    terraform = machine.prepare(tmp_path / "home", stubs={})
    done = terraform.run(tmp_path, "fmt", "-check", "-diff", "-recursive")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture(scope="session")
def placed(render) -> Callable[[Cloud], cases.Rendered]:
    """The stacks of a cluster of two nodes, the richest that a cloud has, as they are written: with what nodes boot."""

    def of(cloud: Cloud) -> cases.Rendered:
        job = next(j for j in golden_jobs.every() if j.cloud is cloud and j.name.startswith("two-nodes-"))
        case = golden_jobs.best(job)
        net, acc, cmp = (render(given) for given in case.inputs)
        return cases.Rendered(case=case, net=net, acc=acc, cmp=cmp)

    return of


#: for variables without a default, by the name's end and type: any value of the type
_VALUES = {"string": "x", "map(string)": {}, "list(string)": ["x"] * 8, "number": 1, "bool": True}


def _given(document: Document) -> Document:
    names = document.get("variable", {})
    zones = {z: f"subnet-{z}" for z in re.findall(r'var\.\w*subnet_ids\["([^"]*)"\]', json.dumps(document).replace('\\"', '"'))}  # fmt: skip
    return {
        name: zones if name.endswith("subnet_ids") else _VALUES[declared["type"]] for name, declared in names.items()
    }


def _plan(terraform: Terraform, folder: Path, **environment: str) -> Document:
    terraform.ok(folder, "init", "-no-color", **environment)
    terraform.ok(folder, "validate", "-no-color", **environment)
    terraform.ok(folder, "plan", "-no-color", "-out", "made.plan", **environment)
    shown: Document = json.loads(terraform.ok(folder, "show", "-json", "made.plan", **environment))
    return {part: shown.get(part) for part in ("variables", "planned_values", "resource_changes", "output_changes", "prior_state")}  # fmt: skip


def _timeless(plan: Document) -> Document:
    """Less the order that Terraform gives `checks` and the like: it names none of ours."""
    return json.loads(json.dumps(plan, sort_keys=True))


def both_forms(terraform: Terraform, folder: Path, document: Document, **environment: str) -> tuple[Document, Document]:
    """Plans of the JSON form and of the HCL form."""
    values = json.dumps(_given(document))
    as_json = _put(folder / "json", {"cdk.tf.json": json.dumps(document), "x.auto.tfvars.json": values})
    as_hcl = _put(folder / "hcl", {**hcl.files(document), "x.auto.tfvars.json": values})
    return _timeless(_plan(terraform, as_json, **environment)), _timeless(_plan(terraform, as_hcl, **environment))


@terraform_only
@pytest.mark.parametrize("cloud", [c if c is Cloud.AWS else pytest.param(c, marks=pytest.mark.full) for c in Cloud])
@pytest.mark.parametrize("part", ["net", "acc", "cmp"])
def test_terraform_plans_the_same_from_both_forms(stubbed, placed, tmp_path: Path, cloud: Cloud, part: str) -> None:
    document = getattr(placed(cloud), part)
    from_json, from_hcl = both_forms(stubbed, tmp_path, document, STUB_LOG=str(tmp_path / "log"))
    assert from_hcl == from_json
    assert from_hcl["planned_values"]


@terraform_only
@pytest.mark.parametrize("cloud", list(Cloud))
def test_a_root_module_of_three_is_valid_and_plans_all_of_them(stubbed, placed, tmp_path: Path, cloud: Cloud) -> None:
    rendered = placed(cloud)
    documents = {"network": rendered.net, "access": rendered.acc, "compute": rendered.cmp}
    _put(tmp_path, hcl_root.root_files(documents, rendered.case.compute))
    plan = _plan(stubbed, tmp_path, STUB_LOG=str(tmp_path / "log"))
    planned = [one["address"] for one in plan["resource_changes"] if one["mode"] == "managed"]
    wanted = [
        (child, kind, name)
        for child, document in documents.items()
        for kind, named in document.get("resource", {}).items()
        for name in named
    ]
    assert wanted
    for child, kind, name in wanted:
        assert any(address.startswith(f"module.{child}.{kind}.{name}") for address in planned), (child, kind, name)
    assert stubbed.run(tmp_path, "fmt", "-check", "-recursive").returncode == 0


def test_the_root_hands_on_what_apply_hands_on(placed) -> None:
    rendered = placed(Cloud.AWS)
    documents = {"network": rendered.net, "access": rendered.acc, "compute": rendered.cmp}
    main = hcl_root.root_files(documents, rendered.case.compute)["main.tf"]
    assert "vpc_id             = module.network.vpc_id" in main
    key = rendered.case.compute.template_key
    assert re.search(rf'= module\.access\.launch\["{re.escape(key)}[^"]*"\]\.subnet_id$', main, re.MULTILINE)


def test_the_root_module_is_what_the_page_shows(placed) -> None:
    """docs/terraform.md has one of a job on AWS; the key of the launch is the placement's."""
    page = (Path(__file__).parents[2] / "docs" / "terraform.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r'```terraform title="terraform/job-train/main.tf"\n(.*?)```', page, re.DOTALL)
    rendered = placed(Cloud.AWS)
    documents = {"network": rendered.net, "access": rendered.acc, "compute": rendered.cmp}
    made = hcl_root.root_files(documents, rendered.case.compute)["main.tf"].removeprefix(f"{hcl.HEADER}\n")
    assert re.sub(r'launch\["[^"]*"\]', 'launch["g4dn.xlarge/use1-az4"]', made) == shown


@terraform_only
@pytest.mark.parametrize("part", ["net", "acc", "cmp"])
def test_the_real_provider_finds_nothing_wrong(placed, tmp_path: Path, part: str) -> None:
    if reason := machine.missing(aws=True):
        pytest.skip(reason)
    terraform = machine.prepare(tmp_path / "home")
    _put(tmp_path / "stack", hcl.files(getattr(placed(Cloud.AWS), part)))
    terraform.ok(tmp_path / "stack", "init", "-backend=false", "-no-color")
    terraform.ok(tmp_path / "stack", "validate", "-no-color")


def test_no_file_names_a_program_that_ci_would_need() -> None:
    """Neither Node nor the CDK nor skyplan runs where these files are applied."""
    for _, document in STACKS:
        text = "".join(hcl.files(document).values()).replace(hcl.HEADER, "")
        assert "local-exec" not in text
        assert 'data "external"' not in text
