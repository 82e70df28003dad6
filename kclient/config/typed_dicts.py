"""Settings as TypedDicts, by which editors and type checkers know the keyword arguments of the clients.

Each `settings.py` lies beside its `config.py` (`share_settings.py` beside `share_config.py`) and is made by

    python -m kclient.config.typed_dicts kclient.producer.config:ProducerConfig \\
        kclient.consumer.config:ConsumerConfig kclient.consumer.share_config:ShareConsumerConfig \\
        kclient.admin.config:AdminConfig

A type says what people write in Python, which is less than what is accepted for the sake of `.properties` files: a
number is an int and not a text with digits, a word is spelt as it is documented, and no class has a Java name.
Serializers and deserializers are left out. The constructors have parameters for these, as they decide the types of
keys and values.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from kclient.config.client_configs import ClientConfig
from kclient.config.config_def import REQUIRED, ConfigKey, Support
from kclient.config.declare import Config, definition_of
from kclient.config.docs import load
from kclient.config.java_names import JAVA_NAMES
from kclient.config.validators import OffsetReset, OneOf, WordOrFunction
from kclient.config.values import Type

_WIDTH, _PROSE_WIDTH = 110, 120
"""The lengths of lines that ruff wants of code and grants to docstrings."""
_PARAMETERS = frozenset({"serializer", "deserializer"})
_SIMPLE = {
    Type.BOOLEAN: "bool",
    Type.SHORT: "int",
    Type.INT: "int",
    Type.LONG: "int",
    Type.DOUBLE: "float",
    Type.STRING: "str",
    Type.PASSWORD: "str | Password",
}
_NOTES = {Support.LATER: "Not implemented yet.", Support.JVM: "For the JVM only."}
# Where the names that types are made of come from, but for those that a setting itself names.
_MODULES = {
    "ByDuration": "kclient.config.durations",
    "ClientSettings": "kclient.config.settings",
    "Literal": "typing",
    "Password": "kclient.config.values",
    "Sequence": "collections.abc",
    "TypeAlias": "typing",
    "TypedDict": "typing",
}


@attrs.frozen
class _Entry:
    """A key of a TypedDict, as source text."""

    name: str
    type: str
    doc: str

    def lines(self) -> list[str]:
        annotation = f"    {self.name}: {self.type}"
        lines = [annotation]
        if len(annotation) > _WIDTH:
            lines = [f"    {self.name}: (", f"        {self.type}", "    )"]
        if len(self.doc) + 10 <= _PROSE_WIDTH:
            return [*lines, f'    """{self.doc}"""']
        first, *others = textwrap.wrap(self.doc, _PROSE_WIDTH - 7)
        return [*lines, f'    """{first}', *(f"    {other}" for other in others), '    """']


def render(classes: Sequence[type[Config]]) -> dict[Path, str]:
    """The files with the TypedDicts of `classes` and of what all of them have in common, as source text."""
    entries = {cls: [_entry(key) for key in _keys(cls)] for cls in classes}
    shared = [_entry(key) for key in _keys(ClientConfig)]
    common = [entry for entry in shared if all(entry in entries[cls] for cls in classes)]
    files = {_path(ClientConfig): _file(ClientConfig, "TypedDict", "every client", common)}
    for cls in classes:
        own = [entry for entry in entries[cls] if entry not in common]
        article = "an" if cls.client[0] in "aeiou" else "a"
        files[_path(cls)] = _file(cls, "ClientSettings", f"{article} {cls.client}", own)
    return files


def _path(cls: type[Config]) -> Path:
    path = Path(sys.modules[cls.__module__].__file__ or "")
    kind = path.stem.removesuffix("config") if path.stem.endswith("config") else ""
    return path.with_name(f"{kind}settings.py")


def _keys(cls: type[Config]) -> list[ConfigKey]:
    return [key for key in definition_of(cls) if key.java_kind not in _PARAMETERS]


def _file(cls: type[Config], base: str, owner: str, entries: Sequence[_Entry]) -> str:
    name = cls.__name__.removesuffix("Config") + "Settings"
    body = [
        f"class {name}({base}, total=False):",
        f'    """Keyword arguments for the settings of {owner}; docs/configuration.md tells more."""',
        "",
        *(line for entry in entries for line in entry.lines()),
    ]
    kinds = {key.java_kind for key in _keys(cls) if key.java_kind and key.takes}
    aliases = [
        f"{_alias(kind)}: TypeAlias = {_words(_names(kind))}" for kind in sorted(kinds) if _names(kind)
    ]
    text = "\n".join([*aliases, "", "", *body] if aliases else body)
    gap = [""] if aliases else ["", ""]
    modules = dict(_MODULES)
    for key in _keys(cls):
        module, _, taken = key.takes.partition(":")
        modules[taken] = module
    modules.pop(name, None)
    head = ['"""Settings as keyword arguments. Made by `kclient.config.typed_dicts`."""', ""]
    head += ["from __future__ import annotations", "", *_imports(text, modules), *gap, text, ""]
    return "\n".join(head)


def _imports(text: str, modules: Mapping[str, str]) -> list[str]:
    """The import statements that `text` needs, as ruff wants them."""
    used = set(re.findall(r"\w+", re.sub(r'""".*?"""|"[^"\n]*"', "", text, flags=re.DOTALL)))
    names: dict[str, list[str]] = {}
    for name in sorted(used & modules.keys()):
        names.setdefault(modules[name], []).append(name)
    lines = [f"from {module} import {', '.join(names[module])}" for module in sorted(names)]
    ours = [line for line in lines if line.startswith("from kclient.")]
    return [*(line for line in lines if line not in ours), *([""] if ours else []), *ours]


def _entry(key: ConfigKey) -> _Entry:
    type_, default = _type(key), f"Default: {key.default!r}."
    if key.default is REQUIRED:
        default = "Required."
    elif key.default is None:
        default = "Optional."
        type_ += "" if type_ == "object" else " | None"
    doc = key.doc if key.support is Support.YES else f"{key.doc} {_NOTES[key.support]}"
    return _Entry(key.name.replace(".", "_"), type_, f"{default} {doc}")


def _type(key: ConfigKey) -> str:
    if isinstance(key.validator, OneOf):
        return _words(key.validator.words)
    if isinstance(key.validator, OffsetReset):
        return f"{_words(key.validator.words)} | ByDuration"
    if isinstance(key.validator, WordOrFunction):
        return f"{_words(key.validator.words)} | {key.takes.partition(':')[2]}"
    if key.type not in {Type.CLASS, Type.LIST}:
        return _SIMPLE[key.type]
    if not key.takes and key.type is Type.CLASS:
        return "object"
    if not key.takes:
        return f"str | Sequence[{'object' if key.java_kind else 'str'}]"
    names = [_alias(key.java_kind)] if key.java_kind and _names(key.java_kind) else []
    taken = key.takes.partition(":")[2]
    each = " | ".join([*names, taken, f"type[{taken}]"])
    return each if key.type is Type.CLASS else " | ".join([*names, f"Sequence[{each}]"])


def _names(kind: str) -> list[str]:
    return sorted(set(JAVA_NAMES[kind].values()))


def _alias(kind: str) -> str:
    return f"{kind.capitalize()}Name"


def _words(words: Sequence[str]) -> str:
    """A type for `words`, and for the number that a word is."""
    quoted = [f'"{word}"' for word in words]
    return f"Literal[{', '.join([*quoted, *(word for word in words if re.fullmatch('-?[0-9]+', word))])}]"


if __name__ == "__main__":
    for path, text in render([load(name) for name in sys.argv[1:]]).items():
        path.write_text(text, encoding="utf-8")
