"""From an API to its message classes. A module of messages is imported when one of its classes is first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message


@cache
def request_class(api: ApiKeys) -> type[Message]:
    """The request of `api`. Raises KeyError for an API that brokers do not answer."""
    return _load(api, "Request")


@cache
def response_class(api: ApiKeys) -> type[Message]:
    """The response of `api`. Raises KeyError for an API that brokers do not answer."""
    return _load(api, "Response")


def _load(api: ApiKeys, kind: str) -> type[Message]:
    if not api.on_broker_listener:
        raise KeyError(f"{api.name} is no API of brokers")
    module = import_module(f"kclient.protocol.messages.{api.name.lower()}")
    found: type[Message] = getattr(module, api.title + kind)
    return found
