"""The headers that pipelines give to records: what was wrong, and where a record comes from."""

from __future__ import annotations

ERROR_HEADER = "kclient.error"
TOPIC_HEADER = "kclient.source.topic"
PARTITION_HEADER = "kclient.source.partition"
OFFSET_HEADER = "kclient.source.offset"
