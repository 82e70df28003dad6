"""Names of the headers that dead letters have: from the processing loop, and from pipelines on Spark."""

from __future__ import annotations

TOPIC = "kclient.dead-letter.topic"
PARTITION = "kclient.dead-letter.partition"
OFFSET = "kclient.dead-letter.offset"
ERROR_CLASS = "kclient.dead-letter.error.class"
ERROR_MESSAGE = "kclient.dead-letter.error.message"
ATTEMPTS = "kclient.dead-letter.attempts"
TIME = "kclient.dead-letter.time"

# Pipelines give the three of the source to good records as well.
SOURCE_TOPIC = "kclient.source.topic"
SOURCE_PARTITION = "kclient.source.partition"
SOURCE_OFFSET = "kclient.source.offset"
SOURCE_ERROR = "kclient.error"

REPLAY_ATTEMPT = "kclient.replay.attempt"
"""The number of times that a record was sent back from dead letters, 1 for the first."""
