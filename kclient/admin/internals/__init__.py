"""Internals of the admin client: an I/O thread for single calls, and operations written as generators."""
