"""`kclient groups --validate-regex`: what a broker says of the regular expression of a SubscriptionPattern."""

from __future__ import annotations

import argparse
import uuid

from kclient.admin import KafkaAdminClient
from kclient.cli.common import client_settings, complain
from kclient.cli.group_output import print_rows
from kclient.consumer import ConsumerConfig, KafkaConsumer, SubscriptionPattern
from kclient.errors import InvalidRegularExpressionError, KafkaTimeoutError
from kclient.utils.time import SYSTEM_TIME

_POLL_MS = 100


def validate_regex(options: argparse.Namespace) -> int:
    """Print whether brokers can use the pattern; the exit code.

    Python has nothing that knows RE2's syntax, so a member of a group of its own asks a broker; the group is deleted.
    """
    pattern = SubscriptionPattern(options.validate_regex)
    group = f"kclient-validate-regex-{uuid.uuid4()}"
    settings = client_settings(options, group_id=group, group_protocol="consumer", enable_auto_commit=False)
    timeout_ms = options.timeout or ConsumerConfig.parse(settings, {}).default_api_timeout_ms
    with KafkaConsumer(settings) as consumer:
        timer = SYSTEM_TIME.timer(timeout_ms)
        consumer.subscribe(pattern)
        error = None
        try:
            while consumer.group_metadata().generation_id <= 0:
                if timer.is_expired():
                    raise KafkaTimeoutError("No broker has answered in time")
                consumer.poll(_POLL_MS)
        except InvalidRegularExpressionError as invalid:
            error = invalid
    if error is None:
        with KafkaAdminClient(client_settings(options)) as admin:
            admin.delete_consumer_groups([group], timeout_ms=options.timeout)
    if options.output == "json":
        row = {
            "regex": pattern.pattern,
            "valid": error is None,
            "error": None if error is None else str(error),
        }
        print_rows({}, [row], options)
    elif error is None:
        print(f"The regular expression {pattern.pattern} is valid.")
    else:
        complain("error", error)
    return 0 if error is None else 1
