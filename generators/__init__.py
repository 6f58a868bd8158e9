"""Image-to-video backends, their catalog and the conformance suite."""
