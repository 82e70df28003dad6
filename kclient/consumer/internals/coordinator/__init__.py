"""Membership in a classic consumer group and committed offsets."""
