"""Metrics of the broker, under the names that Kafka's broker has in JMX."""
