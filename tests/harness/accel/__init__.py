"""The pure and the native body side by side."""
