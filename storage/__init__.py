"""Jobs, journal and artifacts: what survives a crash."""
