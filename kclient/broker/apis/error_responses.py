"""Answers that tell one error for all that a request asks for, made from the declarations of request and response.

They say what `getErrorResponse` of Kafka's requests says; `tests/kafka/test_error_responses.py` holds them against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.registry import response_class
from kclient.protocol.schema import Field, Message, Structure
from kclient.protocol.wire import Array, WireType

_NAMES: Mapping[str, str] = {
    name: name
    for name in (
        "name", "topic", "topic_id", "index", "partition", "partition_index", "group_id", "resource_type",
        "resource_name", "entity", "entity_type", "entity_name", "session_id", "key",
    )
}  # fmt: skip
"""Fields by which a client knows again what it asked for, with their names in requests."""
_RENAMED: Mapping[ApiKeys, Mapping[str, str]] = {
    ApiKeys.ALTER_USER_SCRAM_CREDENTIALS: {"user": "name"},
    ApiKeys.FETCH: {"partition_index": "partition"},
}

_ASKED: Mapping[ApiKeys, tuple[str, ...]] = {
    ApiKeys.ALTER_USER_SCRAM_CREDENTIALS: ("deletions", "upsertions"),
    ApiKeys.DESCRIBE_LOG_DIRS: (),  # asks for topics, and is answered by directories
}
"""The arrays of requests whose entries are answered one by one, where they are not simply the first."""

_UNKNOWN: Mapping[str, Any] = {
    "base_offset": -1, "committed_offset": -1, "entries": None, "high_watermark": -1, "low_watermark": -1,
    "node_id": -1, "port": -1, "producer_epoch": -1, "producer_id": -1, "protocol_name": None, "records": b"",
}  # fmt: skip
"""Values that stand for none in fields whose default is another one; null where the version can say it."""


def error_response(request: Any, version: int, error: BaseException) -> Message | None:
    """Return the answer that tells `error` for all of `request`; None if its sender expects no answer.

    The text of an error that is not Kafka's stays in the log: it may have what is no client's business.
    """
    api = request.API_KEY
    if api is ApiKeys.PRODUCE and request.acks == 0:
        return None
    return _ErrorResponse(api, version, error).to(request)


class _ErrorResponse:
    def __init__(self, api: ApiKeys, version: int, error: BaseException) -> None:
        self._api = api
        self._version = version
        self._code = Errors.code_for(error)
        self._text = None if self._code == Errors.UNKNOWN_SERVER_ERROR else str(error)
        self._renamed = {**_NAMES, **_RENAMED.get(api, {})}

    def to(self, request: Structure) -> Message:
        response = response_class(self._api)()
        told = self._fill(response, request)
        if not told or self._is_told_twice():
            self._tell_entries(response, request, _ASKED.get(self._api))
        return response

    def _is_told_twice(self) -> bool:
        # A fetch of before topic ids may be one of a client that looks at partitions alone; nobody did look at the top
        # of Metadata until the newest version.
        return self._api is ApiKeys.METADATA or (self._api is ApiKeys.FETCH and self._version < 13)

    def _fill(self, result: Structure, asked: object) -> bool:
        """Say in `result` what was asked for, and the error; False if it has no place for the error itself."""
        names = []
        for field in self._fields(type(result)):
            if field.name in _UNKNOWN:
                value = _UNKNOWN[field.name]
                if value is not None or self._version in field.nullable:
                    setattr(result, field.name, value)
            elif field.name == "error_code":
                result.error_code = self._code  # type: ignore[attr-defined]
            elif field.name == "error_message":
                result.error_message = self._text  # type: ignore[attr-defined]
            elif field.name in self._renamed:
                names.append(field)
        if not isinstance(asked, Structure):
            if names:
                setattr(result, names[0].name, asked)  # an array of names or numbers alone
        else:
            for field in names:
                value = getattr(asked, self._renamed.get(field.name, field.name), None)
                if value is not None or self._version in field.nullable:
                    setattr(result, field.name, self._same(field, value))
        return any(field.name == "error_code" for field in self._fields(type(result)))

    def _same(self, field: Field, value: Any) -> Any:
        element = field.element()
        if isinstance(element, WireType):
            return value
        made = [element() for _ in value]
        for one, asked in zip(made, value, strict=True):
            self._fill(one, asked)
        return made

    def _tell_entries(self, result: Structure, asked: Structure, arrays: tuple[str, ...] | None) -> None:
        """Answer each entry of an array with one, which has the error or has entries that have it."""
        for field in self._fields(type(result)):
            element = field.element()
            if isinstance(element, WireType) or not self._has_code(element):
                continue
            entries = []
            for each in self._entries(asked, arrays):
                entry = element()
                if not self._fill(entry, each):
                    self._tell_entries(entry, each, None)
                entries.append(entry)
            setattr(result, field.name, entries)

    def _entries(self, asked: Structure, arrays: tuple[str, ...] | None) -> Iterator[Any]:
        if arrays is None:
            given = (field.name for field in self._fields(type(asked)) if isinstance(field.kind, Array))
            arrays = tuple(given)[:1]
        entries = chain.from_iterable(getattr(asked, name) or () for name in arrays)
        # What is deleted and inserted in one request is answered once.
        return iter({each.name: each for each in entries}.values()) if len(arrays) > 1 else entries

    def _has_code(self, structure: type[Structure]) -> bool:
        return any(
            field.name == "error_code"
            or (not isinstance(element := field.element(), WireType) and self._has_code(element))
            for field in self._fields(structure)
        )

    def _fields(self, structure: type[Structure]) -> Iterator[Field]:
        return (field for field in structure.FIELDS if self._version in field.versions)
