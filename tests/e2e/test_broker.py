"""`skyplan broker` as a process: nodes that prove themselves get leases by the real AWS SDK, and a stolen lease opens its prefix and nothing else (R06).

The store and STS are ministack with its own access control; the job's data role may do everything in S3 there, so that every refusal below is the lease's own.
Nothing here was ever asked of a live cloud.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from modules.agent import settings
from modules.agent.client import Broker as AgentBroker
from modules.agent.cred import lease
from modules.agent.errors import Denied
from modules.agent.link import Link
from modules.agent.proofs.aws import signed
from planner.model.offer import Cloud
from planner.model.project import Backend, ControlPlane, Project, Target
from planner.model.record import Action, Node, Run, Stack
from planner.model.runtime import NodeIdentity, Refused, Seat
from planner.model.server import IdentityTrust
from planner.model.workload import Store
from planner.server.identity import Answer, Asked, verifiers
from planner.state.record import Record
from planner.state.runtime import Runtime
from tests.e2e.judges.ministack import ACCOUNT, Ministack
from tests.emulators.issuers import GOOGLE, TokenSigner, google_claims
from tests.unit.server.broker.bed import node, plan, recorded, workload, write

URL = "https://broker.acme.example"
PROJECT = Project(
    name="acme",
    targets=(
        Target(name="prod", cloud=Cloud.AWS, account=ACCOUNT, broker_role=f"arn:aws:iam::{ACCOUNT}:role/broker"),
        Target(name="prod", cloud=Cloud.GCP, account="acme-ml"),
    ),
    default_targets=False,
    control_plane=ControlPlane(url="https://plane.acme.example", broker=URL),
)
SKYPLAN_YAML = f"""
project: acme
targets:
  - {{name: prod, cloud: aws, account: "{ACCOUNT}", broker_role: "arn:aws:iam::{ACCOUNT}:role/broker"}}
  - {{name: prod, cloud: gcp, project: acme-ml}}
agent: {{url: "https://plane.acme.example/agent.pyz", sha256: "{"a" * 64}"}}
control_plane: {{url: "https://plane.acme.example", broker: "{URL}"}}
"""
SEAT = Seat(job="train", generation=1, rank=0)


@pytest.fixture(scope="module")
def ministack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ministack]:
    started = Ministack(tmp_path_factory.mktemp("ministack"))
    yield started
    started.close()


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@dataclass
class Account:
    """An AWS account with a bucket, the job's data role, and the broker, who may become it and nothing else."""

    aws: Ministack
    role: str
    keys: dict[str, str]

    def as_broker(self, service: str) -> Any:
        return self.aws.client(service, **self.keys)

    def as_lease(self, lease: dict[str, str], service: str = "s3") -> Any:
        return self.aws.client(
            service,
            aws_access_key_id=lease["access_key_id"],
            aws_secret_access_key=lease["secret_access_key"],
            aws_session_token=lease["session_token"],
        )


