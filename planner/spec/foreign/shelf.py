"""The catalog's words for what other tools call by names of their own: GPU models, machine types, clouds, regions.

Decides what a foreign name means here, and says precisely why it means nothing.  Never takes a smaller memory for a larger one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from planner.model.offer import Cloud
from planner.spec.gpus import models_of, near_names

if TYPE_CHECKING:
    from planner.model.market import Market
    from planner.model.words import Words

CLOUDS: Final = tuple(cloud.value for cloud in Cloud)
#: memory as a card is sold with, in GB, where the catalog counts what is usable
_SOLD: Final = {"A10G": 24.0, "B200": 192.0, "B300": 288.0}
_AMD: Final = ("MI",)
#: what each is, for those that no catalog of GPUs can have
_OTHER_CHIPS: Final = (
    (re.compile(r"tpu|v[2-6][ep]?-\d|v5lite", re.IGNORECASE), "is a TPU: skyplan plans for GPUs only"),
    (
        re.compile(r"inferentia|trainium|neuron|trn|inf\d", re.IGNORECASE),
        "is an AWS Neuron chip: skyplan plans for GPUs only",
    ),
    (re.compile(r"gaudi|habana", re.IGNORECASE), "is an Intel Gaudi chip: skyplan plans for GPUs only"),
    (
        re.compile(r"wormhole|n150|n300|tenstorrent", re.IGNORECASE),
        "is a Tenstorrent chip: skyplan plans for GPUs only",
    ),
)
#: models that stand for hardware when a file names a memory only, in the order they are taken
_USUAL: Final = ("T4", "L4", "A10G", "L40S", "A100", "A100-80GB", "H100", "H200", "B200", "B300")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type of the catalog."""

    cloud: str
    gpu: str
    count: int
    arm: bool = False


@dataclass(frozen=True, slots=True)
class Shelf:
    """The catalog's words, and its machine types by name."""

    words: Words
    machines: dict[str, Machine] = field(default_factory=dict[str, Machine])

    def models(self, name: str) -> tuple[str, ...]:
        """The catalog's models of that name; several where it is ambiguous."""
        return models_of(name, self.words)

    def family(self, name: str) -> tuple[str, ...]:
        """Every model of that name whatever its memory or slot: `A100` is all A100s."""
        found = set(self.models(name))
        kin = [re.compile(rf"{re.escape(one)}(-\d+GB)?(-PCIe)?") for one in found]
        return tuple(sorted(found | {gpu for gpu in self.words.gpus if any(one.fullmatch(gpu) for one in kin)}))

    def sold_gb(self, model: str) -> float:
        """Memory per GPU as vendors count it."""
        return _SOLD.get(model, self.words.gpus[model])

    def amd(self, model: str) -> bool:
        """It runs ROCm, not CUDA."""
        return model.startswith(_AMD)

    def counts(self, models: tuple[str, ...]) -> tuple[int, ...]:
        """How many GPUs machines with such models have."""
        return tuple(sorted({m.count for m in self.machines.values() if m.gpu in models}))

    def x86(self, model: str) -> bool:
        """Some machine with it runs x86 programs, or nothing is known of its machines."""
        of = [m for m in self.machines.values() if m.gpu == model]
        return not of or any(not m.arm for m in of)

    def usual(self, least_gb: float) -> str | None:
        """A well-known model with that much memory."""
        known = [m for m in _USUAL if m in self.words.gpus] or sorted(self.words.gpus, key=lambda m: self.words.gpus[m])
        return next((m for m in known if self.words.gpus[m] >= least_gb), None)

    def best_known(self, written: list[str]) -> str:
        """Of accelerators such as `L4:1`, the one whose time users know best: a usual model, the least of them."""
        usual = [one for model in _USUAL for one in written if one.rpartition(":")[0] == model]
        return (usual or written)[0]

    def why_not(self, name: str) -> str:
        """Why a GPU's name means nothing here."""
        for pattern, why in _OTHER_CHIPS:
            if pattern.search(name):
                return why
        close = near_names(name, self.words)
        return "is sold by none of the clouds in the catalog" + (f" (close: {', '.join(close)})" if close else "")


def shelf_of(market: Market, words: Words) -> Shelf:
    """Of a market."""
    machines = {t.name: Machine(t.cloud.value, t.gpu, t.gpu_count, arm="arm" in t.arch) for t in market.types}
    return Shelf(words, machines)


def region_of_zone(zone: str, shelf: Shelf) -> tuple[str, str] | None:
    """(cloud, region) of a zone such as us-east-1a or us-central1-a."""
    for cloud in CLOUDS:
        for region in shelf.words.regions.get(cloud, ()):
            if re.fullmatch(rf"{re.escape(region)}(-?[a-z]|-\d)", zone):
                return cloud, region
    return None
