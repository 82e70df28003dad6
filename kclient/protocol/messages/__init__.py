"""Declarations of the messages: one module for each API, imported by `registry` when it is first used."""
