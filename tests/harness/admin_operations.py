"""Operations of the admin client as generators, whose requests a test answers by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.driver import Target
from kclient.protocol.api_keys import ApiKeys


class Asked:
    """One call, noted instead of sent."""

    def __init__(
        self, api_key: ApiKeys, message: Any, target: Target | None, retry: Any, options: dict[str, Any]
    ) -> None:
        self.api_key, self.message, self.target, self.retry = api_key, message, target, retry
        self.options = options


class Context:
    """Notes calls; what it returns in place of futures is yielded by the operation."""

    def call(
        self,
        api_key: ApiKeys,
        message: Any,
        target: Target | None = None,
        retry_on: Any = None,
        **options: Any,
    ) -> Any:
        return Asked(api_key, message, target, retry_on, options)

    def coordinator(self, target: Target) -> Any:
        return Asked(ApiKeys.FIND_COORDINATOR, None, target, None, {})


CONTEXT = cast(OperationContext, Context())


def drive(operation: Any, answer: Callable[[Asked], Any]) -> Any:
    """Answer every call of an operation."""
    try:
        asked = next(operation)
        while True:
            asked = operation.send([answer(each) for each in asked])
    except StopIteration as end:
        return end.value
