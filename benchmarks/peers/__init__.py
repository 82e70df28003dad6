"""One module for each client with a function for each operation it can do, run in a process of its own.

Every future or delivery report is kept and looked at: a client that drops records must not win. Batches, linger, acks,
idempotence, requests in flight, fetch sizes, checksums and records per poll are the same for all, as far as they can
be set.
"""
