"""A stack's Terraform JSON as native HCL, for teams that commit what they run and review it: same meaning, no Node, no CDK, no skyplan to run it.

Takes the document of `stacks.app` and nothing else.  Whether a name is a block or an attribute, the provider's schema says (`modules.schema`); where Terraform
reads a text as a reference or as it stands, the tables here say.  Decides where in a stack's folder each thing is written, never what is in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from modules import schema
from stacks.hcl_text import Line, Raw, attributes, expression, literal

HEADER = "# Written by `skyplan synth --format hcl`: change the job or the plan and write it anew, not this file.\n"
Body = dict[str, Any]

#: file -> what of a stack stands in it
FILES: dict[str, tuple[str, ...]] = {
    "versions.tf": ("terraform",),
    "providers.tf": ("provider",),
    "variables.tf": ("variable",),
    "main.tf": ("data", "resource"),
    "outputs.tf": ("output",),
}
#: provider -> blocks of its own settings; all else is an attribute
_PROVIDER_BLOCKS = {"aws": ("assume_role",), "azurerm": ("features",)}
_FIRST = ("provider", "for_each")
_LAST = ("lifecycle", "depends_on")


def files(document: Mapping[str, Any]) -> dict[str, str]:
    """File name -> text, of one stack; a file without content is left out.  Raises ValueError for what no stack of ours has."""
    made = _Writer(document)
    if unknown := set(document) - {"//", *made.parts}:
        raise ValueError(f"no HCL is known for {', '.join(sorted(unknown))}")
    out: dict[str, str] = {}
    for name, parts in FILES.items():
        blocks = [block for part in parts if part in document for block in made.parts[part]()]
        if blocks:
            out[name] = HEADER + "".join(f"\n{block}\n" for block in blocks)
    return out


def block(head: str, lines: Iterable[str]) -> str:
    """`HEAD { … }`."""
    inner = [f"  {line}" if line else "" for line in lines]
    return "\n".join([f"{head} {{", *inner, "}"]) if inner else f"{head} {{}}"


class _Writer:
    """The parts of one document."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._schemas = {name: schema.load(name) for name in document["terraform"]["required_providers"]}
        self.parts = {
            "terraform": self._terraform,
            "provider": self._providers,
            "variable": self._variables,
            "data": lambda: self._made("data"),
            "resource": lambda: self._made("resource"),
            "output": self._outputs,
        }

    def _terraform(self) -> list[str]:
        body: Body = self._document["terraform"]
        inner = block(
            "required_providers",
            attributes(Line(n, expression(_requirement(v))) for n, v in sorted(body["required_providers"].items())),
        ).split("\n")
        for kind, settings in sorted(body.get("backend", {}).items()):
            inner += ["", *block(f'backend "{kind}"', _plain(literal(settings))).split("\n")]
        return [block("terraform", inner)]

    def _providers(self) -> list[str]:
        out: list[str] = []
        for name, given in sorted(self._document["provider"].items()):
            for settings in _listed(given):
                nested = {inner: settings[inner] for inner in _PROVIDER_BLOCKS.get(name, ()) if inner in settings}
                lines = _plain({k: v for k, v in settings.items() if k not in nested})
                for inner, value in sorted(nested.items()):
                    lines += [line for one in _listed(value) for line in ("", *block(inner, _plain(one)).split("\n"))]
                out.append(block(f'provider "{name}"', lines[1:] if lines[:1] == [""] else lines))
        return out

    def _variables(self) -> list[str]:
        return [
            block(
                f'variable "{name}"',
                _plain({k: Raw(v) if k == "type" else literal(v) for k, v in declared.items()}),
            )
            for name, declared in sorted(self._document["variable"].items())
        ]

    def _outputs(self) -> list[str]:
        return [
            block(
                f'output "{name}"',
                _plain({k: literal(v) if k == "description" else v for k, v in declared.items()}),
            )
            for name, declared in sorted(self._document["output"].items())
        ]

    def _made(self, word: str) -> list[str]:
        """Resources or data sources."""
        out: list[str] = []
        for kind, named in sorted(self._document[word].items()):
            provider = self._schemas[kind.partition("_")[0]]
            shape = provider.shape(kind, data=word == "data")
            nested = provider.provider in schema.NESTED_ATTRIBUTES
            for name, given in sorted(named.items()):
                out.append(block(f'{word} "{kind}" "{name}"', _body(_referring(given), shape, nested=nested, top=True)))
        return out


def _requirement(value: Body) -> Body:
    return {k: [Raw(alias) for alias in v] if k == "configuration_aliases" else literal(v) for k, v in value.items()}


def _plain(values: Body) -> list[str]:
    return attributes(Line(name, expression(value)) for name, value in sorted(values.items()))


def _referring(given: Body) -> Body:
    """Meta arguments whose texts are references."""
    made = dict(given)
    for name in ("depends_on", "provider"):
        if name in made:
            made[name] = _raw(made[name])
    if "lifecycle" in made:
        rules: Body = made["lifecycle"]
        made["lifecycle"] = {
            k: _raw(v) if k in {"ignore_changes", "replace_triggered_by"} else v for k, v in rules.items()
        }
    return made


def _raw(value: Any) -> Any:
    return Raw(value) if isinstance(value, str) else [Raw(one) for one in value]


def _body(given: Body, shape: Body, *, nested: bool, top: bool = False) -> list[str]:
    """Lines of a body: meta arguments, attributes, blocks, and last what orders and keeps."""
    first = [name for name in _FIRST if top and name in given]
    last = [name for name in _LAST if top and name in given]
    blocks: dict[str, Body] = {} if nested else shape["blocks"]
    plain = [name for name in sorted(given) if name not in blocks and name not in {*first, *last}]
    out = attributes(Line(name, expression(given[name])) for name in first)
    groups = [attributes(Line(name, expression(given[name])) for name in plain)]
    for name in sorted(set(given) & set(blocks)):
        groups += [block(name, _body(one, blocks[name], nested=nested)).split("\n") for one in _listed(given[name])]
    for name in last:
        if name == "lifecycle":
            groups.append(block(name, _plain(given[name])).split("\n"))
        else:
            groups.append(attributes([Line(name, expression(given[name]))]))
    for group in groups:
        if group:
            out += ["", *group] if out else group
    return out


def _listed(value: Any) -> list[Body]:
    return cast("list[Body]", value if isinstance(value, list) else [value])
