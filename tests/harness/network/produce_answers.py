"""Answers to produce requests that a proxy gives in a broker's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import iter_batches


def refuse(code: int) -> Callable[[ProduceRequest], ProduceResponse]:
    """Answer every partition of a request with `code`."""
    return refuse_batches(lambda values: code)


def refuse_batches(choose: Callable[[list[bytes]], int | None]) -> Callable[[Any], Any]:
    """Answer a request with the code that `choose` has for the values of each of its batches.

    If it has None for one of them the broker answers the whole request.
    """

    def answer(message: ProduceRequest) -> ProduceResponse | None:
        topics = []
        for topic in message.topic_data:
            answers = []
            for data in topic.partition_data:
                assert data.records is not None
                values = [
                    bytes(record.value or b"")
                    for batch in iter_batches(memoryview(data.records))
                    for record in batch.records()
                ]
                code = choose(values)
                if code is None:
                    return None
                answers.append(PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1))
            topics.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
        return ProduceResponse(responses=topics)

    return answer
