"""The settings of docs/security.md are settings of kclient, and name mechanisms that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kclient.config.values import Password
from kclient.producer.config import ProducerConfig
from kclient.security.jaas import parse_jaas
from kclient.security.sasl_credentials import sasl_credentials
from kclient.utils.log_context import LogContext

GUIDE = Path(__file__).parent.parent / "docs" / "security.md"
BLOCKS = re.findall(r"^```properties\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_settings_is_taken_as_it_is(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEYSTORE_PASSWORD", "secret")
    (tmp_path / "kafka.properties").write_text("sasl.jaas.config=M required a=b;\n")
    block = block.replace("/run/secrets", str(tmp_path))
    file = tmp_path / "client.properties"
    file.write_text(
        block if "bootstrap.servers" in block else f"bootstrap.servers=broker.example:9094\n{block}"
    )
    config = ProducerConfig.parse(str(file), {})
    if config.sasl_mechanism in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}:
        assert sasl_credentials(config, LogContext()).mechanism == config.sasl_mechanism


def test_the_login_modules_of_the_text_can_be_read() -> None:
    modules = re.findall(r"`([\w.]+LoginModule \w+ [^`]*;)`", GUIDE.read_text(encoding="utf-8"))
    assert len(modules) >= 2
    for text in modules:
        assert parse_jaas(Password(text)).options
