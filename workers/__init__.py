"""The worker process (reason and render). Comes with the service."""
