"""The algorithm of the sticky assignors."""
