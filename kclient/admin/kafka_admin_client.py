"""KafkaAdminClient: topics, groups, settings, access, transactions and the cluster, from any thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar, Unpack

from kclient.admin import internals
from kclient.admin.config import AdminConfig
from kclient.admin.internals import operations
from kclient.admin.internals.arguments import (
    check_flag,
    checked_group,
    checked_groups,
    checked_isolation,
    checked_new_topics,
    checked_partitions,
    checked_specs,
    checked_timeout,
    checked_topics,
    checked_words,
)
from kclient.admin.internals.assembly import build_driver
from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.steps import Operation
from kclient.admin.types import (
    ClusterDescription,
    CreatedTopic,
    GroupDescription,
    GroupListing,
    ListedOffset,
    NewTopic,
    TopicDescription,
    TopicListing,
)
from kclient.client.client_metrics import ClientMetrics
from kclient.client.health import ClientHealth
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.pushed_metrics import PushedMetrics
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.config.declare import ConfigSource
from kclient.metrics import MetricValues
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.fork import ForkGuard
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from kclient.admin.acl import AclBinding, AclBindingFilter
    from kclient.admin.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter
    from kclient.admin.resource_configs import AlterConfigOp, ConfigEntry, ConfigResource, ConfigResourceType
    from kclient.admin.scram import (
        UserScramCredentialDeletion,
        UserScramCredentialsDescription,
        UserScramCredentialUpsertion,
    )
    from kclient.admin.settings import AdminSettings
    from kclient.admin.tokens import DelegationToken
    from kclient.admin.transactions import (
        AbortTransactionSpec,
        FencedProducer,
        PartitionProducerState,
        TransactionDescription,
        TransactionListing,
    )

P = ParamSpec("P")
R = TypeVar("R")


class KafkaAdminClient(PushedMetrics):
    """Manages a Kafka cluster. Thread-safe.

    Settings are Java's: dotted in a mapping or a `.properties` file, underscored as keywords. Methods wait for their
    answer and return plain values; a method that was asked about one thing raises what is wrong with it
    (`TopicExistsError`), about several `AdminError` if any of them failed, with what went well in `.results` and the
    rest in `.errors`. `timeout_ms` is default.api.timeout.ms unless given; when it
    is over, `KafkaTimeoutError` says what was tried. A Ctrl-C ends a call at once, and what it has asked for is
    forgotten; a broker that has the request may still carry it out.

        with KafkaAdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3)])
    """

    def __init__(self, config: ConfigSource = None, **settings: Unpack[AdminSettings]) -> None:
        self._config = AdminConfig.parse(config, settings)
        self._client_id = self._config.client_id
        self._time = SYSTEM_TIME
        self._backoff = ExponentialBackoff(self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
        self._fork_guard = ForkGuard(f"KafkaAdminClient {self._client_id}")
        self._metrics = ClientMetrics(self._config, self._time, "admin-client-metrics")
        self._pushed = ClientTelemetry(self._metrics.collect, dict, enabled=self._config.enable_metrics_push)
        self._driver = build_driver(self._config, self._backoff, self._metrics, self._pushed, self._time)
        # In this order: after a Ctrl-C in between there is no thread that nobody would end.
        self._closed = False
        self._driver.start()

    def create_topics(
        self,
        new_topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics; a plain name takes the broker's default counts. `validate_only` only checks.

        Topics that a quota refuses are tried again until the time is over, or not, by `retry_on_quota_violation`;
        ThrottlingQuotaExceededError then has the `throttle_time_ms` that is left to wait (KIP-599).
        """
        wanted, retry = checked_new_topics(new_topics), retry_on_quota_violation
        check_flag("validate_only", validate_only)
        check_flag("retry_on_quota_violation", retry)
        what = f"Creating topics {', '.join(topic.name for topic in wanted)}"
        return self._run(what, timeout_ms, operations.topics.create_topics, wanted, validate_only, retry)

    def delete_topics(
        self, names: Iterable[str], *, retry_on_quota_violation: bool = True, timeout_ms: int | None = None
    ) -> dict[str, None]:
        """Delete topics and everything in them. `retry_on_quota_violation` is as in `create_topics`."""
        wanted, retry = checked_topics(names), retry_on_quota_violation
        check_flag("retry_on_quota_violation", retry)
        what = f"Deleting topics {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.topics.delete_topics, wanted, retry)

    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """Every topic by name; Kafka's own only with `include_internal`."""
        check_flag("include_internal", include_internal)
        return self._run("Listing topics", timeout_ms, operations.topics.list_topics, include_internal)

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TopicDescription]:
        """Partitions, leaders and replicas of topics."""
        wanted = checked_topics(names)
        what = f"Describing topics {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.topics.describe_topics, wanted)

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """The cluster's id, brokers and controller."""
        return self._run("Describing the cluster", timeout_ms, operations.topics.describe_cluster)

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset of each partition for an `OffsetSpec` or a timestamp in ms (KIP-396, KIP-734).

        `isolation_level` `read_committed` makes LATEST the end of the committed records.
        """
        wanted = checked_specs(specs)
        isolation = checked_isolation(isolation_level)
        return self._run("Listing offsets", timeout_ms, operations.offsets.list_offsets, wanted, isolation)

    def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = (), timeout_ms: int | None = None
    ) -> dict[str, GroupListing]:
        """Every group by id, of all brokers, narrowed to `states` and `types` where given (KIP-518, KIP-848)."""
        wanted_states, wanted_types = checked_words("states", states), checked_words("types", types)
        operation = operations.groups.list_groups
        return self._run("Listing groups", timeout_ms, operation, wanted_states, wanted_types)

    def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, GroupDescription]:
        """State, members and assignments of groups of consumers, of either protocol (KIP-848)."""
        wanted = checked_groups(group_ids)
        what = f"Describing groups {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.groups.describe_groups, wanted)

    def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, None]:
        """Delete groups without members, and their offsets (KIP-229)."""
        wanted = checked_groups(group_ids)
        what = f"Deleting groups {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.groups.delete_groups, wanted)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offsets that `group_id` has committed, for all its partitions or for `partitions`.

        A partition of `partitions` without a committed offset has None. `require_stable` waits for transactions that
        have offsets of the group and have not ended (KIP-447); a partition without a committed offset has to be named
        for that. Raises UnsupportedVersionError for brokers before 2.5.
        """
        checked_group(group_id)
        wanted = None if partitions is None else checked_partitions(partitions)
        check_flag("require_stable", require_stable)
        what = f"Listing the offsets of group {group_id}"
        operation = operations.offsets.list_consumer_group_offsets
        return self._run(what, timeout_ms, operation, group_id, wanted, require_stable)

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Every setting of topics, brokers, groups and the like, by name."""
        wanted = internals.security_arguments.checked_resources(resources)
        check_flag("include_synonyms", include_synonyms)
        check_flag("include_documentation", include_documentation)
        what, operation = "Describing settings", operations.configs.describe_configs
        return self._run(what, timeout_ms, operation, wanted, include_synonyms, include_documentation)

    def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ConfigResource, None]:
        """Change single settings, and leave the others as they are (KIP-339). `validate_only` only checks."""
        wanted = internals.security_arguments.checked_config_changes(configs)
        check_flag("validate_only", validate_only)
        operation = operations.configs.incremental_alter_configs
        return self._run("Altering settings", timeout_ms, operation, wanted, validate_only)

    def list_config_resources(
        self, types: Iterable[ConfigResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """Return what has settings of its own, of `types` or of any type (KIP-1142)."""
        wanted = internals.security_arguments.checked_resource_types(types)
        operation = operations.configs.list_config_resources
        return self._run("Listing what has settings", timeout_ms, operation, wanted)

    def create_acls(
        self, acls: Iterable[AclBinding], *, timeout_ms: int | None = None
    ) -> dict[AclBinding, None]:
        """Create access rules; those that are there already stay as they are.

        Raises SecurityDisabledError if the cluster has no authorizer, as do the other two.
        """
        wanted = internals.security_arguments.checked_acls(acls)
        return self._run("Creating ACLs", timeout_ms, operations.acls.create_acls, wanted)

    def describe_acls(
        self, acl_filter: AclBindingFilter | None = None, *, timeout_ms: int | None = None
    ) -> list[AclBinding]:
        """Return the access rules that `acl_filter` finds, all of them without it."""
        wanted = internals.security_arguments.checked_acl_filter(acl_filter)
        return self._run("Describing ACLs", timeout_ms, operations.acls.describe_acls, wanted)

    def delete_acls(
        self, filters: Iterable[AclBindingFilter], *, timeout_ms: int | None = None
    ) -> dict[AclBindingFilter | AclBinding, list[AclBinding]]:
        """Delete the access rules that `filters` find; returns them by filter.

        A rule that could not be deleted is a key of AdminError's `.errors`, beside filters that failed as a whole.
        """
        wanted = internals.security_arguments.checked_acl_filters(filters)
        return self._run("Deleting ACLs", timeout_ms, operations.acls.delete_acls, wanted)

    def describe_user_scram_credentials(
        self, users: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> dict[str, UserScramCredentialsDescription]:
        """Mechanisms and iterations of users' passwords, of all users without `users` (KIP-554)."""
        wanted = None if users is None else internals.security_arguments.checked_users(users)
        what, operation = "Describing SCRAM credentials", operations.scram.describe_user_scram_credentials
        return self._run(what, timeout_ms, operation, wanted)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        *,
        timeout_ms: int | None = None,
    ) -> dict[str, None]:
        """Set and delete users' passwords (KIP-554), which are salted here; returns the users.

        Brokers refuse a request with two changes of one user (DuplicateResourceError), also of two mechanisms.
        """
        wanted = internals.security_arguments.checked_credential_alterations(alterations)
        what, operation = "Altering SCRAM credentials", operations.scram.alter_user_scram_credentials
        return self._run(what, timeout_ms, operation, wanted)

    def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int | None = None,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """Create a token that others can authenticate with (KIP-48), for oneself or for `owner` (KIP-373).

        `owner` and `renewers` are principals as "User:alice". `max_lifetime_ms` is the broker's unless given. The
        connection has to be authenticated, and not by a token.
        """
        checks = internals.security_arguments
        whose, others = checks.checked_owner(owner), checks.checked_principals("renewers", renewers)
        limit_ms = checks.checked_period("max_lifetime_ms", max_lifetime_ms, least=1)
        operation = operations.tokens.create_delegation_token
        return self._run("Creating a delegation token", timeout_ms, operation, whose, others, limit_ms)

    def renew_delegation_token(
        self, hmac: bytes, *, renew_period_ms: int | None = None, timeout_ms: int | None = None
    ) -> int:
        """Extend the time of the token with `hmac`, by the broker's period unless given; returns its end in ms."""
        checks = internals.security_arguments
        secret, period_ms = (
            checks.checked_hmac(hmac),
            checks.checked_period("renew_period_ms", renew_period_ms),
        )
        operation = operations.tokens.renew_delegation_token
        return self._run("Renewing a delegation token", timeout_ms, operation, secret, period_ms)

    def expire_delegation_token(
        self, hmac: bytes, *, expiry_period_ms: int | None = None, timeout_ms: int | None = None
    ) -> int:
        """End the token with `hmac` in `expiry_period_ms` from now, at once without it; returns its end in ms."""
        checks = internals.security_arguments
        secret, period_ms = (
            checks.checked_hmac(hmac),
            checks.checked_period("expiry_period_ms", expiry_period_ms),
        )
        operation = operations.tokens.expire_delegation_token
        return self._run("Ending a delegation token", timeout_ms, operation, secret, period_ms)

    def describe_delegation_token(
        self, owners: Iterable[str] | None = None, *, timeout_ms: int | None = None
    ) -> list[DelegationToken]:
        """Return the tokens that the caller may see, of all owners without `owners`."""
        wanted = None if owners is None else internals.security_arguments.checked_principals("owners", owners)
        operation = operations.tokens.describe_delegation_token
        return self._run("Describing delegation tokens", timeout_ms, operation, wanted)

    def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter | None = None, *, timeout_ms: int | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Quotas by name of the entities that `quota_filter` finds, of all of them without it (KIP-546)."""
        wanted = internals.security_arguments.checked_quota_filter(quota_filter)
        operation = operations.quotas.describe_client_quotas
        return self._run("Describing client quotas", timeout_ms, operation, wanted)

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[ClientQuotaEntity, None]:
        """Set and take away quotas (KIP-546). `validate_only` only checks."""
        wanted = internals.security_arguments.checked_quota_alterations(alterations)
        check_flag("validate_only", validate_only)
        operation = operations.quotas.alter_client_quotas
        return self._run("Altering client quotas", timeout_ms, operation, wanted, validate_only)

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        duration_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, TransactionListing]:
        """Every transactional id, of all brokers, narrowed by what is given (KIP-664).

        `states` are TransactionStates. `duration_ms` finds transactions that run for longer (KIP-994), and
        `transactional_id_pattern`, a regular expression of RE2J, ids that it matches as a whole (KIP-1152).
        """
        checks = internals.transaction_arguments
        filters = checks.checked_states(states), checks.checked_producer_ids(producer_ids)
        more = checks.checked_duration(duration_ms), checks.checked_pattern(transactional_id_pattern)
        operation = operations.transactions.list_transactions
        return self._run("Listing transactions", timeout_ms, operation, *filters, *more)

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """State, producer and partitions of transactions; TransactionalIdNotFoundError for an unknown id."""
        wanted = internals.transaction_arguments.checked_transactional_ids(transactional_ids)
        what = f"Describing transactions {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.transactions.describe_transactions, wanted)

    def describe_producers(
        self,
        partitions: Collection[TopicPartition],
        broker_id: int | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionProducerState]:
        """Producers that have written to partitions, as their leaders know them, or as broker `broker_id` does.

        Raises NotLeaderOrFollowerError for a partition of which `broker_id` has no replica.
        """
        wanted = checked_partitions(partitions)
        broker = internals.transaction_arguments.checked_broker(broker_id)
        operation = operations.transactions.describe_producers
        return self._run("Describing producers", timeout_ms, operation, wanted, broker)

    def abort_transaction(self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None) -> None:
        """End a transaction on one partition that no coordinator will end, by an abort marker there.

        Not for a transaction that its coordinator knows: the records so far are lost, and the producer may still commit
        the others without noticing. `fence_producers` aborts such a one as a whole.

        Raises InvalidProducerEpochError and TransactionCoordinatorFencedError if the partition has seen newer epochs.
        An epoch that is too new is believed, and shuts the producer out.
        """
        wanted = internals.transaction_arguments.checked_spec(spec)
        what, operation = f"Aborting a transaction on {wanted}", operations.transactions.abort_transaction
        self._run(what, timeout_ms, operation, wanted)

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, FencedProducer]:
        """Refuse the producers that have these transactional ids from now on, and abort what they have open."""
        wanted = internals.transaction_arguments.checked_transactional_ids(transactional_ids)
        what = f"Fencing the producers of {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.transactions.fence_producers, wanted)

    def force_terminate_transaction(self, transactional_id: str, *, timeout_ms: int | None = None) -> None:
        """Abort the transaction of one id, if it has one, and refuse its producer, as `fence_producers` (KIP-939)."""
        wanted = internals.transaction_arguments.checked_transactional_id(transactional_id)
        what = f"Terminating the transaction of {wanted}"
        self._run(what, timeout_ms, operations.transactions.fence_producers, [wanted])

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate as `username` with `password` from now on; for PLAIN and SCRAM.

        Connections that there are stay as they are until they are made anew, or their broker wants them to authenticate
        again (`connections.max.reauth.ms`). May be called from any thread.

        Raises IllegalStateError if the client does not authenticate with a password, TypeError for what is not str.
        """
        self._fork_guard.check()
        self._driver.update_credentials(username, password)

    def health(self) -> ClientHealth:
        """Return how the client stands: what is wrong, and its connections. Waits for nothing."""
        self._fork_guard.check()
        return self._driver.health()

    def metrics(self) -> MetricValues:
        """Return the metrics of the client, under Java's names: by MetricName, and by plain name as well."""
        self._fork_guard.check()
        return self._metrics.snapshot()

    @property
    def _telemetry(self) -> ClientTelemetry:
        self._fork_guard.check()
        return self._pushed

    def close(self, timeout_ms: int | None = None) -> None:
        """Wait at most `timeout_ms` (by default default.api.timeout.ms) for calls under way, then close.

        A second call does nothing; in a forked child it touches none of the parent's connections.
        """
        limit_ms = checked_timeout(timeout_ms, self._config.default_api_timeout_ms)
        if not self._fork_guard.forked:
            self._driver.close(limit_ms)
        self._closed = True  # last: where a Ctrl-C comes before, the finalizer ends the thread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a Ctrl-C the calls of other threads are not waited for either.
        self.close(0 if kind is not None and issubclass(kind, KeyboardInterrupt) else None)

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._fork_guard.forked:
            return
        self._driver.close_soon()
        message = f"KafkaAdminClient {self._client_id} was not closed"
        warnings.warn(message, ResourceWarning, source=self, stacklevel=1)

    def _run(
        self,
        what: str,
        timeout_ms: int | None,
        operation: Callable[Concatenate[OperationContext, P], Operation[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        self._fork_guard.check()
        timer = self._time.timer(checked_timeout(timeout_ms, self._config.default_api_timeout_ms))
        context = OperationContext(self._driver, timer, self._backoff)
        return context.run(operation(context, *args, **kwargs), what)
