"""KafkaBroker: all parts of a broker, put together, started and stopped in the right order."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack

import attrs

from kclient.broker.apis.api_versions import answer_versions
from kclient.broker.apis.dispatcher import ApiDispatcher
from kclient.broker.apis.registry import load_handlers
from kclient.broker.broker_context import BrokerContext
from kclient.broker.config import BrokerConfig
from kclient.broker.descriptors import DescriptorShares, descriptor_shares
from kclient.broker.group.coordinator import GroupCoordinator
from kclient.broker.log.cleaner.log_cleaner import CleanerConfig
from kclient.broker.log.config import LogConfig
from kclient.broker.log.durability import AckPolicy
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.log_tasks import LogIntervals
from kclient.broker.metadata.adoption import Adoption
from kclient.broker.metadata.broker_settings import BrokerSettings
from kclient.broker.metadata.cache import MetadataCache
from kclient.broker.metadata.controller import Controller
from kclient.broker.metadata.controller_events import ControllerEvents
from kclient.broker.metadata.kafka_metadata import KafkaMetadata
from kclient.broker.metadata.metadata_directory import (
    claim_home,
    find_metadata_log,
    open_home,
)
from kclient.broker.metadata.recovery import recover_topics
from kclient.broker.metadata.registration import remembered_directories
from kclient.broker.metadata.topic_names import TRANSACTION_STATE_TOPIC
from kclient.broker.metrics.broker_metrics import BrokerMetrics
from kclient.broker.network.listener import Endpoint, Listener
from kclient.broker.network.socket_server import SocketServer
from kclient.broker.quota.quota_managers import QuotaManagers
from kclient.broker.replica.fetch_sessions import FetchSessionCache
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.broker.request_handler import RequestHandlerPool
from kclient.broker.security.authorizer import configured_authorizer
from kclient.broker.security.listener_security import ListenerSecurity
from kclient.broker.security.scram import MECHANISM_NUMBERS, ScramCredential
from kclient.broker.storage_mode import StorageMode
from kclient.broker.timer import Scheduler
from kclient.broker.transaction.open_transactions import end_open_transactions
from kclient.broker.transaction.producer_ids import ProducerIds
from kclient.errors import IllegalStateError, KafkaStorageError
from kclient.metrics import Measurement, MetricValues
from kclient.record.open_files import OpenFiles
from kclient.utils.fork import ForkGuard
from kclient.utils.log_context import LogContext
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Time

_FETCH_SESSION_EVICTION_MS = 2 * 60 * 1000


class KafkaBroker:
    """A single-node Kafka broker and controller. `start` and `stop` may be called from any thread, each once.

    In a forked child the broker does not exist: `stop` does nothing there.
    """

    def __init__(self, config: BrokerConfig, time: Time = SYSTEM_TIME) -> None:
        self.config = config
        self._time = time
        self._mode = StorageMode.of(config)
        self._log_context = LogContext(f"[Broker id={config.node_id}] ")
        self._log = self._log_context.logger(__name__)
        self._fork_guard = ForkGuard("The broker")
        self._lock = threading.Lock()
        self._settings_lock = threading.Lock()
        self._cleanup: ExitStack | None = None
        self._started = False
        self._stopped = threading.Event()
        self._endpoints: Sequence[Endpoint] = ()
        self._advertised: Sequence[Endpoint] = ()
        self._cluster_id = ""
        self._failure: KafkaStorageError | None = None
        self._adoption: Adoption | None = None
        self._metadata = MetadataCache()
        self._metrics: BrokerMetrics | None = None

    @property
    def endpoints(self) -> Sequence[Endpoint]:
        """The addresses it listens on, with the ports it really has; empty before `start`."""
        return self._endpoints

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of the first listener. Raises IllegalStateError before `start`."""
        if not self._endpoints:
            raise IllegalStateError("The broker was not started")
        return self._endpoints[0].host, self._endpoints[0].port

    @property
    def bootstrap_servers(self) -> str:
        """Value of clients' `bootstrap.servers`."""
        return ",".join(map(str, self._advertised))

    @property
    def cluster_id(self) -> str:
        """The cluster's identifier, which its data directories keep; empty before `start`."""
        return self._cluster_id

    @property
    def adoption(self) -> Adoption | None:
        """The account of what was taken over from a Kafka; None if this start adopted nothing."""
        return self._adoption

    @property
    def failure(self) -> KafkaStorageError | None:
        """The error after which the broker stopped by itself: no log directory could be used any more.

        None if it did not.
        """
        return self._failure

    def start(self, on_listening: Callable[[], None] | None = None) -> None:
        """Load what is in the data directories, then serve. Nothing stays behind if it fails.

        `on_listening` is called as soon as requests are served; handlers that none has asked for are loaded after it.

        Raises ConfigError if an address cannot be bound, IllegalStateError if another broker uses a data
        directory, and KafkaStorageError if none can be used, if what is in them is damaged beyond repair, or
        if it is not this broker's.
        """
        with self._lock:
            if self._started:
                raise IllegalStateError("A broker is started once; make a new one")
            self._started = True
            with ExitStack() as cleanup:
                cleanup.callback(self._stopped.set)
                self._start(cleanup)
                if on_listening is not None:
                    on_listening()
                # Here and not at first use: a fork in the middle of an import would leave the child with its lock, and
                # files that are replaced meanwhile would be those of another version.
                load_handlers()
                self._cleanup = cleanup.pop_all()

    def stop(self) -> None:
        """Answer what is being handled, close connections and logs. Idempotent."""
        if self._fork_guard.forked:
            return
        with self._lock:
            cleanup, self._cleanup = self._cleanup, None
            if cleanup is not None:
                self._log.info("Stopping")
                cleanup.close()
                self._log.info("Stopped")

    def await_shutdown(self, timeout_ms: int | None = None) -> bool:
        """Wait until the broker was stopped; False if `timeout_ms` passed first."""
        return self._stopped.wait(None if timeout_ms is None else timeout_ms / 1000)

    def metrics(self) -> MetricValues:
        """Return the metrics of the broker, under the names of Kafka's JMX; nothing unless it runs. Thread-safe."""
        return MetricValues.of(self.measurements())

    def measurements(self) -> list[Measurement]:
        """Return every metric with its value now, as the exporters of `kclient.observability` want them."""
        metrics = self._metrics
        return [] if metrics is None else metrics.measurements()

    def _forget_metrics(self) -> None:
        self._metrics = None

    def _start(self, cleanup: ExitStack) -> None:
        """Start bottom up. What is started is put on `cleanup`, so that it is stopped top down."""
        config, time, context, mode = self.config, self._time, self._log_context, self._mode
        # First of all the address, as a port that is taken is the most likely trouble and this the cheapest
        # step.
        shares = descriptor_shares()
        quotas = QuotaManagers(config, self._metadata, time, context)
        server = SocketServer(
            config,
            time,
            context,
            descriptors=shares.connections,
            security=self._listener_security(),
            rates=quotas.connections,
        )
        cleanup.callback(server.shutdown)
        self._endpoints = tuple(server.endpoints)
        self._advertised = _advertised(config, server.endpoints)

        scheduler = Scheduler("broker", time)
        metadata_log = find_metadata_log(config.data_directories(), config.metadata_directory())
        own_home = None
        if metadata_log.parent not in config.data_directories():
            own_home = open_home(metadata_log.parent, config.node_id, mode.file_system)
            cleanup.callback(own_home.release)
        logs = self._log_manager(scheduler, shares, own_home)
        cleanup.callback(logs.shutdown)
        cleanup.callback(scheduler.shutdown)
        found = logs.find_partitions()
        store = mode.metadata_store(
            metadata_log, time, snapshot_bytes=config.metadata_log_max_record_bytes_between_snapshots
        )
        cleanup.callback(store.close)
        kafka = None
        if not store.found and (config.kclient_adopt_topics or config.kclient_read_only):
            kafka = KafkaMetadata.read([metadata_log.parent, *config.data_directories()], time)
        log_config = config.log_config()
        recovered = recover_topics(
            store,
            found,
            logs.log_dirs,
            own_home or next(one for one in logs.log_dirs if one.path == metadata_log.parent),
            node_id=config.node_id,
            adopt=config.kclient_adopt_topics,
            read_only=config.kclient_read_only,
            defaults=None if config.chooses_retention else log_config,
            kafka=kafka,
        )
        remembered = BrokerSettings.of(config, store.image.configs).current
        logs.recovery_threads = remembered.num_recovery_threads_per_data_dir
        logs.use_producer_id_expiration(remembered.producer_id_expiration_ms)
        logs.startup(
            lambda topic: LogConfig.from_topic_configs(recovered.topics[topic].configs, log_config),
            recovered.partitions,
            recovered.deleted,
            remembered_directories(store.image, config.node_id),
        )
        adoption = None
        if config.kclient_adopt_topics and not store.found:
            adoption = Adoption.of(recovered, kafka, logs, config.node_id)
        self._cluster_id = logs.cluster_id or ""
        if own_home is not None:
            claim_home(own_home, self._cluster_id, config.node_id)
        replicas = ReplicaManager(logs, time, context)
        cleanup.callback(replicas.shutdown)

        store.start()
        controller = Controller(store, self._metadata, replicas, config, context)
        controller.start(
            recovered.placed(logs, writable=mode.writable),
            _advertised_listeners(config, self._advertised),
            recovered.inherited,
        )
        if mode.writable:
            # Before groups are read: offsets may be part of them.
            states = self._metadata.topic(TRANSACTION_STATE_TOPIC)
            transaction_log = () if states is None else states.topic_partitions()
            ended = end_open_transactions(replicas, transaction_log, time, context)
            if adoption is not None:
                self._adoption = attrs.evolve(adoption, transactions=ended)
                self._log.info("%s", self._adoption)

        groups = GroupCoordinator(
            mode.group_store(controller, replicas, time, context), config, time, context
        )
        cleanup.callback(groups.shutdown)
        groups.load()
        controller.add_listener(groups.offsets.on_metadata_update)
        controller.add_listener(quotas.on_metadata_update)
        quotas.update()
        check_ms = config.offsets_retention_check_interval_ms
        if mode.writable:
            scheduler.schedule("offsets-expiration", groups.offsets.expire, check_ms, check_ms)

        broker = BrokerContext(
            config=config,
            time=time,
            node_id=config.node_id,
            cluster_id=self._cluster_id,
            advertised=self._advertised,
            controller=controller,
            controller_events=ControllerEvents(config.node_id),
            replicas=replicas,
            fetch_sessions=FetchSessionCache(
                config.max_incremental_fetch_session_cache_slots, _FETCH_SESSION_EVICTION_MS, time
            ),
            groups=groups,
            # Where nothing is written any id will do: a producer is told why by the answer to its first records.
            producer_ids=ProducerIds(controller.allocate_producer_ids if mode.writable else lambda: range(1)),
            authorizer=configured_authorizer(config, self._metadata),
            quotas=quotas,
        )
        handlers = RequestHandlerPool(
            server.request_channel, ApiDispatcher(broker).handle, config.num_io_threads, time
        )
        cleanup.callback(broker.controller_events.shutdown)
        cleanup.callback(handlers.shutdown)

        used = config

        def use_settings(*_: object) -> None:
            nonlocal used
            with self._settings_lock:  # or of two changes the former could come last
                current = controller.settings.current
                if current is used:
                    return
                used = current
                server.use_settings(current)
                logs.use_producer_id_expiration(current.producer_id_expiration_ms)
                handlers.resize(current.num_io_threads)
                if logs.cleaner is not None:
                    logs.cleaner.reconfigure(_cleaner_config(current))

        def measure_time(*_: object) -> None:
            server.measure_time(quotas.request.enabled)

        use_settings()
        measure_time()
        controller.add_listener(use_settings)
        controller.add_listener(measure_time)
        # Before the handlers are ended nothing new may come; the processors go on writing their last answers.
        cleanup.callback(server.stop_accepting)
        self._metrics = BrokerMetrics(server, handlers, broker, logs)
        self._metrics.start(scheduler)
        cleanup.callback(self._forget_metrics)
        scheduler.startup()
        broker.controller_events.start()
        handlers.start()
        server.start()
        self._log.info(
            "Listening on %s, advertised as %s, cluster %s, data in %s",
            ", ".join(map(str, self._endpoints)), self.bootstrap_servers, self._cluster_id, ", ".join(config.log_dirs),
        )  # fmt: skip

    def _listener_security(self) -> list[ListenerSecurity]:
        """The security of each listener, in their order. Raises ConfigError."""
        config = self.config
        return [
            ListenerSecurity(
                listener=listener,
                config=config.listener_config(listener),
                jaas=config.jaas(listener),
                scram_credentials=self._scram_credential,
                answer_versions=answer_versions,
                time=self._time,
                log_context=self._log_context,
            )
            for listener in config.listeners_with_security()
        ]

    def _scram_credential(self, mechanism: str, user: str) -> ScramCredential | None:
        """The credential of a user, None if there is none."""
        return self._metadata.image.scram.credentials.get((MECHANISM_NUMBERS[mechanism], user))

    def _log_manager(
        self, scheduler: Scheduler, shares: DescriptorShares, own_home: LogDirectory | None
    ) -> LogManager:
        config = self.config
        return LogManager(
            config.data_directories(),
            config.log_config(),
            self._time,
            scheduler,
            cluster_id=None if own_home is None or own_home.meta is None else own_home.meta.cluster_id,
            node_id=config.node_id,
            files=OpenFiles(shares.log_files),
            on_all_offline=self._stop_without_storage,
            ack_policy=AckPolicy(config.kclient_ack_policy),
            cleaner=_cleaner_config(config) if config.log_cleaner_enable and self._mode.writable else None,
            recovery_threads=config.num_recovery_threads_per_data_dir,
            producer_id_expiration_ms=config.producer_id_expiration_ms,
            file_system=self._mode.file_system,
            intervals=LogIntervals(
                retention_check_ms=config.log_retention_check_interval_ms,
                flush_check_ms=config.log_flush_scheduler_interval_ms,
                recovery_point_checkpoint_ms=config.log_flush_offset_checkpoint_interval_ms,
                log_start_offset_checkpoint_ms=config.log_flush_start_offset_checkpoint_interval_ms,
                high_watermark_checkpoint_ms=config.replica_high_watermark_checkpoint_interval_ms,
                producer_expiration_check_ms=config.producer_id_expiration_check_interval_ms,
            ),
        )

    def _stop_without_storage(self) -> None:
        """The last log directory has gone offline: there is nothing left to serve."""
        if self._failure is None:
            directories = ", ".join(self.config.log_dirs)
            self._failure = KafkaStorageError(
                f"The broker stopped: no log directory can be used any more ({directories}); its log says why"
            )
            self._log.critical("%s", self._failure)
            # Whoever finds out may be a thread that `stop` waits for.
            KafkaThread("stop-without-storage", self.stop).start()


