"""How Nebius is asked: one call of its SDK, its errors mapped, lists read page by page until they end, and which project stands for which region.

A project lies in one region and prices are asked for in a project's name, so a region is asked through a project of the caller's tenant that lies there: the
caller's own where it does, else the first by id.  Retries are `Again`'s: the SDK makes none of its own.
"""

# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from planner.clouds import errors_map
from planner.clouds.asked import of_nebius
from planner.clouds.feeds.again import Again
from planner.model.errors import CloudError

T = TypeVar("T")
PAGE = 100
MOST_PAGES = 1000
"""A list that goes on for longer has no end."""


class Once(Generic[T]):
    """What is one answer for all regions: asked for when it is first needed, and not again where it failed."""

    def __init__(self, ask: Callable[[], T]) -> None:
        self._ask = ask
        self._answer: list[T] = []
        self._error: CloudError | None = None

    def get(self) -> T:
        """The answer.  Raises CloudError, the same one each time."""
        if self._error is not None:
            raise self._error
        if not self._answer:
            try:
                self._answer.append(self._ask())
            except CloudError as error:
                self._error = error
                raise
        return self._answer[0]


class Tenant:
    """The caller's tenant, as seen from the caller's project."""

    def __init__(self, sdk: Any, account: str, again: Again, seconds: float) -> None:
        self.sdk = sdk
        self._account = account
        self._again = again
        self._limits: dict[str, Any] = {"retries": 1, "timeout": seconds}  # one attempt in all
        self._home = Once(self._own)
        self._projects = Once(self._all)

    @property
    def id(self) -> str:
        """The tenant's.  Raises CloudError."""
        return self._home.get().metadata.parent_id

    def project(self, region: str) -> str:
        """One that lies in the region.  Raises CloudError, also where there is none."""
        home = self._home.get()
        if home.spec.region == region:
            return home.metadata.id
        found = sorted(one.metadata.id for one in self._projects.get() if one.spec.region == region)
        if not found:
            raise errors_map.unexpected("Nebius", "projects", f"none of the tenant's lies in {region}")
        return found[0]

    def one(self, operation: str, call: Callable[..., Any], asked: Any) -> Any:
        """The answer to one question.  Raises CloudError."""
        return self._again.ask(lambda: of_nebius(operation, lambda: call(asked, **self._limits).wait()))

    def pages(self, operation: str, call: Callable[..., Any], question: Callable[..., Any], **asked: Any) -> list[Any]:
        """All items of a list.  Raises CloudError."""
        found: list[Any] = []
        token, tokens = "", set[str]()
        while True:
            page = self.one(operation, call, question(page_size=PAGE, page_token=token, **asked))
            found += page.items
            token = page.next_page_token
            if not token:
                return found
            if token in tokens or len(tokens) >= MOST_PAGES:
                raise errors_map.unexpected("Nebius", operation, "its pages have no end")
            tokens.add(token)

    def _own(self) -> Any:
        from nebius.api.nebius.iam.v2 import GetProjectRequest, ProjectServiceClient  # noqa: PLC0415 - slow

        return self.one("projects.get", ProjectServiceClient(self.sdk).get, GetProjectRequest(id=self._account))

    def _all(self) -> list[Any]:
        from nebius.api.nebius.iam.v2 import ListProjectsRequest, ProjectServiceClient  # noqa: PLC0415 - slow

        list_all = ProjectServiceClient(self.sdk).list
        return self.pages("projects.list", list_all, ListProjectsRequest, parent_id=self.id)
