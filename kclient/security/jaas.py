"""Parser of `sasl.jaas.config`: one login module with its options, in Java's JAAS notation.

`org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="secret";`

Nothing that it names is ever imported: a module is a word by which a mechanism is known (CVE-2023-25194).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import attrs

from kclient.config.values import Password
from kclient.errors import ConfigError

_SETTING = "sasl.jaas.config"
_TOKEN = re.compile(
    r"""\s+ | //[^\n]* | /\*.*?\*/
    | "(?P<double>(?:[^"\\\n]|\\.)*)" | '(?P<single>(?:[^'\\\n]|\\.)*)'
    | (?P<mark>[=;]) | (?P<word>[^\s=;"']+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\([0-3]?[0-7]{1,2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}
_FLAGS = {"required", "requisite", "sufficient", "optional"}


@attrs.frozen
class LoginModule:
    """A login module and its options, which may be secrets."""

    name: str
    """The name of the class, without its package."""
    options: Mapping[str, str] = attrs.field(repr=False)

    def option(self, name: str) -> str:
        """Return an option that there has to be. Raises ConfigError."""
        if name not in self.options:
            raise ConfigError(f'{_SETTING}: {self.name} needs the option {name}="...".', name=_SETTING)
        return self.options[name]


def parse_jaas(text: Password) -> LoginModule:
    """Return the login module of `text`. Raises ConfigError, which says where it is wrong and nothing of the values."""
    tokens = list(_tokens(text.value))
    if len(tokens) < 3:
        raise _error('it is a login module, a flag, options and a semicolon: Module required name="value";')
    (name, _), (flag, _) = tokens[:2]
    if flag.lower() not in _FLAGS:
        raise _error(f"the second word is one of {', '.join(sorted(_FLAGS))}")
    options: dict[str, str] = {}
    at = 2
    while tokens[at : at + 1] != [(";", True)]:
        triple = tokens[at : at + 3]
        if len(triple) < 3 or triple[1] != ("=", True) or triple[0][1] or triple[2][1]:
            last = f" after the option {list(options)[-1]}" if options else " after the flag"
            raise _error(f'name="value" or a semicolon is missing{last}')
        options[triple[0][0]] = triple[2][0]
        at += 3
    if at + 1 != len(tokens):
        raise _error("there is more behind the semicolon; one login module is all that is allowed")
    return LoginModule(name.rpartition(".")[2], options)


def jaas_text(module: LoginModule) -> str:
    """Return the text of which `parse_jaas` makes `module`."""
    options = "".join(f' "{_escaped(name)}"="{_escaped(value)}"' for name, value in module.options.items())
    return f"{module.name} required{options};"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _tokens(text: str) -> Iterator[tuple[str, bool]]:
    """Words and marks, and of each whether it is a mark."""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise _error("a quotation mark is not closed")
        at = match.end()
        if match["mark"] is not None:
            yield match["mark"], True
        elif match["word"] is not None:
            yield match["word"], False
        elif (quoted := match["double"] if match["double"] is not None else match["single"]) is not None:
            yield _ESCAPE.sub(_unescaped, quoted), False


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0].isdigit() and code[0] < "8" else _ESCAPED.get(code, code)


def _error(text: str) -> ConfigError:
    return ConfigError(f"{_SETTING}: {text}.", name=_SETTING)
