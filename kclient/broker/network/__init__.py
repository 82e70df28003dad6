"""The broker's side of the network: an acceptor, processors with a Selector each, and the queue to the handlers."""
