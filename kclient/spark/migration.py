"""The report on a job's options: which mean the same with `format("kclient")` as with Spark's own connector."""

from __future__ import annotations

import importlib.metadata
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TextIO

import attrs

from kclient.errors import ConfigError
from kclient.spark.limits import limits_without_triggers
from kclient.spark.option_names import OPTIONS, OURS, Use, check_names
from kclient.spark.options import parse_source
from kclient.spark.setting_names import KAFKA, sort_names
from kclient.spark.sink_options import parse_sink

_USES = {
    "batch read": Use.BATCH_READ,
    "streaming read": Use.STREAM_READ,
    "batch write": Use.BATCH_WRITE,
    "streaming write": Use.STREAM_WRITE,
}
_SUBSCRIPTIONS = ("assign", "subscribe", "subscribepattern")
_NEEDED = {"kafka.bootstrap.servers": "host:9092", "subscribe": "topic", "kclient.marker.topic": "topic"}
"""Values in the place of what is missing, so that the rest can be looked at."""
_OLDEST, _WITH_FILTERS, _WITH_TRIGGERS = (4, 0), (4, 1), (4, 2)


class Meaning(Enum):
    """The difference that the other format makes to an option."""

    REFUSED = "refused"
    """An error, before anything runs."""
    CHANGES = "changes"
    """It has another meaning."""
    IGNORED = "ignored"
    """It has no effect, which the log says as well."""
    OURS = "ours"
    """Spark's own connector does not have it."""
    SAME = "same"


@attrs.frozen
class Finding:
    """The difference for one option, or for the whole job (`option` is empty)."""

    use: str
    option: str
    meaning: Meaning
    text: str = ""


@attrs.frozen
class MigrationReport:
    """The findings about a job's options. `str()` is the text that was printed."""

    pyspark: str
    findings: tuple[Finding, ...]

    @property
    def runs(self) -> bool:
        """True if nothing is refused."""
        return not any(each.meaning is Meaning.REFUSED for each in self.findings)

    def options(self, meaning: Meaning) -> tuple[str, ...]:
        """Return the options of this meaning, in any of the uses."""
        found = (each.option for each in self.findings if each.meaning is meaning and each.option)
        return tuple(dict.fromkeys(found))

    def __str__(self) -> str:
        uses = dict.fromkeys(each.use for each in self.findings)
        return "\n".join(line for use in uses for line in self._lines(use))

    def _lines(self, use: str) -> Iterator[str]:
        yield f'format("kclient") in the place of format("kafka"), {use}, PySpark {self.pyspark}:'
        for meaning in Meaning:
            found = [each for each in self.findings if each.use == use and each.meaning is meaning]
            if meaning is Meaning.SAME and found:
                yield f"  {meaning.value:8} {', '.join(each.option for each in found)}"
                continue
            for each in found:
                # Most sentences name the option themselves.
                name = "" if each.option in each.text else f"{each.option}: "
                yield f"  {meaning.value:8} {name}{each.text}"


def migrate_report(
    options: Mapping[str, object],
    use: str | None = None,
    *,
    pyspark: str | None = None,
    file: TextIO | None = None,
) -> MigrationReport:
    """Print, and return, what of a job's options changes when `format("kafka")` becomes `format("kclient")`.

    `use` is one of "batch read", "streaming read", "batch write" and "streaming write"; without it the options say
    whether the job reads or writes or both, and a stream is assumed. `pyspark` is the version that the job will run
    with, "4.0" or "4.1.4"; without it that which is installed. Printed to `file`, or to standard output. Nothing is
    connected to, and values of options are not printed unless they are wrong, those of passwords never.

    Raises ValueError for another `use` or version.
    """
    version = pyspark or _installed()
    given = {name.lower(): _text(value) for name, value in options.items()}
    uses = [_known(use)] if use is not None else _guessed(given)
    findings = [each for one in uses for each in _Judge(one, given, _numbers(version)).findings()]
    report = MigrationReport(version, tuple(findings))
    print(report, file=file or sys.stdout)
    return report


def _known(use: str) -> Use:
    if use not in _USES:
        raise ValueError(f"use: {use!r} is none of {', '.join(_USES)}.")
    return _USES[use]


def _guessed(given: Mapping[str, str]) -> list[Use]:
    reads = any(name in given for name in _SUBSCRIPTIONS)
    batch = any(name in given for name in ("endingoffsets", "endingtimestamp", "endingoffsetsbytimestamp"))
    uses = [Use.BATCH_READ if batch else Use.STREAM_READ] if reads else []
    if "topic" in given or not reads:
        uses.append(Use.BATCH_WRITE if batch else Use.STREAM_WRITE)
    return uses


def _installed() -> str:
    try:
        return importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:
        return "4.3"


def _numbers(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version, re.ASCII)
    if found is None:
        raise ValueError(f"pyspark: {version!r} is no version such as 4.1.4.")
    return int(found[1]), int(found[2])


