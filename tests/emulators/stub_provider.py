# ruff: noqa: N802 - the protocol's calls have the protocol's names
"""A Terraform provider that knows a cloud's schema and does nothing else.

    python stub_provider.py serve SCHEMA.json[.gz]      what the executables of a mirror run

It serves a schema file of `modules/schemas` over the plugin protocol, so that the real Terraform validates, plans, applies,
re-plans, imports and destroys stacks of clouds that are not here.  It proves resources, arguments, types, references and order;
it does not prove what the cloud's API or the provider's own checks would say.

`STUB_LOG`   a file that is the cloud: one JSON line per create, update, delete and failure.  A resource deleted in it (a test may
             append {"verb": "delete", "type": T, "id": ID}) is gone at the next refresh; one alive in it can be imported by id.
`STUB_FAIL`  creates that fail: `TYPE[ATTRIBUTE=GLOB,…]#TIMES:MESSAGE`, several with `|`.  TYPE is a glob, ATTRIBUTE a dotted
             path, the parts in brackets and #TIMES may be left out; #TIMES is counted in STUB_LOG.
`STUB_HOLD`  `TYPE:FOLDER`: a matching create is done and logged, then FOLDER/ID.held appears, and the reply waits for FOLDER/go.
`STUB_UNIQUE`  type globs, several with `|`: names of theirs are unique, as in most clouds; a second create of one that is alive (in the same
             zone, group or parent) is refused as the clouds do it.
"""

import fcntl
import fnmatch
import gzip
import hashlib
import json
import os
import re
import sys
import threading
import time
import uuid
from pathlib import Path
from typing import Any

# optional arguments that the clouds fill in when they are left out, and that stacks refer to
FILLED = {
    "id",
    "network_ip",
    "address",
    "private_ip_address",
    "ip_address",
    "email",
    "object_id",
    "unique_writer_identity",
    "private_ip",
    "availability_zone",
    "availability_zone_id",
    "tags_all",
    "public_ip",
}
ADDRESSES = {
    "network_ip",
    "address",
    "private_ip_address",
    "ip_address",
    "public_ip_address",
    "private_ip",
    "public_ip",
}
PROVIDER_ARGUMENTS = [
    "project",
    "region",
    "zone",
    "credentials",
    "access_token",
    "impersonate_service_account",
    "user_project_override",
    "billing_project",
    "subscription_id",
    "tenant_id",
    "client_id",
    "client_secret",
    "use_oidc",
    "use_cli",
    "use_msi",
    "environment",
    "storage_use_azuread",
    "resource_provider_registrations",
    "token",
    "endpoint",
    "parent_id",
    "domain",
    "service_account",
    "profile",
    "impersonate_service_account_id",
    "retries",
    "timeout",
    "access_key",
    "secret_key",
    "max_retries",
    "skip_credentials_validation",
    "skip_metadata_api_check",
    "skip_region_validation",
    "skip_requesting_account_id",
    "s3_use_path_style",
    "allowed_account_ids",
    "forbidden_account_ids",
    "retry_mode",
    "default_labels",
    "add_terraform_attribution_label",
]
PROVIDER_BLOCKS: dict[str, dict[str, dict[str, str]]] = {
    "aws": {
        "default_tags": {"tags": "map(string)"},
        "ignore_tags": {"keys": "list(string)", "key_prefixes": "list(string)"},
        "assume_role": {
            "role_arn": "string",
            "session_name": "string",
            "external_id": "string",
            "duration": "string",
            "policy": "string",
        },
        "assume_role_with_web_identity": {
            "role_arn": "string",
            "session_name": "string",
            "web_identity_token": "string",
            "web_identity_token_file": "string",
            "duration": "string",
        },
        "endpoints": dict.fromkeys(("ec2", "iam", "s3", "sts", "ssm", "kms"), "string"),
    },
    "azurerm": {"features": {}},
}
NESTED_ATTRIBUTES = {"nebius"}  # plugin-framework providers: objects are attributes, not blocks
FAILURE = re.compile(r"(?P<type>[^\[#:]+)(\[(?P<where>[^\]]*)\])?(#(?P<times>\d+))?:(?P<message>.*)", re.DOTALL)

Body = dict[str, Any]


