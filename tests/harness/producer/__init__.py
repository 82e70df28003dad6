"""Producers that a test drives, and checks of what they promise."""
