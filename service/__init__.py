"""The HTTP service. Comes after the local loop."""
