"""How the producer works inside; nothing here is public."""
