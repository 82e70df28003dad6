"""The methods of KafkaAdminClient, one class a subject: checks, then an operation of the same subject."""
