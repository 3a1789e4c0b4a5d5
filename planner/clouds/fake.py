"""A cloud in memory, for tests and for trying things out: launches, lists, reclaims and ends machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from planner.clouds.port import RANK_TAG, Instance, Where


@dataclass
class FakeCloud:
    """`machines`: (region, instance) by id.  Implements `Clouds`; every region is one lister."""

    machines: dict[str, tuple[str, Instance]] = field(default_factory=dict[str, tuple[str, Instance]])
    launched: int = 0

    def launch(
        self, region: str, *, rank: str, zone: str, instance_type: str, capacity: str, tags: dict[str, str]
    ) -> str:
        """Start a machine; its id."""
        self.launched += 1
        made = Instance(
            id=f"i-{self.launched:04d}",
            state="running",
            zone=zone,
            instance_type=instance_type,
            capacity=capacity,
            address=f"10.0.0.{self.launched}",
            launched_at=f"{self.launched:06d}",
            tags={**tags, RANK_TAG: rank},
        )
        self.machines[made.id] = (region, made)
        return made.id

    def reclaim(self, instance_id: str) -> None:
        """The cloud takes a machine back."""
        del self.machines[instance_id]

    def lister(self, where: Where) -> FakeLister:
        """See `Clouds`."""
        return FakeLister(self, where.region)


@dataclass
class FakeLister:
    """One region of a FakeCloud."""

    cloud: FakeCloud
    region: str

    def instances(self, *, project: str, job: str | None, generation: int | None = None) -> tuple[Instance, ...]:
        """See `ResourceLister`."""
        wanted = {"skyplan:project": project} | ({"skyplan:job": job} if job is not None else {})
        if generation is not None:
            wanted["skyplan:generation"] = str(generation)
        here = (i for region, i in self.cloud.machines.values() if region == self.region)
        found = [i for i in here if wanted.items() <= i.tags.items()]
        return tuple(sorted(found, key=lambda i: (i.rank, i.launched_at, i.id)))

    def terminate(self, ids: Sequence[str]) -> None:
        """See `ResourceLister`."""
        for one in ids:
            self.cloud.machines.pop(one, None)