@pytest.fixture(scope="module")
def account(ministack: Ministack) -> Account:
    iam, s3 = ministack.client("iam"), ministack.client("s3")
    user = iam.create_user(UserName="broker")["User"]["Arn"]
    key = iam.create_access_key(UserName="broker")["AccessKey"]
    trust = {"Effect": "Allow", "Principal": {"AWS": user}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
    name = "skyplan-acme-dat-train--gcp-prod-us-central1"
    role = iam.create_role(RoleName=name, Path="/skyplan/acme/data/", AssumeRolePolicyDocument=policy(trust))
    everything = {"Effect": "Allow", "Action": "s3:*", "Resource": "*"}
    iam.put_role_policy(RoleName=name, PolicyName="p", PolicyDocument=policy(everything))
    become = {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Resource": role["Role"]["Arn"]}
    iam.put_user_policy(UserName="broker", PolicyName="p", PolicyDocument=policy(become))
    for bucket in ("all", "theirs"):
        s3.create_bucket(Bucket=bucket)
        for name in ("corpus/a", "corpus2/a", "ckpt/g1/a", "ckpt/g2/a", "ckpt/g11/a", "ckpt2/g1/a", "secret/a", "a"):
            s3.put_object(Bucket=bucket, Key=name, Body=name.encode())
    keys = {"aws_access_key_id": key["AccessKeyId"], "aws_secret_access_key": key["SecretAccessKey"]}
    return Account(aws=ministack, role=role["Role"]["Arn"], keys=keys)


# the process


@pytest.fixture(scope="module")
def google() -> Iterator[tuple[TokenSigner, str]]:
    """Google's keys at an address."""
    signer = TokenSigner(GOOGLE)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            body = json.dumps(signer.keys).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield signer, f"http://127.0.0.1:{server.server_address[1]}/certs"
    server.shutdown()
    thread.join()
    server.server_close()


class Scene:
    """An approved plan whose nodes are on Google and whose data is in S3, a record with its run, and the broker's process."""

    def __init__(self, folder: Path, account: Account, google: tuple[TokenSigner, str]) -> None:
        self.folder, self.account, self.signer = folder, account, google[0]
        (folder / "plans").mkdir()
        self.plan = plan(Cloud.GCP, workload(Store.S3), PROJECT)
        self.file = write(folder / "plans", self.plan)
        (folder / "skyplan.yaml").write_text(SKYPLAN_YAML)
        (folder / "broker.yaml").write_text(
            f'url: "{URL}"\nlisten: "127.0.0.1:0"\n'
            f'identity:\n  gcp: [{{issuer: "{GOOGLE}", keys_url: "{google[1]}"}}]\n'
        )
        self.database = f"sqlite:///{folder / 'record.sqlite'}"
        self.record, self.runtime = Record.open(self.database, "acme"), Runtime.open(self.database, "acme")
        self.key = secrets.token_hex(32)
        self.launch()
        self.join(SEAT)
        self.log = (folder / "broker.log").open("w+")
        self.process, self.url = self._started()

    def _started(self) -> tuple[subprocess.Popen[str], str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "SKYPLAN_", "COV_"))}
        own = {
            "SKYPLAN_DATABASE_URL": self.database,
            "AWS_ENDPOINT_URL_STS": self.account.aws.url,
            "AWS_ACCESS_KEY_ID": self.account.keys["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": self.account.keys["aws_secret_access_key"],
            "AWS_EC2_METADATA_DISABLED": "true",
        }
        command = [sys.executable, "-c", "from planner.cli.entry import run; run()", "broker"]
        given = ["--settings", "broker.yaml", "--plans", "plans", "--project", "skyplan.yaml"]
        environment = {**inherited, **own, "PYTHONPATH": str(Path(__file__).parents[2])}
        process = subprocess.Popen(
            [*command, *given], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            process.stdout.close()
            self.log.close()
            raise AssertionError(self.logged)
        said = json.loads(line)
        assert said["audience"] == URL
        return process, said["url"]

    @property
    def logged(self) -> str:
        return (self.folder / "broker.log").read_text()

    def launch(self) -> None:
        now = datetime.now(UTC)
        lease = self.record.take_lease("train", "me", now, timedelta(minutes=10))
        writer = self.record.writer(lease)
        run = writer.issue(
            Run(
                job="train",
                generation=0,
                plan_digest=self.plan.digest,
                rank=1,
                placement_id="p0123456789",
                offer_id="gcp:prod/us-central1/us-central1-a/a3-highgpu-8g/spot",
                cloud="gcp",
                target="prod",
                region="us-central1",
                zone="us-central1-a",
                pool="p",
                instance_type="a3-highgpu-8g",
                capacity="spot",
                nodes=2,
                gpus=16,
                vcpus=2,
                addresses=(),
                usd_per_hour=Decimal(20),
            ),
            now,
        )
        stack = Stack(
            name=f"cmp-train-g{run.generation}",
            kind="compute",
            job="train",
            cloud="gcp",
            target="prod",
            region="us-central1",
            generation=run.generation,
            backend=Backend(),
            document={},
            variables={},
        )
        intent = writer.intend(stack, Action.APPLY, now)
        nodes = [Node(rank=k, instance_id=recorded(Cloud.GCP, k), address="") for k in range(2)]
        writer.launched(intent, run.generation, nodes, now)
        self.record.release(lease, now)

    def join(self, seat: Seat) -> None:
        import hashlib

        now = datetime.now(UTC)
        self.runtime.admit(
            seat,
            NodeIdentity(scheme="gcp-jwt", cloud="gcp"),
            instance_id=recorded(Cloud.GCP, seat.rank),
            key_sha256=hashlib.sha256(self.key.encode()).hexdigest(),
            proof_sha256=secrets.token_hex(32),
            token_sha256=secrets.token_hex(32),
            at=now,
            expires_at=now + timedelta(hours=1),
        )

    def proof(self, audience: str = URL, *, rank: int = 0, email: str = "", **change: Any) -> dict[str, str]:
        claims = google_claims(audience, instance=f"node-{rank}", project="acme-ml")
        claims["email"] = email or node(Cloud.GCP).principal
        return {"scheme": "gcp-jwt", "value": self.signer.token({**claims, **change}, datetime.now(UTC))}

    def ask(self, uri: str, access: str, *, seat: Seat = SEAT, **change: Any) -> tuple[int, dict[str, Any]]:
        body = {
            "job": seat.job,
            "generation": seat.generation,
            "rank": seat.rank,
            "proof": self.proof(rank=seat.rank),
            "key": self.key,
            "uri": uri,
            "access": access,
            **change,
        }
        asked = urllib.request.Request(
            f"{self.url}/v1/leases", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
        )
        try:
            with urllib.request.urlopen(asked, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read())

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        status, body = self.ask(uri, access)
        assert status == 200, (body, self.logged)
        return body

    def close(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.log.close()
        self.runtime.close()
        self.record.close()


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, account: Account, google: tuple[TokenSigner, str]
) -> Iterator[Scene]:
    """For tests that leave the record and the plans as they are."""
    made = Scene(tmp_path_factory.mktemp("shared"), account, google)
    yield made
    made.close()


@pytest.fixture
def scene(tmp_path: Path, account: Account, google: tuple[TokenSigner, str]) -> Iterator[Scene]:
    made = Scene(tmp_path, account, google)
    yield made
    made.close()


def code(ask: Any) -> str:
    try:
        ask()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "allowed"


def test_a_node_trains_and_a_stolen_lease_opens_nothing_else(shared: Scene, account: Account) -> None:
    scene = shared
    reading, writing = scene.lease("s3://all/corpus/", "read"), scene.lease("s3://all/ckpt/", "write")
    assert (reading["uri"], writing["uri"]) == ("s3://all/corpus/", "s3://all/ckpt/g1/")
    ends = datetime.fromisoformat(writing["expires_at"])
    assert timedelta(minutes=59) < ends - datetime.now(UTC) <= timedelta(hours=1)

    # the node's work
    data, ckpt = account.as_lease(reading["aws"]), account.as_lease(writing["aws"])
    assert data.get_object(Bucket="all", Key="corpus/a")["Body"].read() == b"corpus/a"
    assert [o["Key"] for o in data.list_objects_v2(Bucket="all", Prefix="corpus/")["Contents"]] == ["corpus/a"]
    ckpt.put_object(Bucket="all", Key="ckpt/g1/step-7", Body=b"weights")
    assert ckpt.get_object(Bucket="all", Key="ckpt/g2/a")["Body"].read() == b"ckpt/g2/a", "another generation is read"
    upload = ckpt.create_multipart_upload(Bucket="all", Key="ckpt/g1/step-8")["UploadId"]
    part = ckpt.upload_part(Bucket="all", Key="ckpt/g1/step-8", PartNumber=1, UploadId=upload, Body=b"w")["ETag"]
    parts = {"Parts": [{"ETag": part, "PartNumber": 1}]}
    ckpt.complete_multipart_upload(Bucket="all", Key="ckpt/g1/step-8", UploadId=upload, MultipartUpload=parts)

    # a thief's
    def each(what: Any, *keys: str, bucket: str = "all") -> set[str]:
        return {code(lambda k=k: what(Bucket=bucket, Key=k)) for k in keys}

    outside = ("secret/a", "a", "corpus2/a", "ckpt/g1/a", "ckpt2/g1/a")
    assert each(data.get_object, *outside) == {"AccessDenied"}
    assert each(data.get_object, "corpus/a", bucket="theirs") == {"AccessDenied"}
    assert each(ckpt.get_object, "secret/a", "a", "corpus/a", "ckpt2/g1/a") == {"AccessDenied"}
    assert each(data.put_object, "corpus/a", "ckpt/g1/x", "x") == {"AccessDenied"}
    assert each(ckpt.put_object, "ckpt/g2/x", "ckpt/g11/x", "ckpt/g1", "ckpt/x", "ckpt2/g1/x", "corpus/x") == {
        "AccessDenied"
    }
    assert each(ckpt.delete_object, "ckpt/g1/a", "ckpt/g2/a", "a") == {"AccessDenied"}
    for client in (data, ckpt):
        for prefix in ("", "secret/", "corpu", "ckp", "ckpt2/"):
            assert code(lambda c=client, p=prefix: c.list_objects_v2(Bucket="all", Prefix=p)) == "AccessDenied", prefix
        assert code(client.list_buckets) == "AccessDenied"
        assert code(lambda c=client: c.put_bucket_policy(Bucket="all", Policy="{}")) == "AccessDenied"
        assert (
            code(lambda c=client: c.copy_object(Bucket="all", Key="ckpt/g1/stolen", CopySource="all/secret/a"))
            == "AccessDenied"
        )
    for held in (reading, writing):
        again = account.as_lease(held["aws"], "sts")
        assert code(lambda a=again: a.assume_role(RoleArn=account.role, RoleSessionName="wider")) == "AccessDenied"
        tampered = {**held["aws"], "session_token": held["aws"]["session_token"][:-2] + "xx"}
        assert code(lambda t=tampered: account.as_lease(t).get_object(Bucket="all", Key="corpus/a")) != "allowed"

    # what is written down
    issues = {i.id: i for i in scene.runtime.issues("train", 50)}
    assert {i["id"] for i in (reading, writing)} <= set(issues)
    assert issues[writing["id"]].identity == account.role
    assert '"event": "lease"' in scene.logged
    for secret in (*reading["aws"].values(), *writing["aws"].values(), scene.key):
        assert secret not in scene.logged
        assert secret.encode() not in (scene.folder / "record.sqlite").read_bytes()


def test_what_is_refused_at_the_door(shared: Scene) -> None:
    scene = shared
    uri = "s3://all/ckpt/"

    def word(*args: Any, **change: Any) -> tuple[int, str, str]:
        status, body = scene.ask(*args, **change)
        return status, body["error"], body["code"]

    assert word("s3://all/secret/", "read") == (400, "malformed", "SKY-RUN-515")
    assert word("s3://all/corpus/", "write") == (400, "malformed", "SKY-RUN-515")
    # a proof that the node made for the control plane, caught there
    assert word(uri, "write", proof=scene.proof("https://plane.acme.example")) == (403, "identity", "SKY-RUN-516")
    other = scene.proof(email=node(Cloud.GCP, "other").principal)
    assert word(uri, "write", proof=other) == (403, "identity", "SKY-RUN-516")
    assert word(uri, "write", proof=scene.proof(rank=1)) == (403, "identity", "SKY-RUN-516")
    assert word(uri, "write", proof={"scheme": "one-time", "value": "A" * 43}) == (403, "identity", "SKY-RUN-516")
    assert word(uri, "write", key="another-key-of-a-thief") == (409, "key", "SKY-RUN-516")
    assert word(uri, "write", seat=replace(SEAT, generation=9)) == (401, "unknown", "SKY-RUN-516")
    assert word(uri, "write", seat=replace(SEAT, rank=1))[0] == 425
    proof = scene.proof()
    assert scene.ask(uri, "write", proof=proof)[0] == 200
    assert scene.ask(uri, "read", proof=proof)[0] == 200, "a platform's token is kept for a while, the key is the same"


def test_a_successor_ends_what_the_predecessor_may_be_given(scene: Scene) -> None:
    before = scene.lease("s3://all/ckpt/", "write")
    scene.launch()
    second = replace(SEAT, generation=2)
    scene.join(second)
    scene.runtime.begin_cut(second, datetime.now(UTC))
    status, body = scene.ask("s3://all/ckpt/", "write")
    assert (status, body["error"]) == (409, "fenced")
    status, after = scene.ask("s3://all/ckpt/", "write", seat=second)
    assert (status, after["uri"]) == (200, "s3://all/ckpt/g2/")
    # what the predecessor still holds reaches its own generation only
    old = scene.account.as_lease(before["aws"])
    assert code(lambda: old.put_object(Bucket="all", Key="ckpt/g2/stale", Body=b"")) == "AccessDenied"


def test_the_agents_own_client_keeps_a_lease(shared: Scene, account: Account) -> None:
    """The node's side as it is packed: its client asks, its holder keeps, and what it holds opens the store."""
    seat = settings.Seat(project="acme", job=SEAT.job, generation=SEAT.generation, rank=SEAT.rank, nodes=2)
    link = Link(settings.Service(url=shared.url, ca_file=None, audience=URL))
    client = AgentBroker(link, seat, key=shared.key, prove=shared.proof)
    asked = time.time()
    answer = client.lease("s3://all/ckpt/", "write")
    held = lease.read(answer, asked)
    assert (held.uri, held.shape) == ("s3://all/ckpt/g1/", "aws")
    # the broker asks the cloud after it stamps the lease: a little over the hour, and over for the node no later than it is
    ends = datetime.fromisoformat(answer["expires_at"]).timestamp()
    assert asked + 3500 < held.ends <= ends
    account.as_lease(dict(held.secret)).put_object(Bucket="all", Key="ckpt/g1/by-the-agent", Body=b"")
    with pytest.raises(Denied) as caught:
        client.lease("s3://all/secret/", "read")
    assert (caught.value.word, caught.value.code) == ("malformed", "SKY-RUN-515")
    link.close()


def test_a_plan_taken_away_and_a_record_that_lies(scene: Scene) -> None:
    scene.file.unlink()
    status, body = scene.ask("s3://all/ckpt/", "write")
    assert (status, body["code"]) == (400, "SKY-RUN-515")
    # whoever owns the database names a plan that he wrote himself, and cannot put it where the broker reads
    forged = plan(Cloud.GCP, workload(Store.S3, data=()), PROJECT)
    (scene.folder / "forged.plan.json").write_text(json.dumps({"digest": forged.digest}))
    status, body = scene.ask("s3://all/ckpt/", "write")
    assert (status, body["code"]) == (400, "SKY-RUN-515")
    write(scene.folder / "plans", scene.plan)
    assert scene.ask("s3://all/ckpt/", "write")[0] == 200


# AWS nodes: the signed question goes to an STS that checks it


def test_an_instance_role_is_known_by_its_signature(ministack: Ministack) -> None:
    iam = ministack.client("iam")
    user = iam.create_user(UserName="ec2")["User"]["Arn"]
    key = iam.create_access_key(UserName="ec2")["AccessKey"]
    trust = {"Effect": "Allow", "Principal": {"AWS": user}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="nodes", Path="/skyplan/acme/", AssumeRolePolicyDocument=policy(trust))
    allowed = {"Effect": "Allow", "Action": "sts:AssumeRole", "Resource": role["Role"]["Arn"]}
    iam.put_user_policy(UserName="ec2", PolicyName="p", PolicyDocument=policy(allowed))
    as_ec2 = ministack.client("sts", aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"])
    given = as_ec2.assume_role(RoleArn=role["Role"]["Arn"], RoleSessionName="i-0123456789abcdef0")["Credentials"]
    keys = {
        "AccessKeyId": given["AccessKeyId"],
        "SecretAccessKey": given["SecretAccessKey"],
        "Token": given["SessionToken"],
    }

    def to_ministack(asked: Asked) -> Answer:
        request = urllib.request.Request(ministack.url + "/", asked.body, dict(asked.headers), method=asked.method)
        try:
            with urllib.request.urlopen(request, timeout=10) as got:
                return Answer(status=got.status, body=got.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(status=error.code, body=error.read())

    trusted = IdentityTrust(audience=URL, aws_sts=("sts.us-east-1.amazonaws.com",))
    judge, now = verifiers(trusted, fetch=to_ministack)["aws-sts"], datetime.now(UTC)
    found = judge.verify(signed(keys, "us-east-1", URL, now.timestamp()), now)
    assert (found.account, found.instance_id) == (ACCOUNT, "i-0123456789abcdef0")
    assert found.principal == f"arn:aws:iam::{ACCOUNT}:role/nodes"
    moved = signed(keys, "us-east-1", "https://plane.acme.example", now.timestamp())
    moved["headers"]["x-skyplan-audience"] = URL
    with pytest.raises(Refused, match="does not take the signature"):
        judge.verify(moved, now)


def test_a_broker_may_become_the_data_role_and_nothing_else(account: Account) -> None:
    s3 = account.as_broker("s3")
    assert code(lambda: s3.get_object(Bucket="all", Key="corpus/a")) == "AccessDenied"
    assert code(s3.list_buckets) == "AccessDenied"
    sts = account.as_broker("sts")
    assert (
        code(lambda: sts.assume_role(RoleArn=f"arn:aws:iam::{ACCOUNT}:role/other", RoleSessionName="thief"))
        == "AccessDenied"
    )
