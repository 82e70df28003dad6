"""Consumers that a test drives, and what they fetch."""
