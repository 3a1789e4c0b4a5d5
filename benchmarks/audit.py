"""How long an audit of 1,000 generated policies takes: `python benchmarks/audit.py [--parliament PYTHON] [--policies N]`.

Timed is what `skyplan audit` does once files are parsed: IAM JSON to the model, and every rule over all of it.  parliament is run, where an interpreter that
has it is named, over the first of the same policies, in one process, loading not counted; its findings are not compared here.  Prints a line per figure;
nothing in the tests is timed.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from timing import warm

from planner.iam.audit.registry import RULES, run
from planner.iam.documents import policy_from
from planner.model.offer import Cloud
from planner.model.policy import Audited, PolicyKind, Subject

REACH_SECONDS = 2.0
FOR_PARLIAMENT = 60
"""Policies that parliament gets: at up to 170 ms each, a thousand would take minutes."""
ACCOUNT = "111122223333"
REGIONS = ("us-east-1", "us-west-2", "eu-central-1", "ap-northeast-1")
DESCRIBE = [
    f"ec2:Describe{what}"
    for what in (
        "Instances",
        "InstanceStatus",
        "InstanceTypes",
        "Images",
        "Subnets",
        "SecurityGroups",
        "Vpcs",
        "Volumes",
        "Tags",
    )
]
WIDE = (
    "ec2:*",
    "s3:*",
    "iam:PassRole",
    "s3:Get*",
    "ec2:Describe*",
    "ssm:SendCommand",
    "iam:CreateAccessKey",
    "sts:AssumeRole",
    "kms:Decrypt",
)
PARLIAMENT = """
import json, sys, time
from parliament import analyze_policy_string
policies = json.load(open(sys.argv[1]))
analyze_policy_string(policies[0])
start = time.perf_counter()
for policy in policies:
    analyze_policy_string(policy)
print((time.perf_counter() - start) / len(policies))
"""


def allow(sid: str, actions: list[str], resources: list[str], **condition: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}
    return made | ({"Condition": condition} if condition else {})


def launching(chance: random.Random) -> list[dict[str, Any]]:
    """An orchestrator of one project, as skyplan's own is."""
    region, project = chance.choice(REGIONS), f"p{chance.randrange(10_000)}"
    arn = f"arn:aws:ec2:{region}:{ACCOUNT}:"
    asked = {"aws:RequestTag/skyplan:project": project, "aws:RequestTag/skyplan:managed": "true"}
    own = {"aws:ResourceTag/skyplan:project": project}
    role = f"arn:aws:iam::{ACCOUNT}:role/skyplan/{project}/node"
    return [
        allow("Describe", DESCRIBE, ["*"], StringEquals={"aws:RequestedRegion": region}),
        allow(
            "Launch",
            ["ec2:RunInstances"],
            [f"{arn}instance/*"],
            StringEquals=asked,
            StringLike={"ec2:InstanceType": ["p5.*", "g6.*"]},
        ),
        allow("Disks", ["ec2:RunInstances"], [f"{arn}volume/*"], StringEquals=asked, Bool={"ec2:Encrypted": "true"}),
        allow(
            "Places",
            ["ec2:RunInstances"],
            [f"{arn}subnet/*", f"{arn}security-group/*", f"{arn}launch-template/*"],
            StringEquals=own,
        ),
        allow(
            "Image",
            ["ec2:RunInstances"],
            [f"arn:aws:ec2:{region}::image/ami-*"],
            StringEquals={"ec2:Owner": ["amazon", ACCOUNT]},
        ),
        allow(
            "Tag",
            ["ec2:CreateTags"],
            [f"{arn}instance/*", f"{arn}volume/*"],
            StringEquals={"ec2:CreateAction": "RunInstances", **asked},
        ),
        allow("End", ["ec2:TerminateInstances"], [f"{arn}instance/*"], StringEquals=own),
        allow("Pass", ["iam:PassRole"], [role], StringEquals={"iam:PassedToService": "ec2.amazonaws.com"}),
    ]


def reading(chance: random.Random) -> list[dict[str, Any]]:
    """A node's data and checkpoints."""
    out: list[dict[str, Any]] = []
    for number in range(chance.randint(1, 4)):
        bucket, prefix = f"acme-{chance.randrange(1000)}", f"run-{chance.randrange(1000)}/"
        of = {"aws:ResourceAccount": ACCOUNT}
        actions = ["s3:GetObject", *(["s3:PutObject", "s3:AbortMultipartUpload"] if number % 2 else [])]
        out += [
            allow(f"Objects{number}", actions, [f"arn:aws:s3:::{bucket}/{prefix}*"], StringEquals=of),
            allow(
                f"List{number}",
                ["s3:ListBucket"],
                [f"arn:aws:s3:::{bucket}"],
                StringEquals=of,
                StringLike={"s3:prefix": [prefix, f"{prefix}*"]},
            ),
        ]
    return out


def wide(chance: random.Random) -> list[dict[str, Any]]:
    """What grew by hand."""
    resources = ["*", f"arn:aws:s3:::acme-{chance.randrange(1000)}/*", f"arn:aws:iam::{ACCOUNT}:role/*"]
    return [
        allow(f"S{number}", chance.sample(WIDE, chance.randint(1, 4)), [chance.choice(resources)])
        for number in range(chance.randint(1, 6))
    ]


def documents(count: int, seed: int = 4) -> list[str]:
    chance = random.Random(seed)  # the same policies on every machine
    made = [chance.choices((launching, reading, wide), (1, 2, 2))[0](chance) for _ in range(count)]
    return [json.dumps({"Version": "2012-10-17", "Statement": statements}) for statements in made]


def audited(texts: list[str]) -> Audited:
    return Audited(
        subjects=tuple(
            Subject(
                cloud=Cloud.AWS,
                name=f"role-{number}",
                origin=f"bench aws_iam_role.r{number}",
                policies=(policy_from(text, kind=PolicyKind.IDENTITY, name="all"),),
            )
            for number, text in enumerate(texts)
        )
    )


def of_parliament(python: str, texts: list[str]) -> float:
    """Seconds a policy."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        done = subprocess.run([python, "-c", PARLIAMENT, file.name], check=True, capture_output=True, text=True)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parliament", metavar="PYTHON", help="interpreter that has parliament")
    parser.add_argument("--policies", type=int, default=1000)
    given = parser.parse_args()
    texts = documents(given.policies)
    begun = time.perf_counter()
    found = run(audited(texts))
    first = time.perf_counter() - begun
    # other policies each time, so that nothing of theirs is known already
    others = [documents(given.policies, seed) for seed in range(5, 9)]
    begun = time.process_time()
    median, least = warm(lambda: run(audited(others.pop())), len(others) - 1)
    cpu = (time.process_time() - begun) / 4
    per = median / len(texts)
    statements = sum(len(json.loads(text)["Statement"]) for text in texts)
    print(f"{len(texts)} policies, {statements} statements, {len(RULES)} rules: {len(found)} findings")
    print(
        f"skyplan     {median:6.2f} s (least {least:.2f} s, {cpu:.2f} s of CPU; the first of a process {first:.2f} s), "
        f"{per * 1000:.2f} ms a policy; reach {REACH_SECONDS:.0f} s a thousand"
    )
    if given.parliament and Path(given.parliament).exists():
        theirs = of_parliament(given.parliament, texts[:FOR_PARLIAMENT])
        print(
            f"parliament  {theirs * 1000:6.2f} ms a policy ({len(texts[:FOR_PARLIAMENT])} of them): {theirs / per:.0f} times as long"
        )


if __name__ == "__main__":
    main()
