"""Settings as documentation."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from kclient.admin.config import AdminConfig
from kclient.config import definition_of, docs
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.producer.config import ProducerConfig

ROOT = Path(docs.__file__).resolve().parents[2]


def test_the_document_is_current() -> None:
    document = docs.render_document([ProducerConfig, ConsumerConfig, ShareConsumerConfig, AdminConfig])
    written = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert written == document, "make it anew as kclient/config/docs.py says"


def test_the_documented_command_makes_the_document() -> None:
    match = re.search(r"python (-m kclient\.config\.docs .*?) > docs", docs.__doc__ or "", re.DOTALL)
    assert match is not None
    arguments = match[1].replace("\\\n", " ").split()
    made = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    assert made.stdout == docs.render_document(
        [ProducerConfig, ConsumerConfig, ShareConsumerConfig, AdminConfig]
    )


def test_make_docs_runs_the_documented_command() -> None:
    match = re.search(r"python (-m kclient\.config\.docs .*?) > docs", docs.__doc__ or "", re.DOTALL)
    recipe = re.search(
        r"python (-m kclient\.config\.docs .*?) > docs", (ROOT / "Makefile").read_text(), re.DOTALL
    )
    assert match is not None
    assert recipe is not None
    assert recipe[1].replace("\\\n", " ").split() == match[1].replace("\\\n", " ").split()


def test_a_section_has_one_row_for_every_setting() -> None:
    rows = [line for line in docs.render(ProducerConfig).splitlines() if line.startswith("| `")]
    assert sorted(row.split("`")[1] for row in rows) == [key.name for key in definition_of(ProducerConfig)]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 7 for row in rows)


def test_what_is_not_implemented_and_what_is_for_the_jvm_only_stands_apart() -> None:
    section = docs.render(ConsumerConfig)
    later, jvm = (
        section.index("### Consumer: not implemented yet"),
        section.index("### Consumer: for the JVM only"),
    )
    assert (
        section.index("| `group.id` |")
        < later
        < section.index("| `sasl.oauthbearer.expected.issuer` |")
        < jvm
    )
    assert jvm < section.index("| `ssl.provider` |")
