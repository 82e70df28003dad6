"""Keys, certificates and what is agreed on before the first frame: TLS."""
