"""Notes on prices and the catalog: figures that are doubted, old or missing."""

from __future__ import annotations

from planner.model.notes import Note

_CHECK = "catalog check, and every command with --catalog"
_CAVEAT = "plan, offers, explain, report: as a caveat of a placement"
_FEED = "prices refresh, watch, replan"
_PAST = "prices import, prices refresh"

NOTES: dict[str, Note] = {
    "SKY-CAT-101": Note(
        _CHECK + ", prices snapshot",
        "A file of the catalog lacks a column, a number, or is not there. No price is taken from a catalog that is half read.",
        "Correct the line named, or leave --catalog away to use the packaged snapshot.",
        "market/prices.csv:12: `usd_per_hour` is no number: `n/a`",
    ),
    "SKY-CAT-102": Note(
        _CHECK,
        "Nothing costs zero or less: the source had no price, and wrote one. The offer counts as unknown and is rejected (SKY-REJ-213).",
        "Nothing is to be done, unless you know the price: then put it into `prices` of skyplan.yaml.",
        "aws us-east-1 p5.48xlarge spot: 0",
    ),
    "SKY-CAT-103": Note(
        _CHECK,
        "The price is far outside what GPUs of its class cost anywhere: probably of another unit or product. The offer is rejected.",
        "Compare with the cloud's own page; a right price goes into `prices` of skyplan.yaml.",
        "gcp us-east4 a3-highgpu-8g: $3.02 per hour for 8 H100",
    ),
    "SKY-CAT-104": Note(
        _CHECK,
        "Spot at on-demand's price or above is a price list's way to say that none is for sale, or a stale row.",
        "Nothing is to be done; on-demand is the better offer there in any case.",
        "azure westeurope Standard_NC24ads_A100_v4 spot: $3.67, on-demand $3.67",
    ),
    "SKY-CAT-105": Note(
        _CHECK,
        "Real prices differ between continents. A price that is the same everywhere was probably taken from a default.",
        "Compare two regions with the cloud's own page.",
        "nebius gpu-h100-sxm: one price in 6 regions",
    ),
    "SKY-CAT-106": Note(
        _CHECK,
        "The row's GPU name and its memory contradict each other, so one of them is wrong; jobs are matched by both.",
        "Correct the row in your catalog.",
        "types.csv:40: A100-80GB has 80 GiB, the row says 40",
    ),
    "SKY-CAT-107": Note(
        _CHECK,
        "Two rows have one key: which price holds cannot be told.",
        "Remove one.",
        "prices.csv:88: us-east-1 use1-az1 p5.48xlarge spot stands in line 31 already",
    ),
    "SKY-CAT-108": Note(
        _CAVEAT + "; plan, as a reason for rejection",
        "The zone is one that an account must switch on first, such as AWS' local zones.",
        "Switch it on in the account, then list it under `opt_in_zones` of the target.",
        "aws us-west-2-lax-1a needs opting in",
    ),
    "SKY-CAT-109": Note(
        "plan, offers, explain, catalog check",
        "Prices move: on-demand a few times a year, spot within hours. This one is older than its kind may be.",
        "`skyplan prices refresh` observes them now; else check the price before buying.",
        "the newest price is 66 days old (2026-09-25); check before buying",
    ),
    "SKY-CAT-110": Note(
        _CHECK + ", replan, watch",
        "A row names a GPU, a type or a region that no other file of the catalog has; it is not offered.",
        "Add the missing row, or correct the name.",
        "types.csv:17: GPU `H100-PCIE` is not in gpus.csv",
    ),
    "SKY-CAT-111": Note(
        _CHECK,
        "Two sources tell different prices of the same thing. The dearer one counts, so that no plan is too cheap.",
        "See which is right; `prices` in skyplan.yaml settles it for you.",
        "aws us-east-1 p4d.24xlarge: $21.96 (pricing API), $32.77 (snapshot)",
    ),
    "SKY-CAT-112": Note(
        _CAVEAT + "; plan, as a reason for rejection",
        "The price list has an on-demand price, and the cloud sells the type by spot or reservation alone.",
        "Allow `spot`, or name your reservation under the target's `reserved`.",
        "aws p6-b200.48xlarge is sold in capacity blocks only",
    ),
    "SKY-CAT-113": Note(
        _CAVEAT,
        "Some clouds price a region and do not tell which of its zones has the type. The launch may find that this one has none.",
        "Nothing is to be done: the next ranked placement is tried. `skyplan prices refresh` asks where it can be asked.",
        "the price is known for the region only",
    ),
    "SKY-CAT-114": Note(
        _CAVEAT,
        "The figure is computed from others or from a source nobody confirmed: a latency, a tariff, a memory size.",
        "Look at the source that the caveat names before relying on a difference that is smaller than the doubt.",
        "2.9 ms there and back between aws us-east-1 and gcp us-east4 is an estimate",
    ),
    "SKY-CAT-115": Note(
        _FEED,
        "One region's answer did not come or was refused; all the others were kept.",
        "Read its message (a permission, a region that is switched off, a timeout) and run it again.",
        "aws ap-east-1: AuthFailure: not able to validate the provided access credentials",
    ),
    "SKY-CAT-116": Note(
        _FEED,
        "A row of a feed contradicts itself or another; a wrong price is worse than none, so it was left out.",
        "Nothing is to be done unless it happens with every row: then the cloud changed its form; tell us.",
        "two prices at one moment; the first stands",
    ),
    "SKY-CAT-117": Note(
        _PAST + ", doctor",
        "An observation is later than this machine's clock: either is wrong. It is not kept, since what was known when must stay true.",
        "Set this machine's clock by NTP; then import again.",
        "2026-12-01T00:00:00Z is later than this machine's clock",
    ),
    "SKY-CAT-118": Note(
        "prices import",
        "A row cannot be read. Every bad row of every file is named, and nothing is written until there is none.",
        "Correct the line, or give the file in one of the forms of docs/prices.md.",
        "spot.csv:2: the first row is of no known history of prices",
    ),
    "SKY-CAT-119": Note(
        _PAST,
        "The price is not in USD per hour and nothing says how to make it so. No rate of exchange is guessed.",
        "Nothing is to be done; the row was left out.",
        "EUR per GiB-month",
    ),
}
