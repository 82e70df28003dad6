"""Transactions: the states of one, and the requests to coordinators that take it from one to the next."""
