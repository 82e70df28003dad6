"""The `kclient` command: demo, produce, consume, topics, groups, broker, perf, pipeline."""
