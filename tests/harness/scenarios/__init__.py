"""Scenarios that run alike on the embedded broker and on a real Apache Kafka."""
