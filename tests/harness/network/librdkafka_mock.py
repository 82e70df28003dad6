"""LibrdkafkaMock: the cluster that librdkafka tests itself against, from the library in confluent-kafka's wheel.

It is a second opinion about the protocol, in C and by others: it finds coordinators, checks producer ids, epochs and
sequences, and answers any request with an error that a test asks for. It knows transactions as they were before
Kafka 4 (TV1), keeps no offsets of transactions, and leaves it to the test to read its logs: its answers to a fetch
name no aborted transaction.
"""

from __future__ import annotations

import ctypes
from importlib import metadata
from types import TracebackType
from typing import Any, Self

from harness.broker.wire import Wire
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.record import iter_batches

_FIRST_WITH_MARKERS = 0x020F0000
"""librdkafka 2.15: its mock ends transactions with control batches."""
_PRODUCER = 0
_FETCH_BY_NAME = 11
_NEWEST = {
    ApiKeys.METADATA: 8,  # its answers to newer requests have a byte too many
    # It cannot read newer ones of these, or answers them wrongly: its own client does not send them.
    ApiKeys.JOIN_GROUP: 5,
    ApiKeys.SYNC_GROUP: 3,
    ApiKeys.LEAVE_GROUP: 2,
}
_COMMIT = 1


def missing_mock() -> str | None:
    """The reason why the mock cannot run here, None if it can."""
    path = _library_path()
    if path is None:
        return "confluent-kafka with its own librdkafka is not installed (pip install '.[peers]')"
    version = ctypes.CDLL(path).rd_kafka_version()
    if version < _FIRST_WITH_MARKERS:
        return f"librdkafka 2.15 is needed for its mock cluster, and this is 0x{version:08x}"
    return None


def _library_path() -> str | None:
    try:
        files = metadata.files("confluent-kafka") or []
    except metadata.PackageNotFoundError:
        return None
    # Wheels of Linux have it in confluent_kafka.libs, those of macOS in confluent_kafka/.dylibs.
    found = [file for file in files if file.name.startswith("librdkafka") and ".py" not in file.suffixes]
    return str(found[0].locate()) if found else None


