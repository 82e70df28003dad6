"""The group coordinator: membership of the classic protocol, and committed offsets."""