def _text(value: object) -> str:
    # As PySpark hands over what is no text.
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Judge:
    """Goes through the options for one use. `spark` is the version's first two numbers."""

    def __init__(self, use: Use, given: Mapping[str, str], spark: tuple[int, int]) -> None:
        self._use = use
        self._name = next(name for name, each in _USES.items() if each is use)
        self._given = given
        self._spark = spark

    def findings(self) -> Iterator[Finding]:
        refused = list(self._refused())
        yield from refused
        yield from (self._found("", meaning, text) for meaning, text in self._of_the_job())
        gone = {each.option for each in refused}
        for name in self._given:
            if _spelled(name) not in gone:
                yield self._found(_spelled(name), *self._of(name))

    def _found(self, option: str, meaning: Meaning, text: str = "") -> Finding:
        return Finding(self._name, option, meaning, text)

    def _refused(self) -> Iterator[Finding]:
        """All errors, one after the other: each option that is refused is taken out, and what is missing is put in."""
        left, said = dict(self._given), set[str]()
        while (error := self._error(left)) is not None and str(error) not in said:
            said.add(str(error))
            name = (error.name or "").lower()
            name = KAFKA + name if KAFKA + name in left else name
            yield self._found(_spelled(name), Meaning.REFUSED, str(error))
            if name in _SUBSCRIPTIONS:
                left = {other: value for other, value in left.items() if other not in _SUBSCRIPTIONS}
                name = "subscribe"
            left.pop(name, None)
            left.update({name: _NEEDED[name]} if name in _NEEDED else {})

    def _error(self, left: Mapping[str, str]) -> ConfigError | None:
        try:
            self._parse(left)
        except ConfigError as error:
            return error
        return None

    def _parse(self, left: Mapping[str, str]) -> None:
        if not self._use.reads:
            parse_sink(left, self._use)
            return
        source = parse_source(left, self._use)
        if self._spark < _WITH_TRIGGERS:
            limits_without_triggers(source.limits, source.trigger)
        if source.filter_pushdown and self._spark < _WITH_FILTERS:
            raise ConfigError("filterPushdown=true needs PySpark 4.1 or newer.", name="filterPushdown")

    def _of_the_job(self) -> Iterator[tuple[Meaning, str]]:
        if self._spark < _OLDEST:
            yield Meaning.REFUSED, "PySpark 4.0 or newer is needed, for data sources in Python."
        if self._use is Use.STREAM_READ and self._spark < _WITH_TRIGGERS:
            yield Meaning.CHANGES, "Trigger availableNow is one micro-batch before PySpark 4.2."
        if self._use is Use.BATCH_WRITE:
            yield (
                Meaning.CHANGES,
                "Spark refuses its default save mode for data sources in Python: add .mode('append').",
            )
        if self._use is Use.STREAM_WRITE:
            yield (
                Meaning.CHANGES,
                "Output mode update goes through kclient.spark.batch_writer and foreachBatch.",
            )
        if not self._use.reads and "kclient.sink.timestamp" not in self._given:
            yield (
                Meaning.CHANGES,
                "A column timestamp becomes the time of the records; kclient.sink.timestamp=ignore leaves it out.",
            )

    def _of(self, name: str) -> tuple[Meaning, str]:
        if name.startswith(KAFKA):
            return self._of_setting(name)
        for text in check_names({name: ""}, self._use):
            return Meaning.IGNORED, text
        spelled = _spelled(name)
        if spelled in _OURS or name.startswith(OURS):
            return Meaning.OURS, "only kclient has it"
        if name == "groupidprefix":
            return Meaning.IGNORED, "reading needs no group"
        if name in _CHANGES and not (name == "maxrecordsperpartition" and self._use is Use.STREAM_READ):
            text = _CHANGES[name](self._given[name])
            return (Meaning.CHANGES, text) if text else (Meaning.SAME, "")
        return Meaning.SAME, ""

    def _of_setting(self, name: str) -> tuple[Meaning, str]:
        names = sort_names([name.removeprefix(KAFKA)], self._use)
        for text in names.remarks(self._use):
            changes = name == KAFKA + "group.id" and names.taken
            return Meaning.CHANGES if changes else Meaning.IGNORED, text
        return Meaning.SAME, ""


_OURS = {"maxBytesPerTrigger", "filterPushdown", "commitGroupId"}
_JAVA_PATTERNS = re.compile(r"&&|\[[^]]*\[")


def _pattern(value: str) -> str:
    text = "Python's regular expressions, which most patterns mean the same to"
    if _JAVA_PATTERNS.search(value):
        text += "; classes in classes and && are Java's alone, so that this one means something else"
    return text


_CHANGES: Mapping[str, Callable[[str], str]] = {
    "assign": lambda _: (
        "a partition that is not there is an error; Spark's own connector leaves it out in silence"
    ),
    "minpartitions": lambda _: (
        "at least so many tasks, if there are so many offsets; there it is about so many"
    ),
    "maxrecordsperpartition": lambda _: (
        "holds in every batch read; there one without minPartitions ignores it"
    ),
    "subscribepattern": _pattern,
    "startingoffsets": lambda value: (
        "group:ID is kclient's alone" if value.strip().lower().startswith("group:") else ""
    ),
}

_BY_LOWER = {name.lower(): name for name in OPTIONS}


def _spelled(lower: str) -> str:
    return _BY_LOWER.get(lower, lower)
