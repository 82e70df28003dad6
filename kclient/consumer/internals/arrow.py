"""Columns of records as Arrow record batches, over the same memory."""

from __future__ import annotations

from array import array
from typing import Any

from kclient._accel import BinaryColumn, Columns
from kclient.common.topic_partition import TopicPartition

_FORMS = ("copy", "view")
_VIEWS_SINCE = 19
"""The first version of pyarrow that makes arrays of views from buffers."""


class ArrowBatches:
    """Makes batches of one schema, with keys and values as `binary` or `binary_view`.

    Raises ValueError for another form, ImportError without pyarrow or with one that is too old for views.
    """

    def __init__(self, binary: str) -> None:
        if binary not in _FORMS:
            raise ValueError(f"binary must be one of {', '.join(_FORMS)}, not {binary!r}")
        try:
            import pyarrow as pa
        except ImportError as error:
            raise ImportError(
                "Arrow record batches need pyarrow: pip install 'kclient-kafka[arrow]'"
            ) from error
        if binary == "view" and int(pa.__version__.partition(".")[0]) < _VIEWS_SINCE:
            raise ImportError(
                f"Binary views need pyarrow {_VIEWS_SINCE} or newer, and this is {pa.__version__}"
            )
        self.views = binary == "view"
        self._pa: Any = pa
        self._binary = pa.binary_view() if self.views else pa.binary()
        self._header = pa.struct([("key", pa.string()), ("value", pa.binary())])
        self.schema = pa.schema(
            [
                ("topic", pa.dictionary(pa.int32(), pa.string())),
                ("partition", pa.int32()),
                ("offset", pa.int64()),
                ("timestamp", pa.timestamp("ms", tz="UTC")),
                ("timestamp_type", pa.int8()),
                ("key", self._binary),
                ("value", self._binary),
                ("headers", pa.list_(self._header)),
            ]
        )

    def empty(self) -> Any:
        """A batch without rows."""
        arrays = [self._pa.array([], field.type) for field in self.schema]
        return self._pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def batch(self, tp: TopicPartition, columns: Columns) -> Any:
        """The records of one partition."""
        pa = self._pa
        count = columns.count
        types = self.schema.types
        topic = pa.DictionaryArray.from_arrays(
            self._plain(pa.int32(), count, bytes(4 * count)), pa.array([tp.topic], pa.string())
        )
        arrays = [
            topic,
            self._plain(types[1], count, array("i", [tp.partition]) * count),
            self._plain(types[2], count, columns.offsets),
            self._plain(types[3], count, columns.timestamps),
            self._plain(types[4], count, columns.timestamp_types),
            self._strings(self._binary, count, columns.keys),
            self._strings(self._binary, count, columns.values),
            self._headers(columns),
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _plain(self, kind: Any, count: int, buffer: Any) -> Any:
        return self._pa.Array.from_buffers(kind, count, [None, self._pa.py_buffer(buffer)], null_count=0)

    def _strings(self, kind: Any, count: int, column: BinaryColumn) -> Any:
        pa = self._pa
        validity = None if column.validity is None else pa.py_buffer(column.validity)
        ends = column.views if column.offsets is None else column.offsets
        data = [pa.py_buffer(each) for each in column.data]
        return pa.Array.from_buffers(kind, count, [validity, pa.py_buffer(ends), *data], column.null_count)

    def _headers(self, columns: Columns) -> Any:
        pa = self._pa
        headers = columns.headers
        if headers is None:
            ends: Any = bytes(4 * (columns.count + 1))
            entries = pa.array([], self._header)
        else:
            ends = headers.offsets
            total = memoryview(ends).cast("B").cast("i")[columns.count]
            entries = pa.StructArray.from_arrays(
                [
                    self._strings(pa.string(), total, headers.names),
                    self._strings(pa.binary(), total, headers.values),
                ],
                fields=list(self._header),
            )
        kind = pa.list_(self._header)
        return pa.Array.from_buffers(
            kind, columns.count, [None, pa.py_buffer(ends)], null_count=0, children=[entries]
        )
