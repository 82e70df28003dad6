"""Plans as CSV, in the two forms of Kafka's tool."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kclient.cli.group_csv import read_plans, write_plans
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
PLANS = {"a, b": {T1: 5, T0: 0}, 'the "c"': {U0: 7}}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "plan.csv"


def test_plans_of_several_groups_name_them_and_come_back_as_they_were(file: Path) -> None:
    text = io.StringIO()
    write_plans(PLANS, text, with_groups=True)
    assert text.getvalue() == '"a, b",t,0,0\n"a, b",t,1,5\n"the ""c""",u,0,7\n'
    file.write_text(text.getvalue())
    for groups in (["x", "y"], ["a, b"], []):
        assert read_plans(str(file), groups) == PLANS


def test_the_plan_of_one_group_leaves_it_out(file: Path) -> None:
    text = io.StringIO()
    write_plans({"g": {T0: 3, U0: 4}}, text, with_groups=False)
    assert text.getvalue() == "t,0,3\nu,0,4\n"
    file.write_text(text.getvalue())
    assert read_plans(str(file), ["other"]) == {"other": {T0: 3, U0: 4}}


def test_what_kafkas_tool_writes_is_read(file: Path) -> None:
    # It quotes long names, and ends the file with an empty line.
    file.write_bytes(b'"a-topic-with-a-rather-long-name",0,5\r\nt, 1, 6\n\n')
    assert read_plans(str(file), ["g"]) == {
        "g": {TopicPartition("a-topic-with-a-rather-long-name", 0): 5, T1: 6}
    }


@pytest.mark.parametrize(
    ("text", "groups", "said"),
    [
        ("t,0,1\n", ["a", "b"], "line 1: there should be group,topic,partition,offset"),
        ("t,0,1\nt,1\n", ["a"], "line 2: there should be topic,partition,offset"),
        ("t,0,1\ng,t,0,1\n", ["a"], "line 2"),
        ("t,0\n", ["a"], "line 1"),
        ("t,x,1\n", ["a"], "line 1: 'x' is no partition"),
        ("t,-1,1\n", ["a"], "'-1' is no partition"),
        ("t,0,-1\n", ["a"], "'-1' is no offset"),
        ("t,0,1.5\n", ["a"], "'1.5' is no offset"),
        (f"t,0,{2**63}\n", ["a"], "is no offset"),
        (f"t,{2**31},0\n", ["a"], "is no partition"),
        ("t,0,\n", ["a"], "'' is no offset"),
        ("a b,0,1\n", ["a"], "line 1: "),
        (",0,1\n", ["a"], "line 1: "),
    ],
)
def test_a_line_that_is_no_plan_is_named(file: Path, text: str, groups: list[str], said: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_plans(str(file), groups)


def test_a_file_that_is_no_text_is_refused(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"plan\.csv, line"):
        read_plans(str(file), ["g"])
