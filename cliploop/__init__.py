"""What a user touches: the command line, settings, and the one place that picks concrete backends."""
