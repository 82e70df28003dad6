"""Functions made at run time from source text, which tracebacks, debuggers and profilers show."""

from __future__ import annotations

import linecache
from typing import Any


def compile_source(name: str, source: str, scope: dict[str, Any]) -> None:
    """Run `source` in `scope`, which then has what it defines. `name` is shown as its file: `<kclient codec X v1>`."""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    exec(compile(source, name, "exec"), scope)
