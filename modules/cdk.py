"""The one seam to the CDK: `cdktf`, or its successor `cdktn`, whichever is installed (`SKYPLAN_CDK` chooses).

Importing this module starts the CDK's kernel (a Node process, 0.3 s); do it only where a stack is written.  No prebuilt provider bindings:
every resource is a `Resource` with a plain dictionary, checked against the provider's schema on construction.  Meta arguments (`for_each`,
`lifecycle`, `depends_on`) are plain values too, and references are plain `${type.name.attribute}` text.  Decides nothing about clouds.
"""

# pyright: basic
# ruff: noqa: A002 -- `id` and `type` are the CDK's and Terraform's own words

from __future__ import annotations

import importlib
import os
import tempfile
from typing import Any, cast

from modules import node
from modules.schema import Schema
from planner.model.diagnostic import Diagnostic
from planner.model.errors import MissingPart

NAMES = ("cdktf", "cdktn")


def _load() -> Any:
    """The CDK.  Raises MissingPart (SKY-APPLY-316) where there is none."""
    chosen = os.environ.get("SKYPLAN_CDK", "")
    wanted = (chosen,) if chosen in NAMES else NAMES
    node.prepare()
    for name in wanted:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError:
            continue
    raise MissingPart(
        [
            Diagnostic(
                code="SKY-APPLY-316",
                summary=f"writing stacks needs {' or '.join(wanted)}, which is not installed",
                hint="from your checkout of skyplan: pip install '.[cdk,node]'",
            )
        ]
    )


_cdk = _load()
jsii = importlib.import_module("jsii")
_constructs = importlib.import_module("constructs")


class App(_cdk.App):
    """Root of a synthesis.  Writes nothing itself: `stacks.app` asks each stack for its Terraform JSON."""

    def __init__(self) -> None:
        # the kernel makes `stacks/` in its folder at once, though nothing is ever written there: not in the user's working folder
        with tempfile.TemporaryDirectory(prefix="skyplan-cdk-") as unused:
            super().__init__(skip_validation=True, outdir=unused)


class Stack(_cdk.TerraformStack):
    """One Terraform configuration.  `schema` checks every resource in it."""

    def __init__(self, scope: App, name: str, *, schema: Schema) -> None:
        super().__init__(scope, name)
        self.stack_name = name
        self.schema = schema
        self.alias: str | None = None

    def document(self) -> dict[str, Any]:
        """Terraform JSON as the CDK makes it, its metadata included."""
        self.prepare_stack()
        return self.to_terraform()


class Construct(_constructs.Construct):
    """A group of resources; hands its scope's schema on, and by which provider they are made: `alias` is None for the stack's own."""

    def __init__(self, scope: Stack | Construct, id: str) -> None:
        super().__init__(scope, id)
        self.schema: Schema = scope.schema
        self.alias: str | None = scope.alias


class Beside(Construct):
    """What another provider makes, beside the stack's own: of another cloud, or in another account.  `alias`: `aws.data`."""

    def __init__(self, scope: Stack | Construct, id: str, *, schema: Schema, alias: str) -> None:
        super().__init__(scope, id)
        self.schema = schema
        self.alias = alias


class _Attributes:
    """What a resource and a data source share: an address, references, attributes as they are."""

    type: str
    name: str
    _prefix = ""

    def _set(self, name: str, type: str, attributes: dict[str, Any], meta: dict[str, Any]) -> None:
        self.type, self.name = type, name
        self._values = without_none(attributes)
        for argument, value in without_none(meta).items():
            # the CDK puts its own, empty, meta arguments over the attributes; overrides come after both
            cast("Any", self).add_override(argument, value)

    @property
    def address(self) -> str:
        """`aws_vpc.net`, `data.aws_partition.here`."""
        return f"{self._prefix}{self.type}.{self.name}"

    def ref(self, attribute: str = "id") -> str:
        """`${aws_vpc.net.id}`."""
        return f"${{{self.address}.{attribute}}}"


