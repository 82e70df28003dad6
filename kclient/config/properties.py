"""Java `.properties` files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kclient.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_UNICODE_ESCAPE = re.compile(r"[0-9a-fA-F]{4}", re.ASCII)


def load_properties(path: str | Path) -> dict[str, str]:
    """The settings of the file at `path`.

    The file is read as UTF-8, or as Latin-1 if it is not valid UTF-8 (what Java wrote before version 9).
    Raises ConfigError with the file's name if it cannot be read or is malformed.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(
            f"The configuration file {str(path)!r} cannot be read: {error.strerror}."
        ) from error
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return parse_properties(text, source=str(path))


def parse_properties(text: str, *, source: str = "properties") -> dict[str, str]:
    """The keys and values in `text`, by the rules of `java.util.Properties.load`, except that a key may come
    only once.

    Raises ConfigError naming `source` and the line for a repeated key or a malformed `\\uXXXX`.
    """
    found: dict[str, str] = {}
    first_line: dict[str, int] = {}
    for number, line in _logical_lines(text):
        raw_key, raw_value = _split(line)
        try:
            key, value = _unescape(raw_key), _unescape(raw_value)
        except ValueError as error:
            raise ConfigError(f"{source}, line {number}: {error}.") from None
        if key in found:
            raise ConfigError(
                f"{source}, line {number}: {key} is already set in line {first_line[key]}; remove one.",
                name=key,
            )
        found[key] = value
        first_line[key] = number
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, continuations joined, each with the number of its first natural line."""
    pending: str | None = None
    start = 0
    naturals = _LINE_ENDS.split(text)
    if not naturals[-1]:
        naturals.pop()  # what follows the last line end is not a line
    for number, natural in enumerate(naturals, 1):
        line = natural.lstrip(_BLANKS)
        if not pending:
            # Also where a line was continued before it said anything.
            if line[:1] in {"#", "!"} or (not line and pending is None):
                pending = None
                continue
            pending, start = "", number
        pending += line
        backslashes = len(pending) - len(pending.rstrip("\\"))
        if backslashes % 2:
            pending = pending[:-1]
            continue
        if pending:
            yield start, pending
        pending = None
    if pending is not None:
        yield start, pending


def _split(line: str) -> tuple[str, str]:
    """Key and value, both still escaped: the key ends at the first unescaped `=`, `:` or blank."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in {"=", ":"}:
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char != "\\":
            out.append(char)
            continue
        escaped = text[at : at + 1]
        at += 1
        if escaped == "u":
            digits = text[at : at + 4]
            if not _UNICODE_ESCAPE.fullmatch(digits):
                raise ValueError(f"\\u must be followed by four hexadecimal digits, not {digits!r}")
            out.append(chr(int(digits, 16)))
            at += 4
        else:
            out.append(_ESCAPES.get(escaped, escaped))
    # Java's characters are UTF-16 units: two escapes may form one character.
    return "".join(out).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
