"""Brokers and networks that misbehave on purpose, and a network client that a test drives."""
