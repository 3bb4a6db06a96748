"""Requests: the tenant by host, the address of the client, streamed answers."""
