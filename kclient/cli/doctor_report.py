"""Findings of `kclient doctor`: steps, addresses and brokers, as data, for JSON and for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from kclient.utils.text import host_and_port


@attrs.define
class Step:
    """A step of a connection: what came of it, in how much time."""

    name: str
    elapsed_ms: float
    found: dict[str, Any] = attrs.field(factory=dict)
    error: str | None = None
    setting: str | None = None

    @property
    def ok(self) -> bool:
        """True if it went well."""
        return self.error is None

    def as_json(self) -> dict[str, Any]:
        """The step as JSON has it."""
        made: dict[str, Any] = {"step": self.name, "ok": self.ok, "elapsed_ms": round(self.elapsed_ms, 1)}
        made |= self.found
        if self.error is not None:
            made |= {"error": self.error, "setting": self.setting}
        return made


@attrs.define
class AddressReport:
    """The steps of the connections to one address."""

    address: str
    steps: list[Step] = attrs.field(factory=list)

    @property
    def ok(self) -> bool:
        """True if a client can work over it."""
        return all(step.ok for step in self.steps)

    def found(self, step: str) -> dict[str, Any]:
        """Return the findings of a step; nothing if it was not reached."""
        return next((each.found for each in self.steps if each.name == step), {})


@attrs.define
class BrokerReport:
    """A broker by its name: what that resolves to, and what came of each address."""

    host: str
    port: int
    origin: str
    node_id: int | None = None
    dns: Step = attrs.field(factory=lambda: Step("dns", 0.0))
    addresses: list[AddressReport] = attrs.field(factory=list)

    @property
    def ok(self) -> bool:
        """True if a client reaches it: it tries one address after the other."""
        return any(address.ok for address in self.addresses)

    @property
    def name(self) -> str:
        """Host and port."""
        return host_and_port(self.host, self.port)

    def found(self, step: str) -> dict[str, Any]:
        """Return the findings of a step at the first address where it found anything."""
        return next((found for each in self.addresses if (found := each.found(step))), {})

    def problem(self) -> str | None:
        """The first reason why a client does not reach it."""
        if self.ok:
            return None
        steps = [self.dns, *(step for address in self.addresses for step in address.steps)]
        return next((_problem(self.name, step) for step in steps if not step.ok), None)

    def as_json(self) -> dict[str, Any]:
        """The broker as JSON has it."""
        return {
            "host": self.host,
            "port": self.port,
            "id": self.node_id,
            "from": self.origin,
            "ok": self.ok,
            "dns": self.dns.as_json(),
            "addresses": [
                {"address": each.address, "ok": each.ok, "steps": [step.as_json() for step in each.steps]}
                for each in self.addresses
            ],
        }

    def lines(self) -> Iterator[tuple[bool, str]]:
        """Lines for people, each with whether it tells of something that went well."""
        number = "" if self.node_id is None or self.node_id < 0 else f", broker {self.node_id}"
        yield True, f"{self.name} ({self.origin}{number})"
        yield from _step_lines(self.dns)
        for address in self.addresses:
            if len(self.addresses) > 1:
                yield True, f"  {address.address}"
            for step in address.steps:
                yield from _step_lines(step)


@attrs.define
class Report:
    """Everything that was found."""

    security_protocol: str
    proxy: str | None
    brokers: list[BrokerReport] = attrs.field(factory=list)
    no_credentials: str | None = None
    """The reason why there is nothing to prove with who the client is, such as a token."""

    def problems(self) -> list[str]:
        """Return the problems; none if a client can work with all brokers."""
        found = [] if self.no_credentials is None else [f"sasl: {self.no_credentials}"]
        found += [problem for broker in self.brokers if (problem := broker.problem()) is not None]
        clusters = {
            cluster_id
            for broker in self.brokers
            if (cluster_id := broker.found("metadata").get("cluster_id")) is not None
        }
        if len(clusters) > 1:
            found.append(
                f"bootstrap.servers leads to different clusters: {', '.join(sorted(map(str, clusters)))}"
            )
        return found

    def as_json(self) -> dict[str, Any]:
        """The report as JSON has it."""
        metadata = next((found for each in self.brokers if (found := each.found("metadata"))), {})
        problems = self.problems()
        return {
            "ok": not problems,
            "security_protocol": self.security_protocol,
            "proxy": self.proxy,
            "cluster_id": metadata.get("cluster_id"),
            "controller_id": metadata.get("controller_id"),
            "problems": problems,
            "brokers": [broker.as_json() for broker in self.brokers],
        }


def _problem(name: str, step: Step) -> str:
    text = f"{name}: {_title(step)}: {step.error}"
    return text if step.setting is None or step.setting in text else f"{text}; see {step.setting}"


def _title(step: Step) -> str:
    return {"api_versions": "api versions", "metadata": "metadata request"}.get(step.name, step.name)


def _step_lines(step: Step) -> Iterator[tuple[bool, str]]:
    head = f"  {_title(step):<16}  {step.elapsed_ms:8.1f} ms  "
    lines = [line for name, value in step.found.items() for line in _found_lines(name, value)]
    if step.error is not None:
        see = "" if step.setting is None or step.setting in step.error else f"; see {step.setting}"
        lines.insert(0, f"FAILED: {step.error}{see}")
    for number, line in enumerate(lines or ["ok"]):
        yield step.ok, f"{head if not number else ' ' * len(head)}{line}"


def _found_lines(name: str, value: Any) -> Iterator[str]:
    words = name.replace("_", " ")
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _found_lines(f"{words} {key}", each)
    elif isinstance(value, list):
        yield f"{words}: {', '.join(map(str, value)) or 'none'}"
    elif isinstance(value, bool):
        yield f"{words}: {'yes' if value else 'no'}"
    else:
        yield f"{words}: {'unknown' if value is None else value}"