class LibrdkafkaMock:
    """Mock brokers 1 to `brokers` in this process. A context manager; its functions are safe to call at any time."""

    def __init__(self, brokers: int = 1) -> None:
        path = _library_path()
        assert path is not None
        self._lib = _declare(ctypes.CDLL(path))
        text = ctypes.create_string_buffer(512)
        conf = self._lib.rd_kafka_conf_new()
        # The mock needs a client that does nothing; its warning that it has no servers is of no use.
        self._lib.rd_kafka_conf_set(conf, b"log_level", b"2", text, len(text))
        self._client = self._lib.rd_kafka_new(_PRODUCER, conf, text, len(text))
        if not self._client:
            raise RuntimeError(text.value.decode())
        self._cluster = self._lib.rd_kafka_mock_cluster_new(self._client, brokers)
        for api, version in _NEWEST.items():
            self._lib.rd_kafka_mock_set_apiversion(self._cluster, api, 0, version)
        self._lib.rd_kafka_mock_group_initial_rebalance_delay_ms(self._cluster, 0)
        self._lib.rd_kafka_mock_start_request_tracking(self._cluster)

    @property
    def bootstrap_servers(self) -> str:
        """host:port of each broker."""
        servers: bytes = self._lib.rd_kafka_mock_cluster_bootstraps(self._cluster)
        return servers.decode()

    def create_topic(self, name: str, partitions: int) -> None:
        """Make a topic; what is asked about others may end the process."""
        self._lib.rd_kafka_mock_topic_create(self._cluster, name.encode(), partitions, 1)

    def refuse(self, api: ApiKeys, *codes: int) -> None:
        """Answer the next requests of `api` with these codes, one each, and do nothing of what they ask for."""
        self._lib.rd_kafka_mock_push_request_errors_array(
            self._cluster, api, len(codes), (ctypes.c_int * len(codes))(*codes)
        )

    def clear(self, api: ApiKeys) -> None:
        """Refuse no more requests of `api`."""
        self._lib.rd_kafka_mock_clear_request_errors(self._cluster, api)

    def move_leader(self, topic: str, partition: int, broker: int) -> None:
        """Have another broker lead a partition; the old one refuses it from then on."""
        self._lib.rd_kafka_mock_partition_set_leader(self._cluster, topic.encode(), partition, broker)

    def move_coordinator(self, group: str, broker: int) -> None:
        """Have another broker serve a group."""
        self._lib.rd_kafka_mock_coordinator_set(self._cluster, b"group", group.encode(), broker)

    def stop_broker(self, broker: int) -> None:
        """Close a broker's connections, and refuse new ones."""
        self._lib.rd_kafka_mock_broker_set_down(self._cluster, broker)

    def start_broker(self, broker: int) -> None:
        """Let a broker that was stopped be connected to."""
        self._lib.rd_kafka_mock_broker_set_up(self._cluster, broker)

    def asked(self) -> list[ApiKeys]:
        """The requests since this was last called."""
        count = ctypes.c_size_t()
        requests = self._lib.rd_kafka_mock_get_requests(self._cluster, ctypes.byref(count))
        asked = [ApiKeys(self._lib.rd_kafka_mock_request_api_key(requests[i])) for i in range(count.value)]
        self._lib.rd_kafka_mock_request_destroy_array(requests, count)
        self._lib.rd_kafka_mock_clear_requests(self._cluster)
        return asked

    def committed(self, topic: str, first_offset: int) -> tuple[list[bytes], int]:
        """The values of a topic's only partition whose transactions were committed, and the end of the log.

        Read from the log itself: the values of a producer id are decided by the next marker of that id.
        """
        open_values: dict[int, list[bytes]] = {}
        committed: list[bytes] = []
        end = first_offset
        with Wire(self.bootstrap_servers) as wire:
            while True:
                wanted = FetchPartition(partition=0, fetch_offset=end, partition_max_bytes=1 << 20)
                request = FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=[wanted])])
                (partition,) = wire.ask(request, _FETCH_BY_NAME).responses[0].partitions
                assert partition.error_code == 0
                batches = list(iter_batches(memoryview(partition.records or b"")))
                for batch in batches:
                    values = open_values.setdefault(batch.producer_id, [])
                    for record in batch.records():
                        if not batch.is_control:
                            values.append(bytes(record.value or b""))
                            continue
                        if int.from_bytes(bytes(record.key or b"")[2:4]) == _COMMIT:
                            committed += values
                        values.clear()
                    end = batch.last_offset + 1
                if not batches:
                    return committed, end

    def close(self) -> None:
        """Stop the broker."""
        self._lib.rd_kafka_mock_cluster_destroy(self._cluster)
        self._lib.rd_kafka_destroy(self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _declare(lib: ctypes.CDLL) -> Any:
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    short, number, int32 = ctypes.c_int16, ctypes.c_int, ctypes.c_int32
    pointers = ctypes.POINTER(pointer)
    signatures: dict[str, tuple[Any, list[Any]]] = {
        "rd_kafka_conf_new": (pointer, []),
        "rd_kafka_conf_set": (number, [pointer, text, text, text, size]),
        "rd_kafka_new": (pointer, [number, pointer, text, size]),
        "rd_kafka_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_new": (pointer, [pointer, number]),
        "rd_kafka_mock_cluster_destroy": (None, [pointer]),
        "rd_kafka_mock_cluster_bootstraps": (text, [pointer]),
        "rd_kafka_mock_set_apiversion": (number, [pointer, short, short, short]),
        "rd_kafka_mock_topic_create": (number, [pointer, text, number, number]),
        "rd_kafka_mock_push_request_errors_array": (None, [pointer, short, size, ctypes.POINTER(number)]),
        "rd_kafka_mock_clear_request_errors": (None, [pointer, short]),
        "rd_kafka_mock_partition_set_leader": (number, [pointer, text, int32, int32]),
        "rd_kafka_mock_coordinator_set": (number, [pointer, text, text, int32]),
        "rd_kafka_mock_group_initial_rebalance_delay_ms": (None, [pointer, int32]),
        "rd_kafka_mock_broker_set_down": (number, [pointer, int32]),
        "rd_kafka_mock_broker_set_up": (number, [pointer, int32]),
        "rd_kafka_mock_start_request_tracking": (None, [pointer]),
        "rd_kafka_mock_get_requests": (pointers, [pointer, ctypes.POINTER(size)]),
        "rd_kafka_mock_clear_requests": (None, [pointer]),
        "rd_kafka_mock_request_api_key": (short, [pointer]),
        "rd_kafka_mock_request_destroy_array": (None, [pointers, size]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib
