"""`python -m kclient` is the `kclient` command."""

from __future__ import annotations

import sys

from kclient.cli.main import main

sys.exit(main())