class Resource(_Attributes, _cdk.TerraformResource):
    """Any resource of any provider.  Its Terraform address is `TYPE.ID`, whatever construct it stands in.

    Raises modules.schema.SchemaMismatch if the provider's schema does not allow the attributes.
    """

    def __init__(
        self,
        scope: Stack | Construct,
        id: str,
        type: str,
        attributes: dict[str, Any],
        *,
        for_each: Any = None,
        lifecycle: dict[str, Any] | None = None,
        depends_on: tuple[_Attributes, ...] = (),
    ) -> None:
        scope.schema.check_resource(type, attributes, f"{type}.{id}")
        super().__init__(
            scope,  # pyright: ignore[reportCallIssue] -- the CDK stands further along in the bases
            f"{type}-{id}",  # siblings of different types may share a name in Terraform, not in the CDK
            terraform_resource_type=type,
            terraform_generator_metadata=_metadata(scope.schema.provider),
        )
        self.override_logical_id(id)
        after = [other.address for other in depends_on] or None
        meta = {"for_each": for_each, "lifecycle": lifecycle, "depends_on": after, "provider": scope.alias}
        self._set(id, type, attributes, meta)

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> dict[str, Any]:
        """Called by the CDK, which knows the override by its Python name too."""
        return self._values


class DataSource(_Attributes, _cdk.TerraformDataSource):
    """Any data source of any provider.  Raises modules.schema.SchemaMismatch."""

    _prefix = "data."

    def __init__(
        self, scope: Stack | Construct, id: str, type: str, attributes: dict[str, Any], *, for_each: Any = None
    ) -> None:
        scope.schema.check_data(type, attributes, f"data.{type}.{id}")
        super().__init__(
            scope,  # pyright: ignore[reportCallIssue] -- the CDK stands further along in the bases
            f"{type}-{id}",  # siblings of different types may share a name in Terraform, not in the CDK
            terraform_resource_type=type,
            terraform_generator_metadata=_metadata(scope.schema.provider),
        )
        self.override_logical_id(id)
        self._set(id, type, attributes, {"for_each": for_each, "provider": scope.alias})

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> dict[str, Any]:
        """Called by the CDK."""
        return self._values


class Provider(_cdk.TerraformProvider):
    """A configured provider, with its source and the version constraint that the stack asks for; `alias` where it is not the stack's own."""

    def __init__(
        self,
        scope: Stack,
        name: str,
        *,
        source: str,
        version: str,
        attributes: dict[str, Any],
        alias: str | None = None,
    ) -> None:
        super().__init__(
            scope,
            f"{name}-{alias}" if alias else name,
            terraform_resource_type=name,
            terraform_provider_source=source,
            terraform_generator_metadata=_cdk.TerraformProviderGeneratorMetadata(
                provider_name=name, provider_version_constraint=version
            ),
        )
        self._values = without_none({**attributes, "alias": alias})

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> dict[str, Any]:
        """Called by the CDK."""
        return self._values


class Backend(_cdk.TerraformBackend):
    """Where state lies: the kind, and as whom it is kept.  Paths, buckets and keys come from the runner (`-backend-config`)."""

    def __init__(self, scope: Stack, kind: str, attributes: dict[str, Any] | None = None) -> None:
        super().__init__(scope, "backend", kind)
        self._attributes = attributes or {}

    @jsii.member(jsii_name="synthesizeAttributes")
    def _synthesize_attributes(self) -> dict[str, Any]:
        """Called by the CDK."""
        return self._attributes

    def get_remote_state_data_source(self, scope: Any, name: str, from_stack: str) -> Any:
        """Unused: what one stack learns from another comes in as variables.  Raises NotImplementedError."""
        raise NotImplementedError


def variable(scope: Stack, name: str, type: str, description: str, *, default: Any = None) -> str:
    """Declare an input variable of the stack, with a default unless it must be given; gives the reference to it, `${var.NAME}`."""
    declared = _cdk.TerraformVariable(scope, f"var-{name}", type=type, description=description, default=default)
    declared.override_logical_id(name)
    return f"${{var.{name}}}"


def output(scope: Stack, name: str, value: Any, description: str) -> None:
    """Declare an output of the stack."""
    declared = _cdk.TerraformOutput(scope, f"out-{name}", value=value, description=description)
    declared.override_logical_id(name)


def without_none(value: Any) -> Any:
    """The value without keys that hold None, at any depth."""
    if isinstance(value, dict):
        return {key: without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [without_none(inner) for inner in value]
    return value


def _metadata(provider: str) -> Any:
    return _cdk.TerraformProviderGeneratorMetadata(provider_name=provider)
