"""Clients in a process that forks: they stay the parent's, and the child can have its own."""

from __future__ import annotations

import pytest

from harness.programs import run_script
from harness.topics import new_topic

_FORK = """
    import gc, os, sys, warnings
    import psutil
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 dislikes a fork beside threads
    from kclient import KafkaProducer, KafkaConsumer, KafkaAdminClient, TopicPartition

    servers, topic, way = sys.argv[1:]
    producer = KafkaProducer(bootstrap_servers=servers, linger_ms=0)
    consumer = KafkaConsumer(bootstrap_servers=servers, auto_offset_reset="earliest", group_id="forked")
    admin = KafkaAdminClient(bootstrap_servers=servers)
    producer.send(topic, b"before").result(30)
    consumer.assign([TopicPartition(topic, 0)])
    while not consumer.poll(100):
        pass
    admin.list_topics()

    def connections():
        return sorted(c.laddr.port for c in psutil.Process().net_connections() if c.status == "ESTABLISHED")

    def child():
        global producer, consumer, admin
        uses = {
            "send": lambda: producer.send(topic, b"child"),
            "send keyed": lambda: producer.send(topic, b"child", key=b"k"),
            "flush": lambda: producer.flush(),
            "partitions_for": lambda: producer.partitions_for(topic),
            "begin_transaction": lambda: producer.begin_transaction(),
            "producer metrics": lambda: producer.metrics(),
            "poll": lambda: consumer.poll(100),
            "next": lambda: next(consumer),
            "commit": lambda: consumer.commit_sync(),
            "wakeup": lambda: consumer.wakeup(),
            "consumer metrics": lambda: consumer.metrics(),
            "list_topics": lambda: admin.list_topics(),
        }
        for name, use in uses.items():
            try:
                use()
            except BaseException as error:
                print(name, type(error).__name__)
            else:
                print(name, "went on")
        producer.close()
        consumer.close()
        admin.close()
        with KafkaProducer(bootstrap_servers=servers) as own:
            own.send(topic, b"from the child").result(30)
        uses = use = None
        producer = consumer = admin = None
        gc.collect()
        sys.stdout.flush()

    before = connections()
    if way == "fork":
        pid = os.fork()
        if not pid:
            child()
            sys.exit(7)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    else:
        import multiprocessing
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join()
        status = process.exitcode
    print("status", status)
    producer.send(topic, b"after").result(30)
    values = []
    while b"after" not in values:
        values += [record.value for record in consumer.poll(100)]
    admin.list_topics()
    print("values", values)
    print("same connections", connections() == before)
    producer.close()
    consumer.close()
    admin.close()
"""


@pytest.mark.parametrize("way", ["fork", "multiprocessing"])
def test_a_forked_child_cannot_use_its_parents_clients_nor_harm_them(servers: str, way: str) -> None:
    topic = new_topic(servers, 1)
    out, err = run_script(_FORK, servers, topic, way)
    lines = out.splitlines()
    uses = dict(line.rsplit(" ", 1) for line in lines if "Error" in line or line.endswith("went on"))
    assert len(uses) == 12
    assert set(uses.values()) == {"ForkedClientError"}, uses
    assert f"status {7 if way == 'fork' else 0}" in lines
    assert "values [b'from the child', b'after']" in lines
    assert "same connections True" in lines
    assert err == ""


def test_a_future_of_the_parent_says_in_the_child_that_it_will_never_be_done(servers: str) -> None:
    source = """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from kclient import KafkaProducer
        producer = KafkaProducer(bootstrap_servers=sys.argv[1], linger_ms=60_000, delivery_timeout_ms=120_000)
        future = producer.send(sys.argv[2], b"x")
        pid = os.fork()
        if not pid:
            try:
                future.result()
            except Exception as error:
                print(type(error).__name__, flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
        producer.close()
        print(future.result(0).offset)
    """
    topic = new_topic(servers, 1)
    out, _ = run_script(source, servers, topic)
    assert out.splitlines() == ["ForkedClientError", "0"]


def test_a_record_of_the_child_does_not_go_into_an_open_batch_of_the_parent(servers: str) -> None:
    source = """
        import os, sys, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from kclient import KafkaProducer
        asked = []
        with KafkaProducer(
            bootstrap_servers=sys.argv[1], linger_ms=60_000, delivery_timeout_ms=120_000, value_serializer=asked.append
        ) as producer:
            for _ in range(3):
                producer.send(sys.argv[2], b"parent")
            pid = os.fork()
            if not pid:
                try:
                    producer.send(sys.argv[2], b"child")
                except Exception as error:
                    print(type(error).__name__, len(asked), flush=True)
                os._exit(0)
            os.waitpid(pid, 0)
    """
    out, _ = run_script(source, servers, new_topic(servers, 1))
    assert out.splitlines() == ["ForkedClientError 3"]


def test_a_child_forked_while_a_client_starts_in_another_thread_ends(servers: str) -> None:
    source = """
        import os, sys, threading, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        from kclient import KafkaProducer
        from kclient.producer.internals import lifecycle

        held, done = threading.Event(), threading.Event()

        def start_or_end_a_client():
            with lifecycle._running_lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=start_or_end_a_client)
        thread.start()
        held.wait()
        pid = os.fork()
        if not pid:
            KafkaProducer(bootstrap_servers=sys.argv[1]).close()
            sys.exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        done.set()
        thread.join()
    """
    out, _ = run_script(source, servers)
    assert out == "5\n"
