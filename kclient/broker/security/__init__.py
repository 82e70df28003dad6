"""Security of the broker: who a connection's other side is, and how it proves that."""
