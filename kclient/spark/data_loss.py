"""Records that are gone before they were read: an error, or with failOnDataLoss=false a warning."""

from __future__ import annotations

import logging

from kclient.common.uuid import Uuid
from kclient.errors import KafkaError

_log = logging.getLogger(__name__)


class DataLossError(KafkaError):
    """Records that the query had to read are not there any more, and failOnDataLoss is true."""

    default_message = "Some records were lost before they were read."


def created_again(topic: str, before: Uuid, now: Uuid) -> str:
    """Say that the topic of this name is another one than before."""
    return f"Topic {topic} was deleted and created again: its id was {before} and is {now}."


def report_data_loss(fail: bool, what: str) -> None:
    """Raise DataLossError, or warn of `what` if the query is to go on."""
    if fail:
        raise DataLossError(
            f"{what} Some data may have been lost: retention, or someone, deleted it "
            "before it was read. Set failOnDataLoss=false to go on without it."
        )
    _log.warning("%s Some data may have been lost; the query goes on, as failOnDataLoss is false.", what)
