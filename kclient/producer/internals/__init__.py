"""Internals of the producer; nothing here is public."""
