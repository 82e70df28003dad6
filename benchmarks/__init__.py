"""kclient beside its peers: the same records, the same real broker, the same run. `python -m benchmarks`."""
