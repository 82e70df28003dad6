"""The embedded broker: a single-node Kafka that speaks the real protocol and keeps its data in Kafka's own
files.
"""
