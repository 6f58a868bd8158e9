"""The loop and its nouns. Pure: it knows records, ports and rules, and no I/O library."""
