"""The client of the API."""
