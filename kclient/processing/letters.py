"""Dead letters read back: the record that one was made of, why it was given up, and how often it was sent back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord
from kclient.processing import header_names as names

Header = tuple[str, bytes | None]
Record = ConsumerRecord[bytes, bytes]

_OF_LOOP = (
    *(names.TOPIC, names.PARTITION, names.OFFSET, names.ERROR_CLASS, names.ERROR_MESSAGE),
    *(names.ATTEMPTS, names.TIME),
)
_OF_PIPELINE = (names.SOURCE_TOPIC, names.SOURCE_PARTITION, names.SOURCE_OFFSET, names.SOURCE_ERROR)


@attrs.frozen
class Letter:
    """A dead letter. `source` is where its record was read from, None if the headers do not say.

    `kind` is a short form of `reason` that many letters share; `headers` are those of the record as it first came;
    `attempt` is how often it was sent back, 0 for never.
    """

    record: Record
    source: TopicPartition | None
    kind: str
    reason: str
    headers: tuple[Header, ...]
    attempt: int

    @property
    def again(self) -> tuple[Header, ...]:
        """The headers with which it is sent back once more."""
        return (*self.headers, (names.REPLAY_ATTEMPT, str(self.attempt + 1).encode()))


def read_letter(record: Record) -> Letter:
    """Read a record of a topic of dead letters; one that is none has no source.

    Headers of a dead letter are the last of their names: the record may itself have come with such.
    """
    last = {name: number for number, (name, _) in enumerate(record.headers)}
    texts = {name: (record.headers[at][1] or b"").decode(errors="replace") for name, at in last.items()}
    family: Sequence[str] = ()
    kind = reason = ""
    # A record that a pipeline has written, and the loop could not handle, has both: the loop's came later.
    of_loop, of_pipeline = last.get(names.TOPIC, -1), last.get(names.SOURCE_TOPIC, -1)
    if of_loop > of_pipeline:
        family, kind = _OF_LOOP, texts.get(names.ERROR_CLASS, "")
        reason = f"{kind}: {texts.get(names.ERROR_MESSAGE, '')}"
    elif of_pipeline > of_loop and names.SOURCE_ERROR in last:
        family, kind = _OF_PIPELINE, texts[names.SOURCE_ERROR]
        reason = kind
    source = _source(texts, family)
    if source is None:
        family, kind, reason = (), "", ""
    taken = {last[name] for name in family if name in last}
    attempt = texts.get(names.REPLAY_ATTEMPT, "")
    headers = tuple(
        header
        for number, header in enumerate(record.headers)
        if number not in taken and header[0] != names.REPLAY_ATTEMPT
    )
    return Letter(record, source, kind, reason, headers, _number(attempt) or 0)


def _source(texts: Mapping[str, str], family: Sequence[str]) -> TopicPartition | None:
    if not family:
        return None
    topic, partition = texts[family[0]], _number(texts.get(family[1], ""))
    return TopicPartition(topic, partition) if topic and partition is not None else None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else None
