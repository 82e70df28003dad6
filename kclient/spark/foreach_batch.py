"""Writing the micro-batches of a stream by the batch sink, for what a streaming sink in Python cannot do."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from kclient.errors import ConfigError
from kclient.spark.sink_options import DELIVERY, EXACTLY_ONCE, WRITE_EPOCH, WRITE_ID


def batch_writer(**options: str) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that writes each micro-batch to Kafka, with the options of `format("kclient")`.

    Spark refuses output mode update for a sink in Python, but not for foreachBatch:

        counts.writeStream.outputMode("update").foreachBatch(
            batch_writer(**{"kafka.bootstrap.servers": servers, "topic": "counts"})
        ).option("checkpointLocation", path).start()

    Give the rows a key: readers then take the newest record of a key for its present value. At least once, as the
    sink itself; with `kclient.delivery=exactly_once` the option `kclient.write.id` has to be a name that no other
    query and no other writer of this query has. Raises ConfigError without it.
    """
    given = {name.lower(): value for name, value in options.items()}
    once = given.get(DELIVERY, "").strip().lower() == EXACTLY_ONCE
    if once and not given.get(WRITE_ID, "").strip():
        raise ConfigError(
            f"{DELIVERY}={EXACTLY_ONCE} in foreachBatch needs {WRITE_ID}, a name of this query's writer that is the "
            "same after a restart: by it a micro-batch that runs again is known.",
            name=WRITE_ID,
        )

    def write(frame: DataFrame, batch_id: int) -> None:
        epoch = {WRITE_EPOCH: str(batch_id)} if once else {}
        frame.write.format("kclient").mode("append").options(**options, **epoch).save()

    return write
