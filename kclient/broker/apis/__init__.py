"""What the broker answers: one file per API, each opening with its versions, behaviour and access control."""
