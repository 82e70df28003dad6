"""From an API to its message classes. A module of messages is imported when one of its classes is first asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.schema import Message

_MODULE_OF_DATA = {
    "AbortedTxn": "control_records",
    "ConsumerProtocolAssignment": "consumer_protocol",
    "ConsumerProtocolSubscription": "consumer_protocol",
    "ControlRecordTypeSchema": "control_records",
    "DefaultPrincipalData": "control_records",
    "EndTxnMarker": "control_records",
    "GroupMetadataKey": "group_records",
    "GroupMetadataValue": "group_records",
    "KRaftVersionRecord": "control_records",
    "LeaderChangeMessage": "control_records",
    "OffsetCommitKey": "group_records",
    "OffsetCommitValue": "group_records",
    "ProducerSnapshot": "producer_snapshot",
    "RequestHeader": "headers",
    "ResponseHeader": "headers",
    "SnapshotFooterRecord": "control_records",
    "SnapshotHeaderRecord": "control_records",
    "VotersRecord": "control_records",
}


@cache
def request_class(api: ApiKeys) -> type[Message]:
    """The request of `api`. Raises KeyError for an API that brokers do not answer."""
    return _load(api, "Request")


@cache
def response_class(api: ApiKeys) -> type[Message]:
    """The response of `api`. Raises KeyError for an API that brokers do not answer."""
    return _load(api, "Response")


def message_class(name: str) -> type[Message]:
    """The message of this name in Kafka's schema, such as `FetchRequest` or `EndTxnMarker`; KeyError if none."""
    if name in _MODULE_OF_DATA:
        return _find(_MODULE_OF_DATA[name], name)
    for kind, load in (("Request", request_class), ("Response", response_class)):
        if name.endswith(kind):
            api = _BY_TITLE[name.removesuffix(kind)]
            return load(api)
    raise KeyError(name)


_BY_TITLE = {api.title: api for api in ApiKeys}


def _load(api: ApiKeys, kind: str) -> type[Message]:
    if not api.on_broker_listener:
        raise KeyError(f"{api.name} is no API of brokers")
    return _find(api.name.lower(), api.title + kind)


def _find(module: str, name: str) -> type[Message]:
    found: type[Message] = getattr(import_module(f"kclient.protocol.messages.{module}"), name)
    return found
