"""Inside the consumer; nothing here is public."""
