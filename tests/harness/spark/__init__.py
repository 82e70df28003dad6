"""Spark sessions and pipelines as processes."""
