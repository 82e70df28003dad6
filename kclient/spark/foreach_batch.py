"""Writing the micro-batches of a stream by the batch sink, for what a streaming sink in Python cannot do."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame


def batch_writer(**options: str) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch` that writes each micro-batch to Kafka, with the options of `format("kclient")`.

    Spark refuses output mode update for a sink in Python, but not for foreachBatch:

        counts.writeStream.outputMode("update").foreachBatch(
            batch_writer(**{"kafka.bootstrap.servers": servers, "topic": "counts"})
        ).option("checkpointLocation", path).start()

    Give the rows a key: readers then take the newest record of a key for its present value. At least once, as the
    sink itself.
    """

    def write(frame: DataFrame, batch_id: int) -> None:  # noqa: ARG001 - what Spark calls it with
        frame.write.format("kclient").mode("append").options(**options).save()

    return write
