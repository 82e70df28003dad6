"""A sink whose tasks write in transactions, and leave markers by which a replay knows what is there already."""