def _cleaner_config(config: BrokerConfig) -> CleanerConfig:
    return CleanerConfig(
        threads=config.log_cleaner_threads,
        dedupe_buffer_bytes=config.log_cleaner_dedupe_buffer_size,
        dedupe_buffer_load_factor=config.log_cleaner_io_buffer_load_factor,
        io_max_bytes_per_second=config.log_cleaner_io_max_bytes_per_second,
        backoff_ms=config.log_cleaner_backoff_ms,
    )


def _advertised_listeners(config: BrokerConfig, advertised: Sequence[Endpoint]) -> list[Listener]:
    """Return the listeners with the addresses that clients are told."""
    listeners = config.listeners_with_security()
    return [
        attrs.evolve(listener, endpoint=endpoint)
        for listener, endpoint in zip(listeners, advertised, strict=True)
    ]


def _advertised(config: BrokerConfig, bound: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """Return the addresses for clients: as configured, else the listeners', under a name they can reach."""
    configured = config.advertised_endpoints()
    if configured:
        return tuple(
            Endpoint(wanted.host, wanted.port or actual.port)
            for wanted, actual in zip(configured, bound, strict=True)
        )
    return tuple(
        Endpoint(socket.gethostname(), actual.port) if actual.host in {"", "0.0.0.0", "::"} else actual
        for actual in bound
    )
