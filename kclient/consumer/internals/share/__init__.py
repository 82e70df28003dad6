"""The inside of a share consumer (KIP-932)."""
