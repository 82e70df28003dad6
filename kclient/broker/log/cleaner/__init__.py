"""The log cleaner: of each key of a compacted log the last record stays."""
