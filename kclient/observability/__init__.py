"""Metrics for Prometheus and traces for OpenTelemetry, each with an extra of its own; imported by nobody else."""
