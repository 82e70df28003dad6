"""Value types that every layer and every user may hold: immutable, hashable, picklable."""
