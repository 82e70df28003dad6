"""Histories of what clients did, and the rules that every history must keep, in the manner of Jepsen."""
