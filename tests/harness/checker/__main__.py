"""Judge histories that belong together: python -m harness.checker FILE..., with `tests` on PYTHONPATH."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from harness.checker.loader import load
from harness.checker.report import check, permitted, report


def main() -> int:
    """Print what is wrong with the files given; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="histories of the same clients and topics")
    history = load(*parser.parse_args().files)
    anomalies = check(history)
    print(report(history, anomalies, permitted(history)))
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
