"""Checks of what applications pass in: wrong arguments are refused at once, by name, before anything is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kclient.admin.types import NewTopic, OffsetSpec
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_name import check_topic
from kclient.common.topic_partition import TopicPartition
from kclient.errors import InvalidGroupIdError

ISOLATION_LEVELS = {"read_uncommitted": 0, "read_committed": 1}

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def checked_timeout(timeout_ms: Any, default_ms: int) -> int:
    """`timeout_ms`, or the default for None; not negative."""
    if timeout_ms is None:
        return default_ms
    _check_int("timeout_ms", timeout_ms)
    if timeout_ms < 0:
        raise ValueError(f"timeout_ms must not be negative, not {timeout_ms}")
    return int(timeout_ms)


def check_flag(argument: str, value: Any) -> None:
    """Raise TypeError for what is not a bool: a text such as "false" would count as true."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} must be True or False, not {value!r}")


def checked_new_topics(new_topics: Any) -> list[NewTopic]:
    """Topics to create; a plain name is one with the broker's defaults."""
    made = []
    for topic in _entries("new_topics", new_topics):
        new = NewTopic(topic) if isinstance(topic, str) else topic
        if not isinstance(new, NewTopic):
            raise TypeError(f"new_topics: a topic to create is a NewTopic or a name, not {topic!r}")
        check_topic(new.name, "new_topics")
        made.append(new)
    return made


def checked_topics(names: Any, argument: str = "names") -> list[str]:
    """Names of topics, without repeats."""
    wanted: list[str] = distinct(argument, names)
    for name in wanted:
        check_topic(name, argument)
    return wanted


def checked_groups(group_ids: Any) -> list[str]:
    """Names of groups, without repeats."""
    return [checked_group(group, "group_ids") for group in distinct("group_ids", group_ids)]


def checked_group(group_id: Any, argument: str = "group_id") -> str:
    """The name of a group."""
    if not isinstance(group_id, str):
        raise TypeError(f"{argument}: a group's name must be a str, not {group_id!r}")
    if not group_id:
        raise InvalidGroupIdError(f"{argument}: a group's name must not be empty")
    return group_id


def checked_members(group_instance_ids: Any) -> list[str] | None:
    """The names of static members, without repeats; None stands for all members."""
    if group_instance_ids is None:
        return None
    wanted = distinct("group_instance_ids", group_instance_ids)
    for each in wanted:
        if not isinstance(each, str) or not each:
            raise TypeError(
                f"group_instance_ids: a member's name must be a str that is not empty, not {each!r}"
            )
    if not wanted:
        raise ValueError("group_instance_ids must name a member, or be None for all of them")
    return wanted


def checked_reason(reason: Any) -> str | None:
    """A reason for people, or None."""
    if reason is not None and not isinstance(reason, str):
        raise TypeError(f"reason must be a str, not {reason!r}")
    return reason


def checked_group_partitions(groups: Any) -> dict[str, list[TopicPartition] | None]:
    """Partitions by group; None stands for all."""
    return {
        checked_group(group, "group_id"): None if wanted is None else checked_partitions(wanted)
        for group, wanted in _mapping("group_id", groups, "groups to partitions").items()
    }


def checked_commits(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit by partition; a number is an offset without more."""
    return {
        _checked_partition("offsets", tp): offset
        if isinstance(offset, OffsetAndMetadata)
        else OffsetAndMetadata(_checked_offset(tp, offset))
        for tp, offset in _mapping("offsets", offsets, "partitions to offsets").items()
    }


def checked_starts(offsets: Any) -> dict[TopicPartition, int]:
    """Offsets by partition."""
    return {
        _checked_partition("offsets", tp): _checked_offset(tp, offset)
        for tp, offset in _mapping("offsets", offsets, "partitions to offsets").items()
    }


def _checked_offset(tp: TopicPartition, offset: Any) -> int:
    _check_int(f"offsets: the offset of {tp}", offset)
    if not 0 <= offset <= _MAX_INT64:
        raise ValueError(f"offsets: {offset} cannot be an offset of {tp}")
    return int(offset)


def _mapping(argument: str, given: Any, what: str) -> Mapping[Any, Any]:
    if not isinstance(given, Mapping):
        raise TypeError(f"{argument} must map {what}, not be {given!r}")
    return given


def checked_words(argument: str, words: Any) -> tuple[str, ...]:
    """Words to narrow a list by."""
    wanted = tuple(_entries(argument, words))
    for word in wanted:
        if not isinstance(word, str):
            raise TypeError(f"{argument} must be a collection of str; {word!r} is none")
    return wanted


def checked_partitions(partitions: Any) -> list[TopicPartition]:
    """Partitions, without repeats."""
    return [_checked_partition("partitions", tp) for tp in distinct("partitions", partitions)]


def checked_specs(specs: Any) -> dict[TopicPartition, int]:
    """Return the checked specs by partition: each an OffsetSpec, or a time in ms since the epoch."""
    if not isinstance(specs, Mapping):
        raise TypeError(f"specs must map each TopicPartition to an OffsetSpec or a time, not be {specs!r}")
    for tp, spec in specs.items():
        _checked_partition("specs", tp)
        _check_int(f"specs: what to look up for {tp}", spec)
        if not min(OffsetSpec) <= spec <= _MAX_INT64:
            raise ValueError(
                f"specs: {spec} for {tp} is neither an OffsetSpec nor a time in ms since the epoch"
            )
    return dict(specs)


def checked_isolation(isolation_level: Any) -> int:
    """The code of an isolation level."""
    if not isinstance(isolation_level, str) or isolation_level not in ISOLATION_LEVELS:
        raise ValueError(
            f"isolation_level must be one of {', '.join(ISOLATION_LEVELS)}, not {isolation_level!r}"
        )
    return ISOLATION_LEVELS[isolation_level]


def _checked_partition(argument: str, tp: Any) -> TopicPartition:
    if not isinstance(tp, TopicPartition):
        raise TypeError(f"{argument}: a TopicPartition is needed, not {tp!r}")
    check_topic(tp.topic, argument)
    _check_int(f"{argument}: the partition's number", tp.partition)
    if not 0 <= tp.partition <= _MAX_INT32:
        raise ValueError(f"{argument}: {tp} cannot be a partition")
    return tp


def _check_int(what: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be an int, not {value!r}")


def _entries(argument: str, given: Any) -> list[Any]:
    # A single name is a collection, too: of names of one letter each, to be created or deleted.
    if isinstance(given, (str, bytes, TopicPartition, NewTopic)):
        raise TypeError(f"{argument} must be a collection; did you mean [{given!r}]?")
    if not isinstance(given, Iterable):
        raise TypeError(f"{argument} must be a collection, not {given!r}")
    return list(given)


def distinct(argument: str, given: Any) -> list[Any]:
    """The entries of a collection, without repeats."""
    entries = _entries(argument, given)
    try:
        return list(dict.fromkeys(entries))
    except TypeError as error:
        raise TypeError(f"{argument}: an entry is not what is expected here ({error})") from None
