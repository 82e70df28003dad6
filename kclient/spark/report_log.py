"""The log of reports, one line of JSON each."""

from __future__ import annotations

import logging


def report_log() -> logging.Logger:
    """Return the logger "kclient.spark.report".

    Spark collects what workers log, where it is asked to; an application that sets a level of its own is left alone.
    """
    log = logging.getLogger("kclient.spark.report")
    if log.level == logging.NOTSET:
        log.setLevel(logging.INFO)
    return log
