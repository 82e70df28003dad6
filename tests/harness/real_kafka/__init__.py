"""A real Apache Kafka: its processes, its clusters, its logs on disk."""
