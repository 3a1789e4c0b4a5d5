"""What the packaged catalog holds: GPU models with their spellings, instance types with what tells them apart, sources with dates.

Decides columns.  Shows the files as they are: an empty cell there is "unknown" here, never zero.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Final

from site_markdown import cell, page, table

import catalog

FOLDER: Final = Path(next(iter(catalog.__path__)))
CLOUDS: Final = {"aws": "AWS", "gcp": "GCP", "azure": "Azure", "nebius": "Nebius"}
DATED: Final = "A dated snapshot, not a live price list: [what is in it and what is doubtful](catalog-sources.md)."


def pages() -> dict[str, str]:
    """Path under the docs folder -> text."""
    return {
        "reference/gpus.md": _gpus(),
        "reference/instance-types.md": _types(),
        "reference/catalog-sources.md": _sources(),
    }


def _rows(name: str) -> list[dict[str, str]]:
    with (FOLDER / "data" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _gpus() -> str:
    spellings: dict[str, list[str]] = {}
    several = []
    for row in _rows("aliases.csv"):
        models = row["gpus"].split()
        if len(models) > 1:
            several.append((f"`{row['spelling']}`", ", ".join(f"`{m}`" for m in models)))
        elif row["spelling"] != models[0]:
            spellings.setdefault(models[0], []).append(f"`{row['spelling']}`")
    sold: dict[str, set[str]] = {}
    for row in _rows("instance_types.csv"):
        sold.setdefault(row["gpu"], set()).add(CLOUDS[row["cloud"]])
    rows = [
        (
            f"`{g['gpu']}`",
            g["class"],
            f"{g['memory_gib']} GiB",
            g["tflops_dense"],
            g["memory_gb_per_s"],
            g["speed"],
            ", ".join(sorted(sold.get(g["gpu"], ()))),
            f"{cell(g['source'])}, {g['as_of']}",
        )
        for g in _rows("gpus.csv")
    ]
    heads = ("model", "class", "memory", "dense TFLOPS", "GB/s", "speed", "sold by", "source")
    return page(
        "GPU models",
        DATED,
        "",
        "`speed` is relative to one A100-80GB, an estimate from datasheets ([decision 0005](../decisions/0005-cost-model.md)). A model is written by its name or by one of its spellings, in any case, with or without `-`.",
        "",
        *table(heads, rows),
        "## Also written",
        "",
        *table(("model", "spellings"), [(f"`{gpu}`", ", ".join(found)) for gpu, found in sorted(spellings.items())]),
        "## Spellings that may mean several",
        "",
        "They are refused with the choices (`SKY-SPEC-107`); which part is meant is never guessed.",
        "",
        *table(("spelling", "may mean"), several),
        wide=True,
    )


def _types() -> str:
    prices: dict[tuple[str, str], set[str]] = {}
    for row in _rows("prices.csv"):
        prices.setdefault((row["cloud"], row["instance_type"]), set()).add(row["region"])
    lines = [
        DATED,
        "",
        "`skyplan catalog show TYPE` has everything that is known of one, `skyplan offers H100:8` what it costs where. An empty cell is not known, and never counts as zero.",
        "",
    ]
    heads = (
        "instance type",
        "GPUs",
        "per GPU",
        "vCPU",
        "RAM GiB",
        "NVMe GB",
        "Gbit/s",
        "between GPUs",
        "between nodes",
        "sold on demand",
        "regions with a price",
    )
    types = _rows("instance_types.csv")
    for cloud, name in CLOUDS.items():
        rows = [
            (
                f"`{t['instance_type']}`",
                f"{t['gpu_count']} x {t['gpu']}",
                f"{float(t['gpu_memory_gib']):g} GiB",
                t["vcpus"],
                f"{float(t['ram_gib']):g}",
                t["nvme_gb"],
                t["network_gbps"],
                cell(t["link_note"] or t["link"]),
                cell(t["fabric_note"] or t["fabric"]),
                t["od_sold"],
                len(prices.get((cloud, t["instance_type"]), ())),
            )
            for t in types
            if t["cloud"] == cloud
        ]
        lines += [f"## {name}", "", *table(heads, rows)]
    return page("Instance types", *lines, wide=True)


def _sources() -> str:
    text = (FOLDER / "SOURCES.md").read_text(encoding="utf-8")
    title, _, rest = text.partition("\n")
    return page(title.removeprefix("# "), rest)
