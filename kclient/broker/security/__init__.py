"""Security of the broker: who a connection's other side is, how it proves that, and what it may do."""
