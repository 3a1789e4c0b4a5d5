"""What is counted, in Prometheus' text form.  No job's, node's or person's name is a label: their number has no bound, and they are nobody else's business."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
_SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """One application's counters, in a registry of their own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter("skyplan_requests", "Requests answered.", ("route", "status"), registry=self._registry)
        self._seconds = Histogram(
            "skyplan_request_seconds",
            "Time to the answer, by route.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._refused = Counter("skyplan_refusals", "Requests refused, by word.", ("word",), registry=self._registry)
        self.items = Counter("skyplan_report_items", "Items of reports taken.", registry=self._registry)
        self.batch = Histogram(
            "skyplan_commit_reports", "Reports committed together.", buckets=_SIZES, registry=self._registry
        )
        self.commit_seconds = Histogram(
            "skyplan_commit_seconds", "Time of one commit.", buckets=_SECONDS, registry=self._registry
        )
        self.waiting = Gauge("skyplan_waiting_bytes", "Reports that wait for their commit.", registry=self._registry)
        self.skewed = Counter(
            "skyplan_skewed_joins", "Nodes whose clock is minutes off when they join.", registry=self._registry
        )
        self._children: dict[tuple[str, int], Counter] = {}
        self._timers: dict[str, Histogram] = {}

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count one request."""
        counter = self._children.get((route, status))
        if counter is None:
            counter = self._children[route, status] = self._requests.labels(route, str(status))
        counter.inc()
        timer = self._timers.get(route)
        if timer is None:
            timer = self._timers[route] = self._seconds.labels(route)
        timer.observe(seconds)

    def refused(self, word: str) -> None:
        """Count a refusal."""
        self._refused.labels(word).inc()

    def text(self) -> bytes:
        """All of it."""
        return generate_latest(self._registry)
