"""The operations of the admin client, one module a subject, each a generator (see `steps`)."""
