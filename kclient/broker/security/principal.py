"""KafkaPrincipal: who is at the other end of a connection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import attrs

from kclient.errors import ConfigError

USER = "User"
_SETTING = "ssl.principal.mapping.rules"
_RULE = re.compile(r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?)")
_BACK_REFERENCE = re.compile(r"\$(\d)")

# Names of RFC 4519 and RFC 2253 for what OpenSSL gives a long name.
_SHORT_NAMES = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
_SPECIAL = re.compile(r'([,+"\\<>;=])')


@attrs.frozen
class KafkaPrincipal:
    """A kind and a name, as `User:alice`. Immutable."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = KafkaPrincipal(USER, "ANONYMOUS")
"""A client of a listener that asks nobody who it is."""


def distinguished_name(subject: Iterable[Iterable[tuple[str, str]]]) -> str:
    """Return the subject of a certificate, as Python's ssl gives it, in the form of RFC 2253: the last part first.

    That is the name by which Kafka knows the owner of a certificate.
    """
    parts = [
        "+".join(f"{_SHORT_NAMES.get(name, name)}={_escaped(value)}" for name, value in part)
        for part in subject
    ]
    return ",".join(reversed(parts))


def _escaped(value: str) -> str:
    escaped = _SPECIAL.sub(r"\\\1", value)
    if escaped.startswith(("#", " ")):
        escaped = f"\\{escaped}"
    return f"{escaped[:-1]}\\ " if escaped.endswith(" ") and len(value) > 1 else escaped


@attrs.frozen
class _Rule:
    """One rule; without a pattern names stay as they are."""

    pattern: re.Pattern[str] | None
    replacement: str = ""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        found = self.pattern.fullmatch(name)
        if found is None:
            return None
        mapped = _BACK_REFERENCE.sub(lambda group: found[int(group[1])] or "", self.replacement)
        return {"L": mapped.lower(), "U": mapped.upper()}.get(self.case, mapped)


@attrs.frozen
class PrincipalMapping:
    """Rules that make the name of a user out of that of a certificate (`ssl.principal.mapping.rules`, KIP-371).

    The first that fits decides; without one the name stays as it is. Immutable.
    """

    _rules: Sequence[_Rule] = ()

    @classmethod
    def parse(cls, text: str) -> PrincipalMapping:
        """Parse rules separated by commas: `RULE:PATTERN/REPLACEMENT/`, with L or U at its end for the case, and
        `DEFAULT`. Raises ConfigError.
        """
        rules = []
        at = 0
        text = text.strip()
        while at < len(text):
            found = _RULE.match(text, at)
            if found is None or (found.end() < len(text) and text[found.end()] != ","):
                raise ConfigError(
                    f"{_SETTING}: {text[at:]!r} does not begin with a rule: DEFAULT, or RULE:PATTERN/REPLACEMENT/ with "
                    "L or U behind it",
                    name=_SETTING,
                )
            rules.append(_rule(found))
            at = found.end() + 1
            while at < len(text) and text[at].isspace():
                at += 1
        return cls(rules)

    def user(self, name: str) -> KafkaPrincipal:
        """Return the principal of the owner of a certificate with the distinguished name `name`."""
        for rule in self._rules:
            mapped = rule.apply(name)
            if mapped is not None:
                return KafkaPrincipal(USER, mapped)
        return KafkaPrincipal(USER, name)


def _rule(found: re.Match[str]) -> _Rule:
    if found[1]:
        return _Rule(None)
    try:
        pattern = re.compile(found[2])
    except re.error as error:
        raise ConfigError(
            f"{_SETTING}: the pattern {found[2]!r} is not one: {error}", name=_SETTING
        ) from None
    groups = [int(number) for number in _BACK_REFERENCE.findall(found[3])]
    if groups and max(groups) > pattern.groups:
        raise ConfigError(
            f"{_SETTING}: {found[3]!r} names the group ${max(groups)}, which {found[2]!r} does not have",
            name=_SETTING,
        )
    return _Rule(pattern, found[3], found[4])
