"""Faults that a cluster of real brokers meets by chance: at its proxies, its brokers, its topics."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence

from harness.network.produce_answers import refuse
from harness.real_kafka.cluster import INTERNAL, ClusterBroker, RealCluster
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.protocol.api_keys import ApiKeys

# Answers in the broker's place, which never got the request.
_REFUSALS = (3, 6, 7, 14, 15, 16, 19, 20, 45, 56, 87)
# Answers of a broker that has appended the records all the same: it was demoted, or waited in vain for its followers,
# or its disk failed after that. The other refusals say that nothing was appended.
_AFTER_APPEND = (3, 6, 7, 14, 15, 16, 20, 56)
_NOT_LEADER = 6
_HEALING_S = 90.0
_PARTITIONED = 0.03


class NetworkChaos(threading.Thread):
    """Spoils what passes the proxies of `cluster` until stopped; `counts` says how often each fault was wanted.

    `apis` are those whose requests and answers are lost, cut off and held back. Now and then nothing at all passes
    between the clients and one broker, or two. The brokers always reach each other: `WorldChaos` takes that from them.
    """

    def __init__(
        self, cluster: RealCluster, rng: random.Random, apis: Sequence[ApiKeys] = (ApiKeys.PRODUCE,)
    ) -> None:
        super().__init__(name="network-chaos", daemon=True)
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._rng = rng
        self._apis = apis
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        while not self._stopping.wait(self._rng.uniform(0.02, 0.4)):
            if self._rng.random() < _PARTITIONED:
                self.counts["partition"] += 1
                self._partition(self._rng.choice((1, 1, 2)), self._rng.uniform(0.5, 4.0))
                continue
            proxy = self._rng.choice(self._cluster.brokers).proxy
            if self._rng.random() < 0.3:
                proxy.clear()  # rules that nothing met, and those that hold until something else comes
            rng, times = self._rng, self._rng.choice((1, 1, 1, 2, 3, 8, -1))
            kind = rng.choice(("refuse", "append", "cut", "delay", "lose", "drop", "hang up"))
            match kind:
                case "refuse":
                    code = rng.choice(_REFUSALS)
                    proxy.answer(ApiKeys.PRODUCE, refuse(code), times=times)
                    kind = f"refuse {code}"
                case "append":
                    code = rng.choice(_AFTER_APPEND)
                    proxy.answer(ApiKeys.PRODUCE, refuse(code), times=times, pass_on=True)
                    kind = f"append, answer {code}"
                case "cut":
                    ending = rng.choice((proxy.cut, proxy.reset))
                    ending(rng.choice((*self._apis, None)), rng.randrange(60), on_response=rng.random() < 0.5)
                case "delay":
                    api = rng.choice((*self._apis, None))
                    ms = rng.choice((5, 50, 300, 2500))
                    proxy.delay(api, ms, times=abs(times), on_response=rng.random() < 0.5)
                case "lose":
                    proxy.swallow(rng.choice(self._apis), on_response=rng.random() < 0.7)
                case "drop":
                    proxy.blackhole(rng.choice(self._apis), on_response=rng.random() < 0.5)
                case "hang up":
                    proxy.drop_connections(with_reset=rng.random() < 0.5)
            self.counts[kind] += 1
        for broker in self._cluster.brokers:
            broker.proxy.clear()

    def stop(self) -> None:
        """Let everything pass."""
        self._stopping.set()
        self.join(30)
        assert not self.is_alive(), "the chaos of the network did not end"

    def _partition(self, count: int, seconds: float) -> None:
        """Keep clients and some brokers apart. Connections stay open, and are of no use from then on."""
        proxies = [broker.proxy for broker in self._rng.sample(self._cluster.brokers, count)]
        for proxy in proxies:
            proxy.clear()
            for on_response in (False, True):
                proxy.blackhole(None, times=-1, on_response=on_response)
        self._stopping.wait(seconds)
        for proxy in proxies:
            proxy.clear()


class WorldChaos:
    """Kills, stops and pauses brokers, moves leaders, creates a topic again and again. Each ends with all in sync.

    `counts` has the number of each, and "coordinators moved": partitions of __transaction_state and __consumer_offsets
    that had another leader after a fault than before.
    """

    def __init__(
        self, cluster: RealCluster, admin: KafkaAdminClient, recreated: NewTopic, rng: random.Random
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._cluster = cluster
        self._admin = admin
        self._recreated = recreated
        self._rng = rng
        self._coordinators: dict[TopicPartition, int] = {}

    def run(self, seconds: float) -> None:
        """Make trouble for so long, of every kind in turn."""
        deadline = time.monotonic() + seconds
        kinds: list[Callable[[], None]] = []
        while time.monotonic() < deadline:
            if not kinds:
                kinds = [
                    self._kill,
                    self._demote,
                    self._pause,
                    self._pause_two,
                    self._move_leaders,
                    self._recreate,
                    self._recreate,
                ]
                self._rng.shuffle(kinds)
            kind = kinds.pop()
            self.counts[kind.__name__.strip("_")] += 1
            kind()
            time.sleep(self._rng.uniform(0.0, 2.0))

    def heal(self) -> None:
        """Wait until every partition has its leader and all replicas."""
        wait_until(self._healed, _HEALING_S, "all replicas in sync")

    def _healed(self) -> bool:
        try:
            if self._cluster.out_of_sync(self._admin):
                return False
            now = self._cluster.leaders(self._admin, INTERNAL)
        except KafkaError:
            return False  # a topic has just gone, or a broker does not answer yet
        before, self._coordinators = self._coordinators, now
        self.counts["coordinators moved"] += sum(now[tp] != before.get(tp, now[tp]) for tp in now)
        return True

    def _any(self) -> ClusterBroker:
        return self._rng.choice(self._cluster.brokers)

    def _kill(self) -> None:
        broker = self._any()
        broker.kill()
        time.sleep(self._rng.choice((0.0, 1.0, 5.0)))
        broker.start()
        self.heal()

    def _demote(self) -> None:
        """Shut a broker down in good order, which moves its leaderships, after it has said that it lost them."""
        broker = self._any()
        broker.proxy.answer(ApiKeys.PRODUCE, refuse(_NOT_LEADER), times=5, pass_on=True)
        time.sleep(self._rng.uniform(0.0, 0.2))
        broker.stop()
        broker.start()
        self.heal()

    def _pause(self) -> None:
        self._pause_some(1, self._rng.choice((1.0, 3.0, 6.0)))

    def _pause_two(self) -> None:
        self._pause_some(2, self._rng.choice((1.0, 4.0)))

    def _pause_some(self, count: int, seconds: float) -> None:
        brokers = self._rng.sample(self._cluster.brokers, count)
        for broker in brokers:
            broker.pause()
        time.sleep(seconds)
        for broker in brokers:
            broker.resume()
        self.heal()

    def _move_leaders(self) -> None:
        """Have every partition led by the next of its replicas."""
        wait_until(self._moved, _HEALING_S, "other leaders")
        self.heal()

    def _moved(self) -> bool:
        try:
            self._cluster.move_leaders(self._admin)
        except KafkaError:
            return False  # a broker that has just started knows no controller yet
        return True

    def _recreate(self) -> None:
        self._admin.delete_topics([self._recreated.name])
        time.sleep(self._rng.choice((0.0, 0.0, 1.0)))
        wait_until(self._create, _HEALING_S, "the topic created again")
        self.heal()

    def _create(self) -> bool:
        try:
            self._admin.create_topics([self._recreated])
        except KafkaError:
            return False  # the old one is still there
        return True
