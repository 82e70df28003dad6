"""Identifiers of idempotent producers."""
