"""One emulated AWS for tests: `strict_moto` in a process of its own, and what a test asks of it.

A test talks to `url` (through the fault proxy, as Terraform does) or, to see what is really there, by `client`, which goes straight
to the emulator and so neither meets faults nor shows in the proxy's record.
"""

import http.client
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from tests.emulators.fault_proxy import FaultProxy

ACCOUNT = "123456789012"
REGION = "us-east-1"
ADMINISTRATOR = "administrator"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE", "AWS_SECRET_ACCESS_KEY": "emulated"}


@dataclass(frozen=True)
class Judged:
    """`calls`: each with `call`, `principal`, `session`, `allowed`, `asked` (its authorization requests with verdicts) and `policies`, a key of `policies`."""

    calls: list[dict[str, Any]]
    policies: dict[str, list[dict[str, Any]]]

    def refused(self) -> list[str]:
        """What was denied, in words."""
        return [
            f"{call['principal']}: {one['action']} on {one['resource']}: {one['by']} {one['context']}"
            for call in self.calls
            for one in call["asked"]
            if one["verdict"] != "allow"
        ]


class AwsProcess:
    """The emulator's process; `port` is where it listens on the loopback."""

    def __init__(self, folder: Path, timeout: float = 60.0):
        port_file = folder / "port"
        self._log = (folder / "strict_moto.log").open("wb")
        program = Path(__file__).with_name("strict_moto.py")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "MOTO_", "COV_"))}
        self._process = subprocess.Popen(
            [sys.executable, str(program), "--port-file", str(port_file)],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment,
        )
        deadline = time.monotonic() + timeout
        while not port_file.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.close()
                raise RuntimeError(f"strict_moto did not start:\n{(folder / 'strict_moto.log').read_text()}")
            time.sleep(0.05)
        self.port = int(port_file.read_text())

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(self, path: str, body: bytes = b"") -> bytes:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("POST", path, body)
            reply = connection.getresponse()
            content = reply.read()
        finally:
            connection.close()
        assert reply.status < 300, f"POST {path}: {reply.status} {content.decode(errors='replace')}"
        return content

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()


