"""What the cluster consists of: topics, their identifiers, partitions and settings."""
