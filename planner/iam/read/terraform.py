"""Any Terraform JSON as what an audit looks at: a stack of skyplan's, a user's own `*.tf.json`, `terraform show -json` of a plan or a state, a state file.

Decides which blocks a document has and what their values are; what they mean is each cloud's reader's.  What holds rights and cannot be read is
named in `Audited.unread`.  A variable's default counts as its value: which one an operator gives is not in the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from typing import Any, cast

from planner.iam.read import aws, azure, gcp, nebius
from planner.iam.read.leak_places import addressed, stored_address
from planner.iam.read.lines import Path, line_index
from planner.iam.read.references import Block, Computed, Document, Unknown, many
from planner.iam.secrets import scan_document
from planner.model.diagnostic import Diagnostic, Location
from planner.model.digest import pretty
from planner.model.errors import InputError
from planner.model.policy import Audited

_INDEX = re.compile(r"\[[^\]]*\]")
_ABOUT_RIGHTS = re.compile(r"iam|role|policy|permission|access")
_READERS = (aws, gcp, azure, nebius)
#: major versions of what `terraform show -json` prints, of which 0 was never another; and of state files
_SHOWN_VERSIONS = ("0", "1")
_STATE_VERSION = 4
#: data sources that are policies -> what in them grants
_STATED = {"aws_iam_policy_document": "statement", "google_iam_policy": "binding"}

Json = Mapping[str, Any]


_PARTLY = "it holds values that are known only after apply, and is read without what is written around them; audit the state then"


class _Referred(Unknown):
    """What an expression refers to, in place of what it makes of it: a plan of HCL shows no more."""

    __slots__ = ()


#: an item of a list that no configuration shows, such as one in a `dynamic` block
_NOT_YET = _Referred("${known.after_apply}")


def read_terraform(document: Json, *, file: str, text: str | None = None) -> Audited:
    """What the document says of rights, and what in it looks like a secret.  `text` is the file's, for line numbers; a stack of skyplan's needs none.

    Raises InputError (SKY-IAM-902) for a form that is not known: read as if it were, it would look clean.
    """
    found = blocks_of(document, file=file, text=text)
    place = Location(file) if file else None
    leaks = dict.fromkeys(
        replace(leak, origin=_leak_origin(document, leak.origin, found.label), location=place)
        for leak in scan_document(document, origin=found.label)
    )
    return joined(rights_of(found), Audited(leaks=tuple(leaks)))


def _leak_origin(document: Json, origin: str, label: str) -> str:
    path = origin.removeprefix(f"{label} ")
    return origin if path == origin else f"{label} {addressed(document, path)}"


def rights_of(found: Document) -> Audited:
    """What its blocks say, by all clouds' readers."""
    parts = [reader.read(found) for reader in _READERS]
    return joined(*parts, Audited(unread=tuple(dict.fromkeys(found.unread))))


def joined(*parts: Audited) -> Audited:
    """All of them as one."""
    return reduce(_both, parts, Audited())


def _both(left: Audited, right: Audited) -> Audited:
    values = {part.name: (getattr(left, part.name), getattr(right, part.name)) for part in fields(Audited)}
    return Audited(**{name: one | other if name == "needs" else one + other for name, (one, other) in values.items()})


def blocks_of(document: Json, *, file: str, text: str | None = None) -> Document:
    """The document's blocks, whichever of the forms it has.  Raises InputError."""
    if wrong := _wrong(document):
        raise InputError([Diagnostic(code="SKY-IAM-902", summary=wrong, location=Location(file), hint=_FORMS)])
    if "planned_values" in document:
        return _shown(document, file, plan=True)
    if "root_module" in _object(document.get("values")):
        return _shown(document, file, plan=False)
    if isinstance(document.get("resources"), list) and "version" in document:
        return _state_file(document, file)
    return _configuration(document, file, text)


_FORMS = "give what `terraform show -json` of Terraform 0.12 to 1.x prints, or a state file of version 4"


def _wrong(document: Json) -> str:
    """Why this is none of the forms that are read; "" where it is one."""
    shown = next((name for name in ("planned_values", "values") if name in document), "")
    version = document.get("format_version")
    if version is not None and str(version).partition(".")[0] not in _SHOWN_VERSIONS:
        return f"format_version {version!r} is not known"
    if shown and not isinstance(document[shown], dict):
        return f"`{shown}` is no object"
    if isinstance(document.get("resources"), list) and document.get("version", _STATE_VERSION) != _STATE_VERSION:
        return f"a state file of version {document['version']!r} is not known"
    return ""


def _computed() -> Mapping[str, Computed]:
    return {kind: made for reader in _READERS for kind, made in reader.COMPUTED.items()}


