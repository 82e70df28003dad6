"""Dead letters sent back by a run that dies: each is there once for who reads what is committed."""

from __future__ import annotations

import re
import uuid
from collections import Counter

import pytest

from harness.programs import start_script
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, read_all
from kclient.cli.main import main
from kclient.processing.dead_letters import Reason, dead_letter
from kclient.producer import KafkaProducer

LETTERS = 300
DEADLINE_S = 60.0

# Dies without a word in its third transaction, with that one's records and offsets sent.
DYING = """
    import os, sys
    from kclient.cli.main import main
    from kclient.processing import replay
    from kclient.producer import KafkaProducer

    replay.PER_TRANSACTION = 50
    committed = KafkaProducer.commit_transaction
    commits = []

    def commit(self):
        commits.append(1)
        if len(commits) == 3:
            self.flush()
            print("dies", flush=True)
            os._exit(9)
        committed(self)

    KafkaProducer.commit_transaction = commit
    main(sys.argv[1:])
"""


def test_a_run_that_dies_and_is_started_again_sends_every_letter_once(
    kafka: RealKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    servers = kafka.bootstrap_servers
    source, dead = new_topic(servers, 2), new_topic(servers, 2)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(LETTERS):
            producer.send(source, b"%d" % number, key=b"%d" % number)
        producer.flush()
        first = read_all(servers, source)
        # In transactions, as the loop writes them where it runs exactly once: their markers are no letters.
        with KafkaProducer(bootstrap_servers=servers, transactional_id=uuid.uuid4().hex) as loop:
            loop.init_transactions()
            for number, record in enumerate(first):
                with loop.transaction():
                    loop.send(
                        dead_letter(dead, record, Reason(ValueError("odd" if number % 2 else "even"), 1))
                    )
    words = ["pipeline", "replay-dead-letters", "--bootstrap-server", servers, "--topic", dead]
    # In small portions, or one poll would bring all of it.
    words += ["--consumer-property", "max.poll.records=20", "--execute"]
    with start_script(DYING, *words, "--reason", "odd") as dying:
        out, err = dying.communicate(timeout=DEADLINE_S)
    assert (out, dying.returncode) == ("dies\n", 9), err
    assert main([*words, "--reason", "odd"]) == 0
    (sent,) = re.findall(r"(\d+) letters sent", capsys.readouterr().err)
    # What was committed is not sent again, what was written and not committed is.
    assert int(sent) == LETTERS // 2 - 100
    assert main(words) == 0
    assert f"{LETTERS // 2} letters sent, 0 left" in capsys.readouterr().err
    assert main(words) == 0
    assert "0 letters sent, 0 left" in capsys.readouterr().err
    found = Counter(record.value for record in read_all(servers, source, isolation_level="read_committed"))
    assert found == Counter({record.value: 2 for record in first})
