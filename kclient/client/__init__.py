"""The parts that all clients share: connections to brokers, requests and answers, metadata."""
