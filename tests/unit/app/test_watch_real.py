"""What a watch asks the clouds for: no more than its jobs could use."""

from __future__ import annotations

from datetime import UTC, datetime

from planner.app.watch_real import Place, asked_for
from planner.model.project import Project, default_targets
from planner.model.workload import Constraints

NOW = datetime(2026, 11, 30, tzinfo=UTC)
PROJECT = Project(name="acme", targets=default_targets())


def place(*, clouds: tuple[str, ...] = (), regions: tuple[str, ...] = ()) -> Place:
    return Place(cloud="aws", region="us-east-1", allows=Constraints(clouds=clouds, regions=regions))


def test_nothing_is_asked_where_nothing_runs() -> None:
    assert asked_for([], PROJECT, NOW) is None


def test_a_job_that_may_go_anywhere_has_everything_asked_for() -> None:
    asked = asked_for([place(clouds=("gcp",), regions=("us-*",)), place()], PROJECT, NOW)
    assert asked is not None
    assert (asked.clouds, asked.regions, asked.now) == ((), (), NOW)


def test_what_jobs_may_use_and_where_they_run_is_asked_for() -> None:
    asked = asked_for(
        [place(clouds=("gcp",), regions=("us-*",)), place(clouds=("aws",), regions=("eu-*",))], PROJECT, NOW
    )
    assert asked is not None
    assert (asked.clouds, asked.regions) == (("aws", "gcp"), ("eu-*", "us-*", "us-east-1"))


def test_of_a_job_without_a_plan_only_where_it_runs() -> None:
    asked = asked_for([Place(cloud="aws", region="us-east-1", allows=None)], PROJECT, NOW)
    assert asked is not None
    assert (asked.clouds, asked.regions) == (("aws",), ("us-east-1",))
