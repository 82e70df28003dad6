"""Every message and version against the bytes of the Java client, in both directions."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

import pytest

from harness.golden import golden_lines, golden_table, message_classes
from kclient.common.uuid import Uuid
from kclient.protocol import ApiKeys, decode, encode
from kclient.protocol.schema import Field, Message, Structure
from kclient.protocol.wire import UUID, Array, Bytes, Records, WireType

MESSAGES = message_classes()

pytestmark = pytest.mark.golden


def snake_case(name: str) -> str:
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def value_from_json(kind: Any, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [value_from_json(kind.of, item) for item in value]
    if kind in (Bytes, Records):
        return base64.b64decode(value)
    if kind is UUID:
        return Uuid.from_base64(value)
    return value if isinstance(kind, WireType) else from_json(kind, value)


def from_json(cls: type[Structure], json: dict[str, Any]) -> Any:
    """A struct whose fields that `json` lacks have their defaults."""
    values = {snake_case(name): value for name, value in json.items()}
    made = cls(
        **{f.name: value_from_json(f.kind, values.pop(f.name)) for f in cls.FIELDS if f.name in values}
    )
    assert not values, f"{cls.__name__} lacks {list(values)}"
    return made


def tags_from_json(entries: list[dict[str, Any]]) -> dict[int, bytes]:
    return {entry["tag"]: base64.b64decode(entry["data"]) for entry in entries}


def message_of(line: dict[str, Any]) -> Message:
    """The message that a line of the vectors describes, with its unknown tagged fields."""
    message: Message = from_json(MESSAGES[line["message"]], line["json"])
    if tags := line.get("unknown_tagged_fields"):
        message.unknown_tagged_fields = tags_from_json(tags)
    for nested in line.get("nested_unknown_tagged_fields", ()):
        target: Any = message
        for step in nested["path"]:
            target = target[step] if isinstance(step, int) else getattr(target, snake_case(step))
        target.unknown_tagged_fields = tags_from_json(nested["fields"])
    return message


def is_ours(line: dict[str, Any]) -> bool:
    api = None if line["apiKey"] is None else ApiKeys.for_id(line["apiKey"])
    return api is None or api.on_broker_listener


def covered(name: str) -> Iterator[dict[str, Any]]:
    return filter(is_ours, golden_lines(name))


def assert_same(ours: Structure, theirs: Structure, where: str) -> None:
    """Equality with a path in the message; `records` may be a view of the input."""
    assert ours.unknown_tagged_fields == theirs.unknown_tagged_fields, where
    for field in ours.FIELDS:
        left, right = getattr(ours, field.name), getattr(theirs, field.name)
        path = f"{where}.{field.name}"
        if isinstance(left, list) and isinstance(field.element(), type):
            assert len(left) == len(right), path
            for index, (a, b) in enumerate(zip(left, right, strict=True)):
                assert_same(a, b, f"{path}[{index}]")
        elif isinstance(left, Structure):
            assert_same(left, right, path)
        else:
            assert left == right, path
            assert isinstance(left, memoryview) or type(left) is type(right), path


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    return list(covered("messages"))


def test_every_message_decodes_to_what_java_meant(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        where = f"{line['message']} v{line['version']} {line['case']}"
        for buf in (bytes.fromhex(line["hex"]), memoryview(bytes.fromhex(line["hex"]))):
            decoded = decode(MESSAGES[line["message"]], line["version"], buf)
            assert_same(decoded, message_of(line), where)


def test_every_message_encodes_to_the_bytes_of_java(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        where = f"{line['message']} v{line['version']} {line['case']}"
        assert encode(message_of(line), line["version"]).hex() == line["hex"], where


def test_decoding_and_encoding_gives_the_same_bytes(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        raw = bytes.fromhex(line["hex"])
        assert encode(decode(MESSAGES[line["message"]], line["version"], raw), line["version"]) == raw


def test_a_new_message_has_the_defaults_of_java(lines: list[dict[str, Any]]) -> None:
    for line in lines:
        if line["case"] != "default":
            continue
        cls = MESSAGES[line["message"]]
        fields = {field.name: field for field in cls.FIELDS}
        new, version = cls(), line["version"]
        for name, value in line["json"].items():
            field: Field = fields[snake_case(name)]
            ours, java = getattr(new, field.name), value_from_json(field.kind, value)
            if ours is None and version not in field.nullable and java is not None:
                # The vectors have an empty value where this version cannot carry the null default.
                assert not java, f"{line['message']} v{version}.{name}"
            else:
                assert ours == java, f"{line['message']} v{version}.{name}"


def test_message_versions_are_those_of_java(lines: list[dict[str, Any]]) -> None:
    seen: dict[str, set[int]] = {}
    for line in lines:
        seen.setdefault(line["message"], set()).add(line["version"])
        cls = MESSAGES[line["message"]]
        assert line["flexible"] == (cls.FLEXIBLE_FROM is not None and line["version"] >= cls.FLEXIBLE_FROM)
        assert line["apiKey"] == cls.API_KEY
        assert line["type"] == cls.KIND
    for name, versions in seen.items():
        cls = MESSAGES[name]
        assert set(range(cls.MIN_VERSION, cls.MAX_VERSION + 1)) == versions, name


def test_api_keys_are_those_of_java() -> None:
    table = golden_table("api_keys")
    assert [api.value for api in ApiKeys] == [entry["id"] for entry in table]
    for entry in table:
        api = ApiKeys(entry["id"])
        assert api.name == entry["enum"]
        assert api.cluster_action == entry["cluster_action"], api
        assert api.forwardable == entry["forwardable"], api
        assert api.latest_version_unstable == entry["latest_version_unstable"], api
        assert api.on_broker_listener == ("broker" in entry["listeners"]), api
        if not entry["has_valid_version"]:
            assert api.max_version < api.min_version, api
            continue
        assert api.title == entry["name"]
        assert (api.min_version, api.max_version) == (
            entry["oldest_version"],
            entry["latest_stable_version"],
        ), api
        for version, header in entry["request_header_version"].items():
            assert api.request_header_version(int(version)) == header, (api, version)
        for version, header in entry["response_header_version"].items():
            assert api.response_header_version(int(version)) == header, (api, version)
        if api.on_broker_listener:
            offered = entry["listeners"]["broker"]
            assert (api.advertised_min_version, api.max_version) == (
                offered["min_version"],
                offered["max_version"],
            )
