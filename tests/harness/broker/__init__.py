"""The embedded broker and its parts: started, asked over a plain socket, and taken apart."""
