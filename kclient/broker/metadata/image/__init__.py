"""Images of the metadata, which never change, and the deltas by which one becomes the next."""