def load(path: str | Path) -> Body:
    """A schema file: {provider, version, resources: {TYPE: {attributes, blocks, computed}}, data}."""
    raw = Path(path).read_bytes()
    return json.loads(gzip.decompress(raw) if str(path).endswith(".gz") else raw)


# ---- the cloud, as far as there is one


def _log(verb: str, kind: str, state: Any, **more: Any) -> None:
    path = os.environ.get("STUB_LOG")
    if not path:
        return
    identity = state.get("id") if isinstance(state, dict) else None
    line = json.dumps(
        {"verb": verb, "type": kind, "id": identity, "state": state, "at": time.time(), **more}, default=str
    )
    with Path(path).open("a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.write(line + "\n")


def _logged() -> list[Body]:
    path = os.environ.get("STUB_LOG")
    if not path or not Path(path).exists():
        return []
    with Path(path).open(encoding="utf-8") as file:
        # another call may be at work on a line: half of one was an error once in some hundred applies
        fcntl.flock(file, fcntl.LOCK_SH)
        return [json.loads(line) for line in file.read().splitlines() if line.strip()]


def alive(log: list[Body]) -> dict[tuple[str, str], Body]:
    """What exists, by (type, id), as the lines of a STUB_LOG tell."""
    found: dict[tuple[str, str], Body] = {}
    for line in log:
        key = (line["type"], line.get("id") or "")
        if line["verb"] in ("create", "update"):
            found[key] = line["state"]
        elif line["verb"] == "delete":
            found.pop(key, None)
    return found


def _gone(kind: str, identity: Any) -> bool:
    verbs = [line["verb"] for line in _logged() if (line["type"], line.get("id")) == (kind, identity)]
    return bool(verbs) and verbs[-1] == "delete"


def failure_of(rules: str, kind: str, planned: Body, log: list[Body]) -> tuple[str, str] | None:
    """The first rule of STUB_FAIL that strikes a create, as (rule, message)."""
    for text in filter(None, rules.split("|")):
        rule = FAILURE.fullmatch(text)
        if rule is None:
            return text, f"STUB_FAIL cannot be read: {text}"
        if not fnmatch.fnmatchcase(kind, rule["type"]):
            continue
        wanted = [one.partition("=") for one in (rule["where"] or "").split(",") if one]
        if not all(any(fnmatch.fnmatchcase(v, glob) for v in _at(planned, path)) for path, _, glob in wanted):
            continue
        if rule["times"] and sum(line.get("rule") == text for line in log) >= int(rule["times"]):
            continue
        return text, rule["message"]
    return None


def taken(globs: str, kind: str, planned: Body, log: list[Body]) -> str | None:
    """The words of a refusal where a name is in use already; None where it is free."""
    if not planned.get("name") or not any(fnmatch.fnmatchcase(kind, glob) for glob in filter(None, globs.split("|"))):
        return None
    scope = ("name", "zone", "resource_group_name", "parent_id")
    same = [
        identity
        for (type_, identity), state in alive(log).items()
        if type_ == kind and all(state.get(key) == planned.get(key) for key in scope)
    ]
    if not same:
        return None
    if kind.startswith("azurerm_"):
        return f'A resource with the ID "{same[0]}" already exists - to be managed via Terraform this resource needs to be imported into the State.'
    if kind.startswith("google_"):
        return f"Error creating: googleapi: Error 409: The resource '{same[0]}' already exists, alreadyExists"
    return f"rpc error: code = AlreadyExists desc = {planned['name']} is taken"


def _at(value: Any, path: str) -> list[str]:
    """Every value at a dotted path, lists flattened."""
    values = [value]
    for name in path.split("."):
        flat = [x for v in values for x in (v if isinstance(v, list) else [v])]
        values = [v[name] for v in flat if isinstance(v, dict) and v.get(name) is not None]
    return [str(x) for v in values for x in (v if isinstance(v, list) else [v])]


def _hold(kind: str, identity: str) -> None:
    pattern, _, folder = os.environ.get("STUB_HOLD", "").partition(":")
    if not folder or not fnmatch.fnmatchcase(kind, pattern):
        return
    (Path(folder) / f"{identity}.held").touch()
    while not (Path(folder) / "go").exists():
        time.sleep(0.02)


# ---- values: what a provider would compute


def _fillable(name: str, argument: Body) -> bool:
    return not argument["required"] and (argument.get("computed", False) or name in FILLED)


def _computed_of(body: Body) -> Body:
    return {n: a["type"] for n, a in body["attributes"].items() if _fillable(n, a)} | body.get("computed", {})


def _made_up(kind: Any, path: str, seed: str, where: str) -> Any:
    """A value of the kind, fixed by `seed`; ids carry the location, so that a rule can match what refers to them."""
    if isinstance(kind, dict):
        one = {n: _made_up(t, f"{path}/{n}", seed, where) for n, t in kind["computed"].items()}
        return {"list": [one], "single": one, "map": {}}[kind["nesting"]]
    name = path.rsplit("/", 1)[-1]
    digest = hashlib.sha256(f"{path}/{seed}".encode()).hexdigest()
    octets = (str(int(digest[i : i + 2], 16)) for i in (0, 2, 4))
    plain = {
        "number": 1 if name.endswith("version") else int(digest[:6], 16),
        "bool": False,
        "any": None,
        "list": [],
        "map": {},
        "string": ".".join(["10", *octets])
        if name in ADDRESSES
        else "-".join(filter(None, ["stub", name, where, digest[:12]])),
    }
    return plain[kind.partition("(")[0]]


# ---- the wire


def serve(schema: str) -> None:
    import tf.provider
    import tf.runner
    from tf.gen import tfplugin_pb2 as pb
    from tf.types import Unknown
    from tf.utils import read_dynamic_value, to_dynamic_value

    document = load(schema)
    cloud: str = document["provider"]
    as_attributes = cloud in NESTED_ATTRIBUTES
    block_nesting = {"list": pb.Schema.Object.LIST, "single": pb.Schema.Object.SINGLE, "map": pb.Schema.Object.MAP}

    def wire_type(kind: str, nested: bool) -> bytes:
        if kind == "any":  # a dynamic value inside a block would make the whole block dynamic
            return b'"string"' if nested else b'"dynamic"'
        outer, _, inner = kind.rstrip(")").partition("(")
        return json.dumps([outer, "string" if inner == "any" else inner] if inner else outer).encode()

    def attribute(
        name: str, kind: str, nested: bool, *, required: bool, computed: bool, read_only: bool = False
    ) -> Any:
        return pb.Schema.Attribute(
            name=name,
            type=wire_type(kind, nested),
            required=required,
            optional=not required and not read_only,
            computed=computed or read_only,
        )

    def read_only(name: str, kind: Any, nested: bool) -> Any:
        if isinstance(kind, str):
            return attribute(name, kind, nested, required=False, computed=True, read_only=True)
        inner = [read_only(n, t, True) for n, t in kind["computed"].items()]
        shape = pb.Schema.Object(attributes=inner, nesting=block_nesting[kind["nesting"]])
        return pb.Schema.Attribute(name=name, nested_type=shape, computed=True)

    def block(body: Body, nested: bool = False) -> Any:
        arguments = body["attributes"]
        out = pb.Schema.Block(
            attributes=[
                attribute(n, a["type"], nested, required=a["required"], computed=_fillable(n, a))
                for n, a in arguments.items()
            ]
            + [read_only(n, t, nested) for n, t in body.get("computed", {}).items() if n not in arguments]
        )
        for name, inside in body["blocks"].items():
            if as_attributes:
                shape = pb.Schema.Object(
                    attributes=block(inside, True).attributes, nesting=block_nesting[inside["nesting"]]
                )
                needed = inside["required"]
                out.attributes.append(
                    pb.Schema.Attribute(name=name, nested_type=shape, required=needed, optional=not needed)
                )
            elif name == "timeouts":
                out.block_types.append(
                    pb.Schema.NestedBlock(
                        type_name=name, block=block(inside, True), nesting=pb.Schema.NestedBlock.SINGLE
                    )
                )
            else:
                out.block_types.append(
                    pb.Schema.NestedBlock(
                        type_name=name,
                        block=block(inside, True),
                        nesting=pb.Schema.NestedBlock.LIST,
                        min_items=1 if inside["required"] else 0,
                        max_items=1 if inside["nesting"] == "single" else 0,
                    )
                )
        return out

    def provider_block() -> Any:
        free = {name: {"type": "any", "required": False} for name in PROVIDER_ARGUMENTS}
        blocks = {
            name: {
                "nesting": "list",
                "required": False,
                "attributes": {k: {"type": t, "required": False} for k, t in arguments.items()},
                "blocks": {},
            }
            for name, arguments in PROVIDER_BLOCKS.get(cloud, {}).items()
        }
        return pb.Schema(version=0, block=block({"attributes": free, "blocks": blocks}))

    def fill(body: Body, value: Any, path: str, seed: str, where: str, *, plan: bool) -> Any:
        """What the provider computes: unknown in a plan, made up in an apply."""
        if not isinstance(value, dict):
            return value
        out = dict(value)
        for name, kind in _computed_of(body).items():
            if plan and out.get(name) is None:
                out[name] = Unknown
            elif not plan and out.get(name) is Unknown:
                out[name] = _made_up(kind, f"{path}/{name}", seed, where)
        for name, inside in body["blocks"].items():
            now = out.get(name)
            if isinstance(now, list):
                out[name] = [
                    fill(inside, x, f"{path}/{name}", f"{seed}/{i}", where, plan=plan) for i, x in enumerate(now)
                ]
            elif isinstance(now, dict) and inside["nesting"] == "single":
                out[name] = fill(inside, now, f"{path}/{name}", seed, where, plan=plan)
        return out

    def carry(body: Body, prior: Any, proposed: Body) -> Body:
        """An update keeps what was computed before."""
        out = dict(proposed)
        for name in _computed_of(body):
            if out.get(name) is None and isinstance(prior, dict):
                out[name] = prior.get(name)
        return out

    def from_json(body: Body, state: Any) -> Any:
        """A stored state's JSON form of dynamic values, {"type", "value"}, back to the wire's."""
        if not isinstance(state, dict):
            return state
        out = dict(state)
        kinds = {n: a["type"] for n, a in body["attributes"].items()} | body.get("computed", {})
        for name, kind in kinds.items():
            now = out.get(name)
            if kind == "any" and isinstance(now, dict) and set(now) == {"type", "value"}:
                out[name] = None if now["value"] is None else [json.dumps(now["type"]).encode(), now["value"]]
        for name, inside in body["blocks"].items():
            now = out.get(name)
            if isinstance(now, list):
                out[name] = [from_json(inside, x) for x in now]
            elif isinstance(now, dict) and inside["nesting"] == "single":
                out[name] = from_json(inside, now)
        return out

    def errors(summary: str, detail: str = "") -> list[Any]:
        return [pb.Diagnostic(severity=pb.Diagnostic.ERROR, summary=summary, detail=detail or summary)]

    def created(kind: str, planned: Body) -> Body:
        where = next((str(planned[k]) for k in ("availability_zone_id", "zone") if isinstance(planned.get(k), str)), "")
        return fill(document["resources"][kind], planned, kind, uuid.uuid4().hex, where, plan=False)

    capabilities = pb.ServerCapabilities(plan_destroy=False, get_provider_schema_optional=True)

    class Servicer(tf.provider.ProviderServicer):
        """The protocol's calls."""

        def GetMetadata(self, request: Any, context: Any) -> Any:
            return pb.GetMetadata.Response(
                server_capabilities=capabilities,
                resources=[pb.GetMetadata.ResourceMetadata(type_name=n) for n in document["resources"]],
                data_sources=[pb.GetMetadata.DataSourceMetadata(type_name=n) for n in document["data"]],
            )

        def GetProviderSchema(self, request: Any, context: Any) -> Any:
            return pb.GetProviderSchema.Response(
                provider=provider_block(),
                resource_schemas={n: pb.Schema(version=0, block=block(b)) for n, b in document["resources"].items()},
                data_source_schemas={n: pb.Schema(version=0, block=block(b)) for n, b in document["data"].items()},
                server_capabilities=capabilities,
            )

        def ValidateProviderConfig(self, request: Any, context: Any) -> Any:
            return pb.ValidateProviderConfig.Response()

        def ValidateResourceConfig(self, request: Any, context: Any) -> Any:
            return pb.ValidateResourceConfig.Response()

        def ValidateDataResourceConfig(self, request: Any, context: Any) -> Any:
            return pb.ValidateDataResourceConfig.Response()

        def ConfigureProvider(self, request: Any, context: Any) -> Any:
            return pb.ConfigureProvider.Response()

        def StopProvider(self, request: Any, context: Any) -> Any:
            return pb.StopProvider.Response()

        def UpgradeResourceState(self, request: Any, context: Any) -> Any:
            state = from_json(document["resources"][request.type_name], json.loads(request.raw_state.json))
            return pb.UpgradeResourceState.Response(upgraded_state=to_dynamic_value(state))

        def ReadResource(self, request: Any, context: Any) -> Any:
            state = read_dynamic_value(request.current_state)
            if isinstance(state, dict) and _gone(request.type_name, state.get("id")):
                return pb.ReadResource.Response(new_state=pb.DynamicValue(msgpack=b"\xc0"))
            return pb.ReadResource.Response(new_state=request.current_state)

        def PlanResourceChange(self, request: Any, context: Any) -> Any:
            body = document["resources"][request.type_name]
            prior, proposed = read_dynamic_value(request.prior_state), read_dynamic_value(request.proposed_new_state)
            if proposed is None:
                return pb.PlanResourceChange.Response(planned_state=request.proposed_new_state)
            if prior is not None:
                return pb.PlanResourceChange.Response(planned_state=to_dynamic_value(carry(body, prior, proposed)))
            planned = fill(body, proposed, request.type_name, "", "", plan=True)
            return pb.PlanResourceChange.Response(planned_state=to_dynamic_value(planned))

        def ApplyResourceChange(self, request: Any, context: Any) -> Any:
            kind = request.type_name
            prior, planned = read_dynamic_value(request.prior_state), read_dynamic_value(request.planned_state)
            if planned is None:
                _log("delete", kind, prior)
                return pb.ApplyResourceChange.Response(new_state=request.planned_state)
            if prior is not None:
                state = fill(document["resources"][kind], planned, kind, uuid.uuid4().hex, "", plan=False)
                _log("update", kind, state)
                return pb.ApplyResourceChange.Response(new_state=to_dynamic_value(state))
            if struck := failure_of(os.environ.get("STUB_FAIL", ""), kind, planned, _logged()):
                _log("fail", kind, planned, rule=struck[0])
                return pb.ApplyResourceChange.Response(new_state=request.prior_state, diagnostics=errors(struck[1]))
            if words := taken(os.environ.get("STUB_UNIQUE", ""), kind, planned, _logged()):
                _log("fail", kind, planned, rule="STUB_UNIQUE")
                return pb.ApplyResourceChange.Response(new_state=request.prior_state, diagnostics=errors(words))
            state = created(kind, planned)
            _log("create", kind, state)
            _hold(kind, str(state.get("id")))
            return pb.ApplyResourceChange.Response(new_state=to_dynamic_value(state))

        def ReadDataSource(self, request: Any, context: Any) -> Any:
            body, config = document["data"][request.type_name], read_dynamic_value(request.config)
            seed = json.dumps(config, sort_keys=True, default=str)
            asked = fill(body, config, request.type_name, "", "", plan=True)
            state = fill(body, asked, request.type_name, seed, "", plan=False)
            return pb.ReadDataSource.Response(state=to_dynamic_value(state))

        def ImportResourceState(self, request: Any, context: Any) -> Any:
            state = alive(_logged()).get((request.type_name, request.id))
            if state is None:
                return pb.ImportResourceState.Response(
                    diagnostics=errors("Cannot import non-existent remote object", f"{request.type_name} {request.id}")
                )
            imported = pb.ImportResourceState.ImportedResource(
                type_name=request.type_name, state=to_dynamic_value(state)
            )
            return pb.ImportResourceState.Response(imported_resources=[imported])

    class App:
        def full_name(self) -> str:
            return f"registry.terraform.io/hashicorp/{cloud}"

    def end_with_terraform() -> None:
        parent = os.getppid()
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=end_with_terraform, daemon=True).start()
    tf.provider.ProviderServicer = Servicer
    tf.runner.run_provider(App(), sys.argv[:1])


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] != "serve":
        sys.exit(__doc__)
    serve(sys.argv[2])
