"""Plans as planning really makes them: the broker knows the job's nodes, and becomes what the job's own access stack makes for its data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.app import inputs, plan, synth
from planner.app.mint import Asking, Broker
from planner.app.mint_keys import BoundKeys
from planner.app.mint_nodes import NodeNames
from planner.app.mint_plans import ApprovedPlans
from planner.app.mint_rules import Wanted
from planner.clouds.mint.fake import FakeMinters
from planner.model.offer import Cloud
from planner.model.runtime import NodeIdentity, Seat
from planner.model.server import KnownPrincipal
from planner.model.stack import AccessInput
from tests.stacks import golden_jobs
from tests.unit.server.broker.bed import KEY, NOW, Ledger, write

JOBS = [
    pytest.param(job, marks=pytest.mark.xdist_group(f"golden-jobs-{job.cloud.value}"), id=str(job))
    for job in golden_jobs.every()
    if job.name in {"broker", "broker-elsewhere"}
]


def node(cloud: Cloud, account: str, access: AccessInput) -> NodeIdentity:
    """As the stack's modules name it."""
    from modules.azure.names import resource_name
    from modules.gcp.names import account_id
    from modules.text import fit

    network = access.name.partition("--")[2]
    group = access.resource_group or resource_name("acme", f"net-{network}", limit=90)
    managed = (
        f"/subscriptions/{account}/resourceGroups/{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    )
    principal = {
        Cloud.AWS: f"arn:aws:iam::{account}:role/{fit(f'skyplan-{access.project}-{access.name}', 64)}",
        Cloud.GCP: f"{account_id(access.project, access.name, access.workload.name)}@{account}.iam.gserviceaccount.com",
        Cloud.AZURE: f"{managed}/{resource_name(access.project, access.name, limit=128)}",
        Cloud.NEBIUS: "serviceaccount-e00node",
    }[cloud]
    scheme = {Cloud.AWS: "aws-sts"}.get(cloud, f"{cloud.value}-jwt")
    return NodeIdentity(scheme=scheme, cloud=cloud.value, account=account, principal=principal)


@pytest.mark.parametrize("job", JOBS)
def test_the_broker_becomes_what_the_access_stack_makes(tmp_path, job):
    read = inputs.Inputs(
        jobs=(inputs.Job(workload=job.workload, file="job.yaml"),),
        project=job.project,
        project_file=None,
        market=golden_jobs.market(),
        warnings=(),
    )
    request = plan.Request(job_files=(), offline=True, as_of=golden_jobs.AS_OF)
    (planned,) = plan.run_on(read, request, golden_jobs.NOW).planned
    made = planned.plan
    write(tmp_path, made)
    _, access, _ = synth.inputs_of(made, job.workload, job.project, read.market, 1)
    assert isinstance(access, AccessInput)
    best = made.ranked[0]
    seat = Seat(job=made.name, generation=2, rank=0)
    ledger, minters = Ledger(digest=made.digest), FakeMinters()
    ledger.machines[seat], ledger.keys[seat] = "", KEY
    known = (KnownPrincipal(job=made.name, target=best.target, principal="serviceaccount-e00node"),)
    broker = Broker(
        project=job.project.name,
        plans=ApprovedPlans(folder=tmp_path, tell=pytest.fail),
        nodes=NodeNames(project=job.project, principals=known if job.cloud is Cloud.NEBIUS else ()),
        ledger=ledger,
        minters=minters,
        keys=BoundKeys(),
    )
    account = next(t.account for t in job.project.targets if (t.cloud, t.name) == (job.cloud, best.target))
    who = node(job.cloud, account or "", access)
    minted = [path for path in made.access[f"{best.cloud}:{best.target}"] if path.minted]
    assert minted, "the golden job has something for the broker to do"
    stacks = {(one.cloud, one.account): one.name for one in access.data_identities}
    for path in minted:
        wanted = Wanted(seat=seat, uri=path.uri, access="write" if path.write else "read")
        lease = broker.lease(Asking(wanted=wanted, who=who, key_sha256=KEY, proof_sha256="p"), NOW)
        order = minters.one.orders[-1]
        store = Cloud({"s3": "aws", "gs": "gcp", "az": "azure", "nebius": "nebius"}[lease.issue.store])
        # on Azure nothing is become, the broker signs for the account
        name = "" if store is Cloud.AZURE else stacks[store, order.account]
        assert name in order.identity
        assert order.identity.partition("@")[0].rpartition("/")[2] == (name or order.scope.bucket.partition("/")[0])
        assert bool(order.scope.writes) == path.write
    other = replace(who, principal=who.principal + "x")
    assert broker.nodes.piece(made, other) is None
