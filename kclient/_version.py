"""The one place that knows the version; CHANGELOG.md's newest entry must equal it."""

__version__ = "0.3.0"
