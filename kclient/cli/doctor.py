"""`kclient doctor`: takes every step of a client's connection to every broker, and says what it finds."""

from __future__ import annotations

import argparse
import contextlib
import json

from rich.console import Console
from rich.markup import escape

from kclient.admin.config import AdminConfig
from kclient.cli.common import add_client_arguments, client_settings, output_console
from kclient.cli.doctor_ladder import Ladder
from kclient.cli.doctor_report import BrokerReport, Report
from kclient.client.assembly import credentials_of, proxy_of
from kclient.client.bootstrap import expand_servers, validate_resolvable
from kclient.errors import BootstrapError, ConfigError, KafkaError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", choices=("text", "json"), default="text", help="default: text")
    add_client_arguments(parser, "admin client")
    parser.epilog = """\
The steps are dns, tcp, proxy, tls, sasl, api versions and a metadata request, first to the bootstrap servers, then to
every broker that they advertise. Exit code 0: a client reaches all of them; 1: it does not."""


def run(options: argparse.Namespace) -> int:
    config = AdminConfig.parse(None, client_settings(options))
    proxy = proxy_of(config)
    report = Report(config.security_protocol, None if proxy is None else str(proxy))
    console = output_console() if options.output == "text" else None
    try:
        credentials = credentials_of(config)
    except ConfigError:
        raise
    except (KafkaError, OSError) as error:
        report.no_credentials = str(error)
    else:
        with contextlib.closing(Ladder(config, credentials, proxy)) as ladder:
            _examine_all(config, ladder, report, console)
    problems = report.problems()
    if console is None:
        print(json.dumps(report.as_json(), indent=2))
    elif problems:
        console.print("[bold red]Something is wrong:[/]", highlight=False)
        for problem in problems:
            console.print(f"  {escape(_printable(problem))}", highlight=False)
    else:
        console.print("[bold green]A client reaches every broker.[/]", highlight=False)
    return 1 if problems else 0


def _examine_all(config: AdminConfig, ladder: Ladder, report: Report, console: Console | None) -> None:
    for broker in _bootstrap(config):
        _examine(broker, ladder, report, console)
    known = {(broker.host, broker.port): broker for broker in report.brokers}
    for node in sorted(ladder.advertised.values(), key=lambda node: node.id):
        same = known.get((node.host, node.port))
        if same is not None:
            same.node_id = node.id
        else:
            _examine(BrokerReport(node.host, node.port, "advertised", node.id), ladder, report, console)


def _bootstrap(config: AdminConfig) -> list[BrokerReport]:
    servers = expand_servers(config.bootstrap_servers)
    if config.client_dns_lookup != "use_all_dns_ips":
        # The names that clients use then, as Kerberos needs them; of those that do not resolve the ladder tells.
        with contextlib.suppress(BootstrapError):
            servers = validate_resolvable(servers, config.client_dns_lookup, config.log_context())
    return [BrokerReport(server.host, server.port, "bootstrap.servers") for server in servers]


def _examine(broker: BrokerReport, ladder: Ladder, report: Report, console: Console | None) -> None:
    report.brokers.append(broker)
    ladder.climb(broker)
    if console is not None:
        for ok, line in broker.lines():
            shown = escape(_printable(line))
            console.print(shown if ok else f"[red]{shown}[/]", highlight=False)


def _printable(line: str) -> str:
    """Return `line` without what would steer a terminal: a broker or a certificate may say anything."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
