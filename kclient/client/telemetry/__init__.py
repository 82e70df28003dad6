"""Client telemetry: metrics pushed to brokers that ask for them (KIP-714)."""
