"""Rules 3xx, the rows: how far rights on data reach.  The checks are in `data_aws` and `data_roles`.

What a job may read and write is what its spec names, where that is known; else only whole buckets and more are found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.iam.audit import data_aws, data_roles
from planner.iam.audit.registry import Rule
from planner.model.finding import Finding, Level
from planner.model.policy import Audited

Check = Callable[[Audited], Iterator[Finding]]


def _both(*checks: Check) -> Check:
    def check(audited: Audited) -> Iterator[Finding]:
        for one in checks:
            yield from one(audited)

    return check


RULES: tuple[Rule, ...] = (
    Rule(
        id="SKY-IAM-301",
        level=Level.HIGH,
        why=(
            "A node that may read a whole bucket hands all of it to whoever gets a shell on the node: other teams' data sets, other runs' checkpoints. The "
            "spec names one prefix, so nothing more is needed. Found is reading on every bucket, and reading beyond what the job names where that is known."
        ),
        fix="Name the prefix: `arn:aws:s3:::BUCKET/PREFIX/*`, a managed folder, a condition on the blob's path, a path of the bucket's rule.",
        maps=("CKV_AWS_108", "CKV_AWS_288", "TRV AWS-0345"),
        check=_both(data_aws.read_too_far, data_roles.read_too_far),
        clouds=(
            "AWS: s3:GetObject as far as boundary and denies leave it. Google: a reading role on a bucket, project or above without a managed folder or a "
            "condition on object names. Azure: a reading role above a container, or on one without a condition on the path. Nebius: a rule with path `*`."
        ),
    ),
    Rule(
        id="SKY-IAM-302",
        level=Level.MEDIUM,
        why=(
            "Names tell: customers, dates, what a company trains on. The right to list sits on the bucket, so that without a condition on the prefix it is "
            "the right to all names. A bucket that the spec names whole may be listed whole."
        ),
        fix='Require `"StringLike": {"s3:prefix": ["PREFIX/", "PREFIX/*"]}`.',
        check=data_aws.listed_whole,
        clouds="AWS only; Google has its own rule (304), on Azure and Nebius the condition or path of 301 holds listing too.",
    ),
    Rule(
        id="SKY-IAM-303",
        level=Level.HIGH,
        why=(
            "Listing is asked of the bucket, reading of objects; the other way round the statement never applies. The job fails in its first minute, and "
            "what is done then in a hurry is `Resource: *`. Judged by AWS's own table of actions and resources, for all services in it."
        ),
        fix="Objects (`BUCKET/PREFIX/*`) for actions on objects, the bucket (`BUCKET`) for ListBucket, `*` for actions that know no resource.",
        maps=("parliament RESOURCE_MISMATCH",),
        check=data_aws.dead_resource,
    ),
    Rule(
        id="SKY-IAM-304",
        level=Level.MEDIUM,
        why=(
            "Cloud Storage checks storage.objects.list on the bucket and never on an object: a condition on object names lets reading work and listing fail "
            "(lanes-sh/link#100, multicloudj#437). The usual way out, listing without the condition, shows the names of everything in the bucket."
        ),
        fix="A managed folder for the prefix, or a token with a Credential Access Boundary that names objectListPrefix.",
        check=data_roles.lists_under_names,
        clouds="Google only.",
    ),
    Rule(
        id="SKY-IAM-305",
        level=Level.HIGH,
        why=(
            "Every process on a machine can have the machine's credentials. With rights on the control plane among them, one bad package of a training image "
            "starts machines, changes policies or becomes another role (Typhon#971: ec2:* and s3:* on every node). What only reads is not counted."
        ),
        fix="Give the node rights on data only; launching is the orchestrator's.",
        check=_both(data_aws.node_controls, data_roles.node_controls),
        clouds=(
            "AWS: writing actions of EC2, IAM, STS and services that run code, on a role that is skyplan's node's or that EC2 may assume and that reads data. "
            "Google: compute, iam and resourcemanager. Azure: management actions that are not reads. Nebius: `editor` and `admin`."
        ),
    ),
    Rule(
        id="SKY-IAM-306",
        level=Level.MEDIUM,
        why=(
            "A node that may delete can take a month of checkpoints with it, by mistake or for ransom; one that may write anywhere can poison the data that "
            "the next run trains on. A bucket's policy in its hands opens the bucket to anybody. Retention is a lifecycle rule of the bucket's owner."
        ),
        fix="Write on the checkpoint prefix only; no delete, no policy.",
        maps=("CKV_AWS_109", "parliament RESOURCE_POLICY_PRIVILEGE_ESCALATION"),
        check=_both(data_aws.node_writes, data_roles.node_writes),
        clouds=(
            "AWS, Google, Azure, Nebius: roles of nodes that delete; AWS and Google also writing beyond what the spec names. "
            "On Azure a condition that shuts deletion counts."
        ),
    ),
    Rule(
        id="SKY-IAM-307",
        level=Level.MEDIUM,
        why=(
            "A right on every key decrypts everything that anybody in the account encrypts. A right on one key without kms:ViaService decrypts any text that "
            "the thief brings along, not only objects that the node may read anyway."
        ),
        fix="Name the key, and require `kms:ViaService`.",
        maps=("prowler iam_policy_no_full_access_to_kms",),
        check=_both(data_aws.keys, data_roles.keys),
        clouds="AWS: both. Google: a cloudkms role above a key. Azure: a Key Vault crypto role above a key.",
    ),
    Rule(
        id="SKY-IAM-308",
        level=Level.CRITICAL,
        why=(
            "What is open to everybody is found within hours: buckets are scanned for. Conditions on who asks (organisation, account, network, source) close "
            "it again and count; one on how it is asked, such as TLS, does not."
        ),
        fix="Name the principals, or require `aws:PrincipalOrgID`.",
        maps=("CKV_GCP_28", "CKV2_AWS_43", "CKV_AWS_283", "TRV GCP-0001", "CKV2_AZURE_47"),
        check=_both(data_aws.public, data_roles.public),
        clouds=(
            "AWS: principal `*` in policies of buckets and keys. Google: allUsers and allAuthenticatedUsers. Nebius: anonymous rules. "
            "Azure: public access is a setting of the account, not a right."
        ),
    ),
    Rule(
        id="SKY-IAM-309",
        level=Level.MEDIUM,
        why=(
            "Names of buckets are the whole world's. If the bucket is deleted and somebody else takes its name, the job reads that one's data, or writes its "
            "checkpoints there. Control identities are asked as anybody is. Of a job's nodes it is asked where their account is known: a target that "
            "names none has no account to demand."
        ),
        fix="Require `aws:ResourceAccount` (or `aws:ResourceOrgID`).",
        check=data_aws.anybodys_bucket,
        clouds="AWS only: on the other clouds a bucket's owner is part of the path, or the name cannot be taken over silently.",
    ),
)
