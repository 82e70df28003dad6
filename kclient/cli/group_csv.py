"""Plans of --reset-offsets as CSV, in the two forms of Kafka's tool: with a group in each line, or of one group."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO, TypeAlias

from kclient.common.topic_name import check_topic
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError, KafkaError

Plan: TypeAlias = "dict[TopicPartition, int]"

_MOST_PARTITION = 2**31 - 1
_MOST_OFFSET = 2**63 - 1


def write_plans(plans: Mapping[str, Plan], file: TextIO, *, with_groups: bool) -> None:
    """Write group,topic,partition,offset lines, or those without the group."""
    writer = csv.writer(file, lineterminator="\n")
    for group, plan in plans.items():
        first = [group] if with_groups else []
        writer.writerows([*first, tp.topic, tp.partition, offset] for tp, offset in sorted(plan.items()))


def read_plans(path: str, groups: Sequence[str]) -> dict[str, Plan]:
    """Plans by group, of a file that names them; or the plan of the only one of `groups`, if the file does not.

    The first line decides. Raises ConfigError for a line that is neither, OSError.
    """
    plans: dict[str, Plan] = {}
    with Path(path).open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        columns = 0
        try:
            for fields in filter(None, reader):
                columns = columns or (3 if len(groups) == 1 and len(fields) == 3 else 4)
                if len(fields) != columns:
                    wanted = "topic,partition,offset" if columns == 3 else "group,topic,partition,offset"
                    raise ValueError(f"there should be {wanted}")
                *group, topic, partition, offset = fields
                check_topic(topic, "topic")
                tp = TopicPartition(topic, _number("partition", partition, _MOST_PARTITION))
                plans.setdefault(group[0] if group else groups[0], {})[tp] = _number(
                    "offset", offset, _MOST_OFFSET
                )
        except (ValueError, KafkaError, csv.Error) as error:
            raise ConfigError(f"{path}, line {reader.line_num}: {error}") from error
    return plans


def _number(what: str, text: str, most: int) -> int:
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit()) or len(stripped) > 19 or int(stripped) > most:
        raise ValueError(f"{text!r} is no {what}")
    return int(stripped)
