"""Load, chaos and the checks of the tests that run for long."""
