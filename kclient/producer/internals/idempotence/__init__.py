"""Producer ids, epochs and sequences: what makes a record that is sent twice be written once."""