class Aws:
    """A fresh AWS for one test.  `close` ends the proxy and the clients, not the process."""

    def __init__(self, process: AwsProcess):
        self._process = process
        self._clients: list[Any] = []
        self._administrator = (CREDENTIALS["AWS_ACCESS_KEY_ID"], CREDENTIALS["AWS_SECRET_ACCESS_KEY"])
        self._standing: set[str] = set()
        process.post("/moto-api/reset")
        process.post("/moto-api/reset-auth", b"inf")
        process.post("/strict/market", b"{}")
        self.direct_url = process.url
        self.proxy = FaultProxy(self.direct_url)
        self.url = self.proxy.url
        self.environment = {
            **CREDENTIALS,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def client(self, service: str, region: str = REGION, *, through_proxy: bool = False, **options: Any) -> Any:
        """A boto3 client, closed with the test."""
        client: Any = boto3.client(
            service,  # pyright: ignore[reportArgumentType]
            **{
                "endpoint_url": self.url if through_proxy else self.direct_url,
                "region_name": region,
                "aws_access_key_id": self._administrator[0],
                "aws_secret_access_key": self._administrator[1],
                **options,
            },
        )
        self._clients.append(client)
        return client

    def instances(self, region: str = REGION, **tags: str) -> list[dict[str, Any]]:
        """The instances that exist (not terminated), by the API; `tags` with `_` for `:`, as in skyplan_job="llama3"."""
        wanted = {k.replace("_", ":", 1): v for k, v in tags.items()}
        found: list[dict[str, Any]] = []
        for page in self.client("ec2", region).get_paginator("describe_instances").paginate():
            for instance in (i for r in page["Reservations"] for i in r["Instances"]):
                have = {t["Key"]: t["Value"] for t in instance.get("Tags", [])}
                if instance["State"]["Name"] != "terminated" and wanted.items() <= have.items():
                    found.append(instance)
        return found

    def leftovers(self, region: str = REGION) -> list[str]:
        """Ids of all that a stack could have left, but for what stood when access was first enforced: nothing is found in a fresh region."""
        return [found for found in self._leftovers(region) if found not in self._standing]

    def _leftovers(self, region: str) -> list[str]:
        ec2, iam = self.client("ec2", region), self.client("iam")
        own = [v["VpcId"] for v in ec2.describe_vpcs()["Vpcs"] if not v["IsDefault"]]
        gateways = ec2.describe_nat_gateways()["NatGateways"]
        return [
            *(i["InstanceId"] for i in self.instances(region)),
            *own,
            *(s["SubnetId"] for s in ec2.describe_subnets()["Subnets"] if s["VpcId"] in own),
            *(g["GroupId"] for g in ec2.describe_security_groups()["SecurityGroups"] if g["GroupName"] != "default"),
            *(g["NatGatewayId"] for g in gateways if g["State"] != "deleted"),
            *(a["AllocationId"] for a in ec2.describe_addresses()["Addresses"]),
            *(e["VpcEndpointId"] for e in ec2.describe_vpc_endpoints()["VpcEndpoints"] if e["State"] != "deleted"),
            *(n["NetworkInterfaceId"] for n in ec2.describe_network_interfaces()["NetworkInterfaces"]),
            *(v["VolumeId"] for v in ec2.describe_volumes()["Volumes"]),
            *(t["LaunchTemplateId"] for t in ec2.describe_launch_templates()["LaunchTemplates"]),
            *(g["GroupId"] for g in ec2.describe_placement_groups()["PlacementGroups"]),
            *(r["RoleName"] for r in iam.list_roles()["Roles"]),
            *(p["InstanceProfileName"] for p in iam.list_instance_profiles()["InstanceProfiles"]),
            *(
                s["SpotInstanceRequestId"]
                for s in ec2.describe_spot_instance_requests()["SpotInstanceRequests"]
                if s["State"] in ("open", "active")
            ),
        ]

    def reclaim(self, instance_id: str, region: str = REGION) -> None:
        """EC2 takes a spot instance back."""
        self._process.post(f"/strict/reclaim/{region}/{instance_id}")

    def sell(self, **market: Any) -> None:
        """What is for sale from now on, and how asking goes wrong: `moto_fixes/market.py` says in which words."""
        self._process.post("/strict/market", json.dumps(market).encode())

    def enforce_access(self) -> None:
        """From here to the end of the test every call is judged by the caller's policies, as in a real account.

        `client` is an administrator's from now on, whose credentials are in `administrator`; what stands now is no leftover of a job.
        """
        iam = self.client("iam")
        iam.create_user(UserName=ADMINISTRATOR)
        everything = {"Effect": "Allow", "Action": "*", "Resource": "*"}
        document = json.dumps({"Version": "2012-10-17", "Statement": [everything]})
        iam.put_user_policy(UserName=ADMINISTRATOR, PolicyName="all", PolicyDocument=document)
        key = iam.create_access_key(UserName=ADMINISTRATOR)["AccessKey"]
        self.settle()
        self._administrator = (key["AccessKeyId"], key["SecretAccessKey"])
        self._process.post("/strict/judged/clear")
        self._process.post("/moto-api/reset-auth", b"0")

    @property
    def administrator(self) -> dict[str, str]:
        """Credentials of who may do everything, as environment."""
        return dict(zip(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), self._administrator, strict=True))

    def settle(self, region: str = REGION) -> None:
        """What stands now is no leftover of a job."""
        self._standing = set(self._leftovers(region))

    def judged(self) -> Judged:
        """What access control was asked and answered since it was enforced, but for the administrator's calls."""
        found = json.loads(self._process.post("/strict/judged"))
        calls = [call for call in found["calls"] if not call["principal"].endswith(f":user/{ADMINISTRATOR}")]
        return Judged(calls, found["policies"])

    def forget_judged(self) -> None:
        """Let what was judged so far go."""
        self._process.post("/strict/judged/clear")

    def bucket(self, name: str, region: str = REGION) -> str:
        """A new bucket, e.g. for Terraform's state."""
        placed = {} if region == REGION else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        self.client("s3", region).create_bucket(Bucket=name, **placed)
        return name

    def close(self) -> None:
        self.proxy.close()
        for client in self._clients:
            client.close()
