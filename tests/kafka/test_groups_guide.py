"""The programs and commands of docs/groups.md run as they stand, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.guides import kclient_commands, python_blocks, run_block
from harness.real_kafka.broker import RealKafka
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.cli.main import main
from kclient.common.topic_partition import TopicPartition


@pytest.mark.heavy
@pytest.mark.parametrize("number", range(len(python_blocks("docs/groups.md"))))
def test_a_program_of_the_guide_runs(kafka: RealKafka, tmp_path: Path, number: int) -> None:
    block = python_blocks("docs/groups.md")[number]
    run_block(block.replace("localhost:9092", kafka.bootstrap_servers), tmp_path)


def test_its_commands_run_and_do_what_they_say(kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    servers = kafka.bootstrap_servers
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        if "seats" not in admin.list_topics():
            admin.create_topics([NewTopic("seats", 1, 1)])
            wait_until(lambda: "seats" in admin.list_topics(), what="the topic")
        admin.alter_consumer_group_offsets("ushers", {TopicPartition("seats", 0): 1})
        printed = []
        for command in kclient_commands("docs/groups.md"):
            assert main([*command, "--bootstrap-server", servers]) == 0, command
            printed.append(capsys.readouterr().out)
        assert [" ".join(command[:2]) for command in kclient_commands("docs/groups.md")] == [
            *("groups --list", "groups --describe", "groups --reset-offsets", "groups --delete")
        ]
        listed, described, reset, deleted = printed
        assert "ushers\t" in listed
        assert "CURRENT-OFFSET" in described
        assert "ushers\tseats\t0\t0" in reset
        assert "'ushers'" in deleted
        assert "ushers" not in admin.list_groups()
