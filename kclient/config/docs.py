"""Settings as Markdown.

docs/configuration.md is made by

    python -m kclient.config.docs kclient.producer.config:ProducerConfig \\
        kclient.consumer.config:ConsumerConfig kclient.consumer.share_config:ShareConsumerConfig \\
        kclient.admin.config:AdminConfig > docs/configuration.md
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from kclient.config.config_def import REQUIRED, ConfigKey, Importance, Support
from kclient.config.declare import Config, definition_of

_INTRODUCTION = """# Configuration

The names, types, defaults and meanings are those of Apache Kafka's Java client; names that begin with `kclient.`
are kclient's own. Settings are given as a mapping, as keyword arguments with underscores for the dots, or in a Java
`.properties` file. Durations are in milliseconds and sizes in bytes unless the name says otherwise.

A setting that is unknown, given twice or not valid raises `ConfigError`. What is not implemented yet, and what only
a JVM can use, stands apart at the end of each section.

These defaults differ from Java's:

- `receive.buffer.bytes` and `send.buffer.bytes` are -1: the system's buffers, which grow as needed. Java's 32 to
  128 KiB cost about a quarter of the rate of reading, and more on lines with a long way.
- Without a serializer or deserializer, keys and values are bytes.
- `metric.reporters` is empty: there is no JMX.

This file is generated; `kclient/config/docs.py` says how.
"""
_ORDER = list(Importance)


def render(cls: type[Config]) -> str:
    """A section of Markdown with tables of the settings of `cls`, the most important ones first in each."""
    keys = sorted(definition_of(cls), key=lambda key: (_ORDER.index(key.importance), key.name))
    title = f"{cls.client[0].upper()}{cls.client[1:]}"
    lines = []
    for support, heading in _HEADINGS.items():
        lines += [
            heading.format(title),
            "",
            "| setting | type | default | allowed | importance | what it does |",
            "|---|---|---|---|---|---|",
            *(_row(key) for key in keys if key.support is support),
            "",
        ]
    return "\n".join(lines)


def render_document(classes: Sequence[type[Config]]) -> str:
    """The whole document, with a section for each of `classes`."""
    return "\n".join([_INTRODUCTION, *(render(cls) for cls in classes)])


def _row(key: ConfigKey) -> str:
    allowed = key.validator.describe() if key.validator is not None else ""
    cells = [f"`{key.name}`", key.type.value, _default(key), allowed, key.importance.value, key.doc]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_HEADINGS = {
    Support.YES: "## {}",
    Support.LATER: """### {}: not implemented yet

Their defaults are accepted, and what means "off"; everything else raises `ConfigError`.""",
    Support.JVM: """### {}: for the JVM only

Accepted and ignored, with a warning.""",
}


def _default(key: ConfigKey) -> str:
    if key.default is REQUIRED:
        return "required"
    if key.default is None:
        return "none"
    if isinstance(key.default, bool):
        return "`true`" if key.default else "`false`"
    text = ",".join(map(str, key.default)) if isinstance(key.default, list) else str(key.default)
    return f"`{text}`" if text else "empty"


def load(path: str) -> type[Config]:
    """The class of settings at `path`, as in `kclient.producer.config:ProducerConfig`."""
    module, _, name = path.partition(":")
    cls = getattr(importlib.import_module(module), name)
    if not (isinstance(cls, type) and issubclass(cls, Config)):
        raise SystemExit(f"{path} is not a class of settings")
    return cls


if __name__ == "__main__":
    sys.stdout.write(render_document([load(path) for path in sys.argv[1:]]))
