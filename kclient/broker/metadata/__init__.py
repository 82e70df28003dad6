"""Metadata of the cluster: topics, their identifiers, partitions and settings."""
