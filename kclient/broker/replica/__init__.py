"""Partitions of this broker: appending, fetching, and requests that wait for either."""
