"""Bodies of the commands, one file each, imported only when called."""
