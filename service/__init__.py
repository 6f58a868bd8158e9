"""The HTTP service: the API over one site."""
