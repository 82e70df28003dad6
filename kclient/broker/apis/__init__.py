"""The APIs that the broker serves: one file each, opening with its versions, behaviour and access control."""
