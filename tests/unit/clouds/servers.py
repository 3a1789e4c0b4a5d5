"""The parts of three clouds' APIs that listers use, on loopback: Compute Engine and Resource Manager over HTTP, Nebius over gRPC.

Written from the documented APIs.  Endings take two looks, pages hold two machines, and `refusing` makes every answer an error.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import grpc

PAGE = 2
AT = datetime(2026, 1, 1, tzinfo=UTC)


def stamp(count):
    return (AT + timedelta(minutes=count)).isoformat()


class Api:
    """What both HTTP APIs share.  `answer` gives (status, body, headers)."""

    def __init__(self):
        self.machines = {}
        self.running = {}
        self.asked = []
        self.tokens = set()
        self.refusing = None
        self.kept = set()
        self.base = ""
        self.count = itertools.count()

    def page(self, found, token):
        start = int(token or 0)
        return found[start : start + PAGE], str(start + PAGE) if start + PAGE < len(found) else None


class ComputeApi(Api):
    project = "acme-ml"
    unreachable = ()

    def launch(self, *, labels, zone="us-central1-a", status="RUNNING", spot=True):
        count = next(self.count)
        name = f"skyplan-{count}"
        scheduling = {"provisioningModel": "SPOT", "preemptible": True} if spot else {"provisioningModel": "STANDARD"}
        self.machines[name] = {
            "name": name,
            "status": status,
            "zone": f"https://www.googleapis.com/compute/v1/projects/{self.project}/zones/{zone}",
            "machineType": f"https://www.googleapis.com/compute/v1/projects/1/zones/{zone}/machineTypes/a3-highgpu-8g",
            "scheduling": scheduling,
            "creationTimestamp": stamp(count),
            "networkInterfaces": [{"networkIP": f"10.0.0.{count}"}],
            "labels": labels,
        }
        return f"projects/{self.project}/zones/{zone}/instances/{name}"

    def answer(self, method, path, query):
        if self.refusing:
            return self.refusing
        root = f"/compute/v1/projects/{self.project}"
        if (method, path) == ("GET", f"{root}/aggregated/instances"):
            return 200, self.listed(query), {}
        if method == "DELETE" and (found := re.fullmatch(root + r"/zones/[\w-]+/instances/([\w-]+)", path)):
            return self.delete(found[1])
        if method == "POST" and (found := re.fullmatch(root + r"/zones/[\w-]+/operations/([\w-]+)/wait", path)):
            return 200, self.wait(found[1]), {}
        return 404, self.error(404, "notFound", path), {}

    @staticmethod
    def error(status, reason, message):
        return {"error": {"code": status, "message": message, "errors": [{"reason": reason, "message": message}]}}

    def listed(self, query):
        wanted = dict(re.findall(r'\(labels\.([\w-]+) = "([^"]*)"\)', query["filter"]))
        assert wanted, query
        assert query["returnPartialSuccess"] == "true" or not self.unreachable
        held = [m for m in self.machines.values() if wanted.items() <= m["labels"].items()]
        now, token = self.page(held, query.get("pageToken"))
        items = {"zones/europe-west4-a": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}
        for machine in now:
            scope = "zones/" + machine["zone"].rpartition("/")[2]
            items.setdefault(scope, {"instances": []})["instances"].append(machine)
        for zone in self.unreachable:
            items[f"zones/{zone}"] = {"warning": {"code": "UNREACHABLE"}}
        return {"items": items, **({"nextPageToken": token} if token else {})}

    def delete(self, name):
        if name not in self.machines:
            return 404, self.error(404, "notFound", f"The resource '{name}' was not found"), {}
        if name in self.kept:
            return 400, self.error(400, "invalidUsage", "Deletion protection is enabled"), {}
        operation = f"operation-{next(self.count)}"
        self.running[operation] = [name, 2]
        return 200, {"name": operation, "status": "RUNNING"}, {}

    def wait(self, operation):
        left = self.running[operation]
        left[1] -= 1
        if left[1]:
            return {"name": operation, "status": "RUNNING"}
        self.machines.pop(left[0], None)
        return {"name": operation, "status": "DONE", "progress": 100}


class ArmApi(Api):
    subscription = "11111111-2222-3333-4444-555555555555"
    group = "skyplan-acme-prod"
    by_location = False

    def __init__(self):
        super().__init__()
        self.power = {}
        self.disks = set()
        self.cards = {}
        self.gone_while_looking = set()

    def path(self, name, kind="Microsoft.Compute/virtualMachines"):
        return f"/subscriptions/{self.subscription}/resourceGroups/{self.group}/providers/{kind}/{name}"

    def launch(self, *, tags, power="running", spot=True, location="eastus", provisioning="Succeeded"):
        count = next(self.count)
        name = f"skyplan-{count}"
        loud = self.path(name).replace(self.group, self.group.upper())  # as lists of Azure's really are at times
        disk = self.path(f"{name}-os", "Microsoft.Compute/disks")
        self.machines[name] = {
            "id": loud,
            "name": name,
            "location": location,
            "zones": ["2"],
            "tags": tags,
            "properties": {
                "hardwareProfile": {"vmSize": "Standard_ND96isr_H100_v5"},
                "provisioningState": provisioning,
                "timeCreated": stamp(count),
                "storageProfile": {"osDisk": {"managedDisk": {"id": disk}}},
                "networkProfile": {
                    "networkInterfaces": [{"id": self.path(name, "Microsoft.Network/networkInterfaces").upper()}]
                },
                **({"priority": "Spot", "evictionPolicy": "Delete"} if spot else {}),
            },
        }
        self.power[name] = power
        self.disks.add(disk)
        return self.path(name)

    def answer(self, method, path, query):
        if self.refusing:
            return self.refusing
        if found := re.fullmatch(r"/operations/(\d+)", path):
            return self.poll(found[1])
        if "api-version" not in query:
            return 400, {"error": {"code": "MissingApiVersionParameter", "message": "api-version"}}, {}
        if method == "GET" and path.endswith("/virtualMachines"):
            return 200, self.listed(list(self.machines.values()), query, path), {}
        if method == "GET" and path.endswith("/networkInterfaces"):
            joined = [{**self.card(name), "tags": self.machines[name]["tags"]} for name in self.machines]
            return 200, self.listed([*joined, *self.cards.values()], query, path), {}
        return self.one(method, path.removesuffix("/instanceView"), view=path.endswith("/instanceView"))

    def listed(self, found, query, path):
        now, token = self.page(found, query.get("skip"))
        link = f"{self.base}{path}?api-version={query['api-version']}&skip={token}"
        return {"value": now, **({"nextLink": link} if token else {})}

    def card(self, name):
        address = f"10.0.0.{name.rpartition('-')[2]}"
        configuration = {"properties": {"privateIPAddress": address}}
        return {
            "id": self.path(name, "Microsoft.Network/networkInterfaces"),
            "properties": {"ipConfigurations": [configuration]},
        }

    def lay(self, *, tags, location="eastus", **properties):
        """An interface without a machine."""
        name = f"skyplan-{next(self.count)}"
        card = self.card(name)
        self.cards[name] = {
            **card,
            "name": name,
            "id": card["id"].replace(self.group, self.group.upper()),
            "location": location,
            "tags": tags,
            "properties": {**card["properties"], **properties},
        }
        return self.path(name, "Microsoft.Network/networkInterfaces")

    def taken_away(self, path):
        """Whether it was a disk or an interface that is there."""
        if path in self.disks:
            self.disks.discard(path)
            return True
        return "/networkInterfaces/" in path and self.cards.pop(path.rpartition("/")[2], None) is not None

    def one(self, method, path, *, view):
        name = path.rpartition("/")[2]
        if method == "DELETE" and self.taken_away(path):
            return 202, {}, {"Location": f"{self.base}/operations/{self.begun('')}"}
        if name not in self.machines or name in self.gone_while_looking:
            return 404, {"error": {"code": "ResourceNotFound", "message": f"{name} was not found"}}, {}
        if view:
            statuses = [{"code": "ProvisioningState/succeeded"}]
            if self.power[name]:
                statuses.append({"code": f"PowerState/{self.power[name]}"})
            return 200, {"statuses": statuses}, {}
        if method == "GET":
            return 200, self.machines[name], {}
        if name in self.kept:
            return 409, {"error": {"code": "ScopeLocked", "message": "a lock keeps it"}}, {}
        header = "Location" if self.by_location else "Azure-AsyncOperation"
        return 202, {}, {header: f"{self.base}/operations/{self.begun(name)}", "Retry-After": "10"}

    def begun(self, name):
        operation = str(next(self.count))
        self.running[operation] = [name, 2]
        return operation

    def poll(self, operation):
        left = self.running[operation]
        left[1] -= 1
        if left[1]:
            return (202, {}, {}) if self.by_location else (200, {"status": "InProgress"}, {})
        self.machines.pop(left[0], None)
        return (204, {}, {}) if self.by_location else (200, {"status": "Succeeded"}, {})


@contextmanager
def serving(api: Api) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            split = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(split.query).items()}
            api.asked.append(f"{self.command} {split.path}")
            api.tokens.add(self.headers.get("Authorization"))
            status, body, headers = api.answer(self.command, split.path, query)
            said = b"" if status == 204 else json.dumps(body).encode()
            self.send_response(status)
            for key, value in {**headers, "Content-Length": str(len(said))}.items():
                self.send_header(key, value)
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    api.base = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield api.base
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class NebiusApi(grpc.GenericRpcHandler):
    """`refusing`: a gRPC status and words."""

    def __init__(self):
        self.machines = {}
        self.addresses = {}
        self.running = {}
        self.refusing = None
        self.kept = set()
        self.tokens = set()
        self.parent = "project-e00acme"
        self.count = itertools.count()

    def launch(self, *, labels, state="RUNNING", spot=True):
        from nebius.api.nebius.common.v1 import ResourceMetadata
        from nebius.api.nebius.compute import v1

        count = next(self.count)
        name = f"computeinstance-e00{count}"
        card = v1.NetworkInterfaceStatus(ip_address=v1.IPAddressStatus(address=f"10.0.0.{count}/32"))
        self.machines[name] = v1.Instance(
            metadata=ResourceMetadata(
                id=name, parent_id=self.parent, labels=labels, created_at=AT + timedelta(minutes=count)
            ),
            spec=v1.InstanceSpec(
                resources=v1.ResourcesSpec(platform="gpu-h100-sxm", preset="8gpu-128vcpu-1600gb"),
                **({"preemptible": v1.PreemptibleSpec()} if spot else {}),
            ),
            status=v1.InstanceStatus(state=v1.InstanceStatus.InstanceState[state], network_interfaces=[card]),
        )
        return name

    def reserve(self, *, labels, state="ALLOCATED"):
        """An address of nobody's."""
        from nebius.api.nebius.common.v1 import ResourceMetadata
        from nebius.api.nebius.vpc import v1

        count = next(self.count)
        name = f"vpcallocation-e00{count}"
        self.addresses[name] = v1.Allocation(
            metadata=ResourceMetadata(id=name, parent_id=self.parent, labels=labels),
            status=v1.AllocationStatus(
                state=v1.AllocationStatus.State[state],
                details=v1.AllocationDetails(allocated_cidr=f"10.0.0.{count}/32"),
            ),
        )
        return name

    def reserved(self, method, request, context):
        from nebius.api.nebius.vpc import v1

        if method == "List":
            asked = v1.ListAllocationsRequest.FromString(request)
            assert asked.parent_id == self.parent
            start = int(asked.page_token or 0)
            found = list(self.addresses.values())
            more = str(start + PAGE) if start + PAGE < len(found) else ""
            return v1.ListAllocationsResponse(items=found[start : start + PAGE], next_page_token=more)
        name = v1.DeleteAllocationRequest.FromString(request).id
        if name not in self.addresses:
            context.abort(grpc.StatusCode.NOT_FOUND, f"{name} is not there")
        operation = f"vpcoperation-{next(self.count)}"
        self.running[operation] = [name, 1]
        return self.operation(operation)

    def service(self, details):
        self.tokens.add(dict(details.invocation_metadata).get("authorization"))

        def answer(request, context):
            if self.refusing:
                context.abort(*self.refusing)
            return self.answer(details.method, request, context).SerializeToString()

        return grpc.unary_unary_rpc_method_handler(answer)

    def answer(self, method, request, context):
        from nebius.api.nebius.common.v1 import GetOperationRequest
        from nebius.api.nebius.compute import v1

        match method.rpartition("/")[2], method:
            case (
                "List" | "Delete" as what,
                "/nebius.vpc.v1.AllocationService/List" | "/nebius.vpc.v1.AllocationService/Delete",
            ):
                return self.reserved(what, request, context)
            case "List", _:
                asked = v1.ListInstancesRequest.FromString(request)
                assert asked.parent_id == self.parent
                start = int(asked.page_token or 0)
                found = list(self.machines.values())
                more = str(start + PAGE) if start + PAGE < len(found) else ""
                return v1.ListInstancesResponse(items=found[start : start + PAGE], next_page_token=more)
            case "Delete", _:
                name = v1.DeleteInstanceRequest.FromString(request).id
                if name not in self.machines:
                    context.abort(grpc.StatusCode.NOT_FOUND, f"{name} is not there")
                if name in self.kept:
                    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it is kept")
                operation = f"computeoperation-{next(self.count)}"
                self.running[operation] = [name, 1]
                return self.operation(operation)
            case "Get", _:
                operation = GetOperationRequest.FromString(request).id
                self.running[operation][1] -= 1
                return self.operation(operation)
        raise AssertionError(method)

    def operation(self, name):
        from nebius.api.nebius.common.v1 import Operation

        machine, left = self.running[name]
        if left > 0:
            return Operation(id=name, resource_id=machine, created_at=AT)
        self.machines.pop(machine, None)
        self.addresses.pop(machine, None)
        from nebius.base.protos.dynamic import REGISTRY

        done = REGISTRY.message_class("google.rpc.Status")(code=0)
        return Operation(id=name, resource_id=machine, created_at=AT, finished_at=AT, status=done)


@contextmanager
def serving_grpc(api: NebiusApi) -> Iterator[str]:
    pool = ThreadPoolExecutor(4)
    server = grpc.server(pool, handlers=(api,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()
        pool.shutdown()
