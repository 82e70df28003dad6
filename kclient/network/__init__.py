"""Sockets without threads: a Selector over channels, shared by clients and the broker."""
