"""The node's side for S3: leases by AssumeRole of ministack with enforcement, boto3 in the job.  Runs under libfaketime: `python -m tests.e2e.rotation.s3 URL FOLDER [AWAY BACK] CLOCK`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
from botocore.exceptions import ClientError

from modules.agent.cred.grants import wanted
from planner.clouds.mint.aws import AwsMinter
from tests.e2e.rotation import stage

JOB = """
import json, os, sys, boto3
url, profile = sys.argv[1:]
data = boto3.client("s3", endpoint_url=url, region_name="us-east-1")
ckpt = boto3.Session(profile_name=profile).client("s3", endpoint_url=url, region_name="us-east-1")
used = []
def sent(request, **_):
    value = request.headers["Authorization"]
    used.append((value if isinstance(value, str) else value.decode()).partition("Credential=")[2].partition("/")[0])
data.meta.events.register("before-send.s3", sent)
for line in sys.stdin:
    used.clear()
    failed = []
    try:
        if line.strip() == "read":
            for n in range(2):
                assert data.get_object(Bucket="data", Key="train/%d" % n)["Body"].read() == b"shard %d" % n
        else:
            ckpt.put_object(Bucket="ckpt", Key="train/g3/last", Body=b"weights")
    except Exception as error:
        failed.append(repr(error))
    print(json.dumps({"used": used, "failed": failed, "pid": os.getpid()}), flush=True)
"""


class Broker:
    """Mints by skyplan's own minter, as an identity that may take on the job's data role and nothing else."""

    def __init__(self, url: str) -> None:
        self.url, self.minted = url, 0
        admin = self.client("iam", "test", "x")
        user = admin.create_user(UserName="broker")["User"]["Arn"]
        key = admin.create_access_key(UserName="broker")["AccessKey"]
        trust = {"Effect": "Allow", "Principal": {"AWS": user}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
        self.role = admin.create_role(RoleName="data", AssumeRolePolicyDocument=policy(trust))["Role"]["Arn"]
        allowed = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:ListBucket"], "Resource": "*"}
        admin.put_role_policy(RoleName="data", PolicyName="p", PolicyDocument=policy(allowed))
        allowed = {"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"], "Resource": self.role}
        admin.put_user_policy(UserName="broker", PolicyName="p", PolicyDocument=policy(allowed))
        self.minter = AwsMinter(sts=self.client("sts", key["AccessKeyId"], key["SecretAccessKey"]))
        store = self.client("s3", "test", "x")
        for bucket in ("data", "ckpt"):
            store.create_bucket(Bucket=bucket)
        for n in range(3):
            store.put_object(Bucket="data", Key=f"train/{n}", Body=b"shard %d" % n)
        store.put_object(Bucket="data", Key="other/0", Body=b"not yours")

    def client(self, service: str, key: str, secret: str, token: str | None = None) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id=key,
            aws_secret_access_key=secret,
            aws_session_token=token,
        )

    def lease(self, uri: str, access: str) -> dict[str, Any]:
        self.minted += 1
        return stage.minted(self.minter, uri, access, self.role, self.minted)


def policy(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def main() -> None:
    url, folder, clock = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[-1])
    away = (int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 4 else (0, 0)
    broker = Broker(url)
    grants = wanted([("s3://data/train/", "read"), ("s3://ckpt/train/g3/", "write")])
    frozen = broker.lease("s3://data/train/", "read")["aws"]
    old = broker.client("s3", frozen["access_key_id"], frozen["secret_access_key"], frozen["session_token"])
    stolen = {
        "mine": outcome(lambda: old.get_object(Bucket="data", Key="train/0")),
        "other prefix": outcome(lambda: old.get_object(Bucket="data", Key="other/0")),
        "other bucket": outcome(lambda: old.get_object(Bucket="ckpt", Key="train/g3/x")),
        "write": outcome(lambda: old.put_object(Bucket="data", Key="train/0", Body=b"")),
        "delete": outcome(lambda: old.delete_object(Bucket="data", Key="train/0")),
        "list mine": outcome(lambda: old.list_objects_v2(Bucket="data", Prefix="train/")),
        "list all": outcome(lambda: old.list_objects_v2(Bucket="data")),
    }

    result = stage.live(
        broker,
        grants,
        folder,
        clock,
        lambda _endpoint, environment: stage.Job(JOB, [url, grants[1].grant], environment),
        # what was resolved once at the start (cases 1, 2, 4)
        after_an_hour=lambda: outcome(lambda: old.get_object(Bucket="data", Key="train/0")),
        away=away,
    )
    sys.stdout.write(json.dumps({**result, "stolen": stolen}))


def outcome(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return "done"


if __name__ == "__main__":
    main()
