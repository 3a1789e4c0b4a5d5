"""What must hold of the stacks of every placement that the planner calls feasible, whatever the job: drawn from the packaged catalog."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from planner.app import inputs, plan, synth
from planner.model.offer import CapacityType, Cloud
from planner.model.project import Project, Target
from planner.model.stack import rank_key
from planner.model.workload import Constraints, GpuOption, Resources, SecretRef, Work, Workload
from tests.stacks import cases, checker, golden_jobs, nebius_inputs, rules
from tests.stacks.cases import Rendered
from tests.stacks.rules.common import NODES, of_type, walk

GPUS = {cloud: sorted({t.gpu for t in golden_jobs.market().types if t.cloud is cloud}) for cloud in Cloud}
COUNTS = [1, 1, 2, 4, 8]
#: what a job file and skyplan.yaml take
names = st.from_regex(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", fullmatch=True)
keys = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 _.:/=+@-]{0,40}", fullmatch=True).filter(
    lambda key: not key.lower().startswith(("skyplan:", "aws:", "goog-", "azure", "microsoft", "windows"))
)
values = st.text(max_size=256).filter(str.isprintable)
tags = st.dictionaries(keys, values, max_size=5).map(lambda found: tuple(found.items()))


@st.composite
def jobs(draw: st.DrawFn) -> tuple[Cloud, Workload, Project]:
    cloud = draw(st.sampled_from(list(Cloud)))
    count, nodes = draw(st.sampled_from(COUNTS)), draw(st.sampled_from([1, 1, 2, 3, 64]))
    gpu = draw(st.sampled_from(GPUS[cloud]))
    capacity = draw(st.sampled_from([CapacityType.ON_DEMAND, CapacityType.SPOT]))
    template = replace(cases.single(cloud), gpu_count=count, nodes=nodes)
    _, _, _, store, path = cases.PLACES[cloud]
    secret = SecretRef(env="HF_TOKEN", store=store, path=path)
    job = replace(
        cases.workload(cloud, template),
        name=draw(names),
        resources=Resources(accelerators=(GpuOption(count=count, model=gpu),), nodes=nodes, capacity=(capacity,)),
        work=Work(hours=24, model=gpu, count=count, nodes=nodes),
        secrets=(secret,) if cloud is not Cloud.NEBIUS and draw(st.booleans()) else (),
        session=cloud in cases.WITH_SESSION and draw(st.booleans()),
        constraints=Constraints(stop_after_hours=draw(st.sampled_from([None, 0.5, 36.0]))),
        tags=draw(tags),
    )
    key = cases.KEYS.get(cloud) if draw(st.booleans()) else None
    target = Target(
        name=draw(names),
        cloud=cloud,
        account=cases.ACCOUNTS[cloud],
        kms_key_arn=key,
        tenant=nebius_inputs.TENANT if cloud in {Cloud.AZURE, Cloud.NEBIUS} else None,
    )
    project = Project(
        name=draw(names), targets=(target,), default_targets=False, tags=draw(tags), pool_cap_nodes=10_000
    )
    return cloud, job, project


def placed(job: Workload, project: Project, which: int) -> cases.Case | None:
    """The stacks of one of the ranked placements; None where nothing is feasible."""
    read = inputs.Inputs(
        jobs=(inputs.Job(workload=job, file="job.yaml"),),
        project=project,
        project_file=None,
        market=golden_jobs.market(),
        warnings=(),
    )
    request = plan.Request(job_files=(), offline=True, as_of=golden_jobs.AS_OF)
    (planned,) = plan.run_on(read, request, golden_jobs.NOW).planned
    ranked = planned.plan.ranked
    if not ranked:
        return None
    chosen = ranked[which % len(ranked)]
    one = replace(planned.plan, ranked=(chosen, *(p for p in ranked if p is not chosen)))
    network, access, compute = synth.inputs_of(one, job, project, read.market, 1)
    return cases.Case(name="drawn", network=network, access=access, compute=compute)  # pyright: ignore[reportArgumentType]


def strings_of(document: dict[str, Any]) -> list[tuple[str, str]]:
    return [(".".join(path), value) for path, value in walk(document.get("resource", {})) if isinstance(value, str)]


@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(drawn=jobs(), which=st.integers(0, 19))
def test_any_feasible_placement_synthesises_and_keeps_the_contract(render, drawn, which):
    cloud, job, project = drawn
    case = placed(job, project, which)
    assume(case is not None)
    assert case is not None
    net, acc, cmp = (render(one) for one in case.inputs)
    rendered = Rendered(case=case, net=net, acc=acc, cmp=cmp)
    for stack, document in rendered.documents.items():
        assert checker.problems(document) == [], stack
    # tags, rights, nothing open, capacity, ends: every rule, on what nobody wrote by hand
    assert rules.violations(rendered) == []
    # and two of them again in plainer words
    for document in rendered.documents.values():
        for path, value in [*strings_of(document), *strings_of({"resource": document.get("data", {})})]:
            if re.search(r"principal|member\b|identifiers|identity", path):
                assert value not in {"*", "allUsers", "allAuthenticatedUsers"}, path
            if re.search(r"ingress|firewall.*source_ranges|source_cidrs|source_address_prefix", path):
                # GCP's one rule that refuses: `rules` holds it to that
                assert value != "0.0.0.0/0" or path.startswith("google_compute_firewall.rest-inbound."), path
    made = of_type(cmp, NODES[cloud][0])
    assert list(made) == ["node"]
    assert list(made["node"]["for_each"]) == [rank_key(rank) for rank in range(job.resources.nodes)]


@pytest.mark.parametrize("cloud", Cloud)
def test_64_nodes_are_one_resource_and_stacks_hardly_grow(render, cloud):
    fabric, template = next(iter(cases.fabrics(cloud).items()))
    sizes: dict[int, int] = {}
    for nodes in (2, 64):
        addresses = tuple(f"10.0.1.{rank + 10}" for rank in range(nodes))
        case = cases.case("many", cloud, replace(template, nodes=nodes, addresses=addresses), CapacityType.SPOT)
        net, acc, cmp = (render(one) for one in case.inputs)
        assert rules.violations(Rendered(case=case, net=net, acc=acc, cmp=cmp)) == [], fabric
        assert list(of_type(cmp, NODES[cloud][0])) == ["node"]
        assert len(checker.resources(cmp)) <= 4
        sizes[nodes] = len(json.dumps([acc, cmp]))
    assert sizes[64] < sizes[2] + 64 * 120


def test_what_is_drawn_is_feasible_often_enough_on_every_cloud():
    """The property above says nothing where nothing is feasible: the plainest job is, everywhere."""
    for cloud in Cloud:
        for capacity in (CapacityType.ON_DEMAND, CapacityType.SPOT):
            job = cases.workload(cloud, cases.single(cloud), secrets=())
            gpus = (GpuOption(count=1, model=golden_jobs.ONE[cloud]),)
            job = replace(job, resources=Resources(accelerators=gpus, capacity=(capacity,)))
            target = Target(name="prod", cloud=cloud, account=cases.ACCOUNTS[cloud])
            assert placed(job, Project(name="acme", targets=(target,), default_targets=False), 3) is not None
