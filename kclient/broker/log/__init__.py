"""The log: Kafka's storage layer, byte for byte in Kafka's own files."""