def _object(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


# what is written


def _configuration(document: Json, file: str, text: str | None) -> Document:
    stack = str(_object(_object(document.get("//")).get("metadata")).get("stackName", ""))
    if text is None and stack:
        text = pretty(document).decode()
    blocks = [
        Block(
            type=kind,
            name=name,
            address=f"{prefix}{kind}.{name}",
            values=values,
            is_data=bool(prefix),
            path=path,
        )
        for section, prefix in (("data", "data."), ("resource", ""))
        for (kind, name), values, path in _labelled(document.get(section), (section,), 2)
    ]
    scope: dict[str, tuple[Any, str]] = {}
    for (name,), values, _ in _labelled(document.get("variable"), ("variable",), 1):
        if values.get("default") is not None:
            scope[f"var.{name}"] = (values["default"], "")
    for values in map(_object, many(document.get("locals"))):
        scope |= {f"local.{name}": (value, "") for name, value in values.items()}
    providers = _main((name, values) for (name,), values, _ in _labelled(document.get("provider"), ("provider",), 1))
    return Document(
        file=file,
        label=stack or file,
        stack=stack,
        blocks=tuple(blocks),
        scopes={"": scope},
        providers=providers,
        lines=line_index(text) if text else {},
        computed=_computed(),
        unread=[
            f"{stack or file} {what}; audit `terraform show -json` of a plan" for what in _absent(document, blocks)
        ],
    )


def _main(configured: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Of several configurations of a provider the one without an alias, by which most is made; else the first."""
    out: dict[str, dict[str, Any]] = {}
    for name, values in configured:
        if name not in out or "alias" not in values:
            out[name] = values
    return out


def _alias(given: Json) -> dict[str, Any]:
    return {"alias": given["alias"]} if given.get("alias") else {}


def _absent(document: Json, blocks: Sequence[Block]) -> Iterator[str]:
    """What may hold rights, and only Terraform can tell."""
    for (name,), _, _ in _labelled(document.get("module"), ("module",), 1):
        yield f"module.{name}: what is in a module is not in this document"
    for block in blocks:
        if "dynamic" in block.values and _ABOUT_RIGHTS.search(block.type):
            yield f"{block.address}: its dynamic blocks are not in this document"


def _labelled(value: Any, path: Path, depth: int) -> Iterator[tuple[tuple[str, ...], dict[str, Any], Path]]:
    """(labels, body, path) of every block below; each level may be an object or a list of them."""
    if isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _labelled(item, (*path, number), depth)
        return
    if not isinstance(value, dict):
        return
    given = cast("dict[str, Any]", value)
    if depth == 0:
        yield (), {key: inner for key, inner in given.items() if key != "//"}, path
        return
    for key, inner in given.items():
        if key == "//":
            continue
        for labels, body, place in _labelled(inner, (*path, key), depth - 1):
            yield (key, *labels), body, place


# what Terraform shows


def _shown(document: Json, file: str, *, plan: bool) -> Document:
    """A plan (`planned_values`, with references from `configuration` for what is not known yet), or a state (`values`)."""
    root = _object(_object(document.get("configuration")).get("root_module"))
    changes = {
        str(change.get("address", "")): _object(change.get("change")).get("after_unknown")
        for change in map(_object, many(document.get("resource_changes")))
    }
    values = _object(document["planned_values" if plan else "values"])
    before = _object(_object(document.get("prior_state")).get("values")) if plan else {}
    found: dict[str, Block] = {}
    unread: list[str] = [f"{file}: this plan ended in an error, and is not whole"] if document.get("errored") else []
    scopes: dict[str, dict[str, tuple[Any, str]]] = {"": _given(document, root)}
    for tree, only_data in ((before, True), (values, False)):
        for module, address in _modules(_object(tree.get("root_module")), ""):
            scopes.setdefault(address, _arguments(root, address))
            calls = _written(_module(root, address))
            for held in map(_object, many(module.get("resources"))):
                if only_data and held.get("mode") != "data":
                    continue
                block = _filled(held, address, calls, changes)
                found[block.address] = block
                if _is_partly_known(block, changes.get(block.address)):
                    unread.append(f"{file} {block.address}: {_PARTLY}")
    configured = _object(_object(document.get("configuration")).get("provider_config"))
    providers = _main(
        (str(given.get("name", name)), {**_values(_object(given.get("expressions"))), **_alias(given)})
        for name, given in ((name, _object(value)) for name, value in configured.items())
    )
    return Document(
        file=file,
        label=file,
        blocks=tuple(found.values()),
        scopes=scopes,
        providers=providers,
        computed=_computed(),
        unread=unread,
    )


def _modules(module: Json, address: str) -> Iterator[tuple[Json, str]]:
    yield module, address
    for child in map(_object, many(module.get("child_modules"))):
        yield from _modules(child, str(child.get("address", "")))


def _given(document: Json, root: Json) -> dict[str, tuple[Any, str]]:
    """The root's variables."""
    out: dict[str, tuple[Any, str]] = {}
    for name, declared in _object(root.get("variables")).items():
        if _object(declared).get("default") is not None:
            out[f"var.{name}"] = (declared["default"], "")
    for name, value in _object(document.get("variables")).items():
        if _object(value).get("value") is not None:
            out[f"var.{name}"] = (value["value"], "")
    return out


def _arguments(root: Json, address: str) -> dict[str, tuple[Any, str]]:
    """What a module's call hands to its variables, as the caller wrote it."""
    if not address:
        return {}
    caller, _, call = address.rpartition("module.")
    caller = caller.rstrip(".")
    written = _object(_object(_module(root, caller).get("module_calls")).get(_INDEX.sub("", call)))
    return {f"var.{name}": (value, caller) for name, value in _values(_object(written.get("expressions"))).items()}


def _module(root: Json, address: str) -> Json:
    """The configuration of a module."""
    found: Json = root
    for call in re.findall(r"module\.([\w-]+)", _INDEX.sub("", address)):
        found = _object(_object(_object(found.get("module_calls")).get(call)).get("module"))
    return found


def _written(module: Json) -> dict[tuple[str, str, str], dict[str, Any]]:
    """(mode, type, name) -> expressions."""
    return {
        (str(held.get("mode")), str(held.get("type")), str(held.get("name"))): _object(held.get("expressions"))
        for held in map(_object, many(module.get("resources")))
    }


def _filled(
    held: Json, module: str, written: Mapping[tuple[str, str, str], dict[str, Any]], changes: Mapping[str, Any]
) -> Block:
    mode, kind, name = str(held.get("mode")), str(held.get("type")), str(held.get("name"))
    address = str(held.get("address") or f"{'data.' if mode == 'data' else ''}{kind}.{name}")
    values = _object(held.get("values"))
    unknown = changes.get(address)
    if unknown:
        values = _merged(values, _values(written.get((mode, kind, name), {})), unknown)
    return Block(
        type=kind, name=name, address=address, values=values, is_data=mode == "data", module=module, literal=True
    )


def _merged(known: Any, written: Any, unknown: Any) -> Any:
    """What is known, and references where it is not."""
    if unknown is True:
        return written
    if isinstance(unknown, dict):
        held, other = _object(known), _object(written)
        parts = cast("dict[str, Any]", unknown)
        return {
            name: _merged(held.get(name), other.get(name), parts.get(name, False)) for name in (held | parts | other)
        }
    if isinstance(unknown, list):
        held = many(known)
        other = many(written)
        parts = cast("list[Any]", unknown)
        aligned = len(other) == len(parts)
        return [
            _item(held[at] if at < len(held) else None, other[at] if aligned else written, part)
            for at, part in enumerate(parts)
        ]
    return known


def _item(known: Any, written: Any, unknown: Any) -> Any:
    """Of a list: never left out, since fewer resources, values or principals would say something else."""
    return _NOT_YET if unknown is True and written is None else _merged(known, written, unknown)


def _is_partly_known(block: Block, unknown: Any) -> bool:
    """Whether what a policy's data source grants is more than what can be read."""
    argument = _STATED.get(block.type, "")
    return _object(unknown).get(argument) is True or _holds_referred(block.values.get(argument))


def _holds_referred(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_referred, cast("dict[str, Any]", value).values()))
    return (
        any(map(_holds_referred, cast("list[Any]", value))) if isinstance(value, list) else isinstance(value, _Referred)
    )


def _values(written: Json) -> dict[str, Any]:
    """Expressions of a configuration as values: constants, and references as text."""
    return {name: _expressed(value) for name, value in written.items()}


def _expressed(value: Any) -> Any:
    if isinstance(value, list):
        return [_expressed(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    if "constant_value" in given:
        return _template(given["constant_value"])
    if isinstance(given.get("references"), list):
        references = cast("list[Any]", given["references"])
        return _Referred(f"${{{references[0]}}}") if references else None
    return _values(given)


def _template(constant: Any) -> Any:
    """Of `*.tf.json` Terraform shows the text as it is written, and calls it constant; it only counts where the value is not known."""
    if isinstance(constant, str):
        return Unknown(constant) if "${" in constant else constant
    if isinstance(constant, list):
        return [_template(item) for item in cast("list[Any]", constant)]
    if isinstance(constant, dict):
        return {name: _template(item) for name, item in cast("dict[str, Any]", constant).items()}
    return constant


def _state_file(document: Json, file: str) -> Document:
    """`terraform.tfstate` itself, version 4."""
    blocks: list[Block] = []
    for held in map(_object, many(document.get("resources"))):
        mode, kind, name, module = (str(held.get(key) or "") for key in ("mode", "type", "name", "module"))
        blocks += [
            Block(
                type=kind,
                name=name,
                address=stored_address(held, instance.get("index_key")),
                values=_object(instance.get("attributes")),
                is_data=mode == "data",
                module=module,
                literal=True,
            )
            for instance in map(_object, many(held.get("instances")))
        ]
    return Document(file=file, label=file, blocks=tuple(blocks), computed=_computed())
