"""How the admin client works inside: an I/O thread for single calls, and operations written as generators."""
