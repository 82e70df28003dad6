"""Java .properties files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.config import load_properties, parse_properties
from kclient.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("a \t= \t b", {"a": "b"}),
        ("a==b", {"a": "=b"}),
        ("a = : b", {"a": ": b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("  \t a=b", {"a": "b"}),
        ("# a=b\n! c=d\n  # e=f\n\n \t\ng=h", {"g": "h"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=b\\\n   c", {"a": "bc"}),
        ("a=b\\\r\n\t c\\\n d", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\n# not a comment", {"a": "b# not a comment"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\=c\\:d = e", {"a b=c:d": "e"}),
        ("a=\\t\\n\\r\\f\\q\\\\", {"a": "\t\n\r\fq\\"}),
        ("a=\\u00e9\\u20AC", {"a": "é€"}),
        ("a=\\ud83d\\ude00", {"a": "😀"}),
        ("a=b\rc=d\r\ne=f", {"a": "b", "c": "d", "e": "f"}),
        ("a=\u2028b", {"a": "\u2028b"}),
        ("", {}),
        ("\\\n", {"": ""}),
        ("\\\n# a comment\na=b", {"a": "b"}),
    ],
)
def test_a_text_is_read_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_repeated_key_is_refused_with_both_lines() -> None:
    with pytest.raises(
        ConfigError, match=r"client\.properties, line 3: acks is already set in line 1"
    ) as caught:
        parse_properties("acks=1\n# c\nacks=all", source="client.properties")
    assert caught.value.name == "acks"


@pytest.mark.parametrize("text", ["a=\\u12", "a=\\u12g4", "a=\\u", "\\u=b", "a=\\u\u0661\u0661\u0661\u0661"])
def test_a_malformed_unicode_escape_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"line 2: \\u must be followed by four hexadecimal digits"):
        parse_properties("\n" + text)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_a_config_error(text: str) -> None:
    try:
        found = parse_properties(text)
    except ConfigError:
        return
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in found.items())


@given(st.dictionaries(st.text(min_size=1, max_size=8), st.text(max_size=12), max_size=4))
def test_what_is_escaped_as_java_stores_it_comes_back(properties: dict[str, str]) -> None:
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in properties.items())
    assert parse_properties(text) == properties


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
def test_a_file_is_read_as_utf8_or_else_as_latin1(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "client.properties"
    path.write_bytes("client.id=né".encode(encoding))
    assert load_properties(path) == load_properties(str(path)) == {"client.id": "né"}


def test_a_file_that_cannot_be_read_is_a_config_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.properties' cannot be read: No such file"):
        load_properties(tmp_path / "missing.properties")
    with pytest.raises(ConfigError, match="cannot be read"):
        load_properties(tmp_path)
