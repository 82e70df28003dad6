"""The command line of `kclient configs`: entities and changes, and that no error repeats a value."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from kclient.cli.config_arguments import (
    Entity,
    Every,
    add_change_arguments,
    add_entity_arguments,
    changes_of,
    entity_of,
    parse_pairs,
    refuse_unset,
)
from kclient.errors import ConfigError, InvalidConfigurationError


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_entity_arguments(parser)
    add_change_arguments(parser)
    return parser.parse_args(words)


def entity(*words: str) -> Entity:
    return entity_of(parsed(*words))


@pytest.mark.parametrize(
    ("words", "names", "text"),
    [
        ("--entity-type topics --entity-name t", {"topics": "t"}, "topics t"),
        ("--entity-name t --entity-type topics", {"topics": "t"}, "topics t"),
        ("--topic t", {"topics": "t"}, "topics t"),
        ("--entity-type topics", {"topics": Every}, "topics"),
        ("--entity-type brokers --entity-default", {"brokers": None}, "brokers default"),
        ("--broker-defaults", {"brokers": None}, "brokers default"),
        ("--broker 3", {"brokers": "3"}, "brokers 3"),
        ("--broker-logger 3", {"broker-loggers": "3"}, "broker-loggers 3"),
        ("--client-metrics m", {"client-metrics": "m"}, "client-metrics m"),
        ("--group g", {"groups": "g"}, "groups g"),
        ("--ip 10.0.0.1", {"ips": "10.0.0.1"}, "ips 10.0.0.1"),
        ("--ip-defaults", {"ips": None}, "ips default"),
        (
            "--entity-type clients --entity-default --entity-type users --entity-name alice",
            {"users": "alice", "clients": None},
            "users alice, clients default",
        ),
        (
            "--entity-type users --entity-type clients --entity-name alice --entity-name app",
            {"users": "alice", "clients": "app"},
            "users alice, clients app",
        ),
        ("--client app --user-defaults", {"users": None, "clients": "app"}, "users default, clients app"),
        ("--entity-type users --client app", {"users": Every, "clients": "app"}, "users, clients app"),
    ],
)
def test_names_belong_to_types_in_their_order(words: str, names: dict[str, object], text: str) -> None:
    found = entity(*words.split())
    assert (dict(found.names), list(found.names), str(found)) == (names, list(names), text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "--entity-type is missing; there are topics"),
        ("--entity-name t", "need an --entity-type each"),
        ("--entity-type topics --entity-name t --entity-name u", "need an --entity-type each"),
        ("--topic t --topic u", "each type of entity may be named once"),
        ("--topic t --user u", "only users and clients can be named together"),
        ("--user u --ip h", "only users and clients can be named together"),
        (
            "--entity-type topics --entity-default",
            "--entity-default is for brokers, users, clients, ips, not for topics",
        ),
        ("--entity-type users --entity-name=", "the name for users is empty; --entity-default is"),
        ("--broker one", "a broker's name is its id, not 'one'"),
        ("--broker-logger 2147483648", "a broker's name is its id"),
    ],
)
def test_an_entity_that_cannot_be_is_refused(words: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        entity(*words.split())


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("a=1", [("a", "1")]),
        ("a=1,b=2", [("a", "1"), ("b", "2")]),
        (" a = 1 , b = 2 ", [("a", "1"), ("b", "2")]),
        ("a=,b=x=y", [("a", ""), ("b", "x=y")]),
        ("a=[1,2,3],b=4", [("a", "1,2,3"), ("b", "4")]),
        ("a=[1]", [("a", "1")]),
        ("a=[x=[y]],b=1", [("a", "x=[y]"), ("b", "1")]),
        (
            "SCRAM-SHA-256=[iterations=8192,password=a,b=c],SCRAM-SHA-512=[password=x]",
            [("SCRAM-SHA-256", "iterations=8192,password=a,b=c"), ("SCRAM-SHA-512", "password=x")],
        ),
        ("SCRAM-SHA-256=[password=a]b]]", [("SCRAM-SHA-256", "password=a]b]")]),
        ("SCRAM-SHA-256=password=a", [("SCRAM-SHA-256", "password=a")]),
        ("kafka.server.KafkaServer$=DEBUG", [("kafka.server.KafkaServer$", "DEBUG")]),
        ("a=1,", [("a", "1")]),
    ],
)
def test_pairs_are_split_at_commas_outside_of_brackets(text: str, pairs: list[tuple[str, str]]) -> None:
    assert list(parse_pairs(text)) == pairs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s3cret", "entry 1 is not KEY=VALUE"),
        ("=s3cret", "entry 1 is not KEY=VALUE"),
        ("a=1,s3cret", "entry 2 is not KEY=VALUE"),
        ("SCRAM-SHA-256=[password=s3cret", "SCRAM-SHA-256: the bracket is not closed"),
        ("SCRAM-SHA-256=password=s3,cret=x", "SCRAM-SHA-256: the value has to stand in brackets"),
        ("SCRAM-SHA-256=[password=a],s3cret]", "entry 2 is not KEY=VALUE"),
        ("SCRAM-SHA-256=[password=a],s3cret]=b]", "entry 2 is not KEY=VALUE"),
        ("SCRAM-SHA-256=[password=a],s3 cret=b]", "entry 2 is not KEY=VALUE"),
    ],
)
def test_what_is_no_pair_is_refused_without_being_repeated(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as raised:
        parse_pairs(text)
    assert "s3" not in str(raised.value)
    assert "cret" not in str(raised.value)


def test_changes_come_from_the_command_line_or_a_file(tmp_path: Path) -> None:
    found = changes_of(parsed("--add-config", "a=1", "--add-config", "b=[2,3]", "--delete-config", "c, d,c"))
    assert (found.added, found.deleted) == ({"a": "1", "b": "2,3"}, ("c", "d"))
    file = tmp_path / "changes.properties"
    file.write_text("a=1,2\nb=[3]\nSCRAM-SHA-256=[iterations=8192,password=x,y]\n")
    found = changes_of(parsed("--add-config-file", str(file)))
    assert found.added == {"a": "1,2", "b": "[3]", "SCRAM-SHA-256": "iterations=8192,password=x,y"}
    assert "password" not in repr(found)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--alter needs --add-config, --add-config-file or --delete-config"),
        (("--add-config", "a=1", "--add-config-file", "f"), "cannot be given together"),
        (("--add-config", "a=1,a=2"), "--add-config: a comes twice"),
        (("--add-config", "a=1", "--delete-config", "a"), "a cannot be set and deleted at once"),
        (("--delete-config", "a,,b"), "--delete-config: a name is empty"),
        (("--add-config-file", "/no/such/file"), "/no/such/file"),
    ],
)
def test_changes_that_cannot_be_are_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        changes_of(parsed(*words))


def test_what_was_never_set_cannot_be_deleted() -> None:
    changes = changes_of(parsed("--delete-config", "a,b,c"))
    refuse_unset(entity("--topic", "t"), changes, {"a", "b", "c"})
    with pytest.raises(InvalidConfigurationError, match=r"^topics t: a, c cannot be deleted"):
        refuse_unset(entity("--topic", "t"), changes, {"b"})
