"""Helpers of the tests, imported as `from harness.waiting import wait_until`; tests/README.md lists them."""
