"""Interfaces of other products, so that their clients work here by changing an address and a key.

Each parses what its clients send, calls the services that there are, and presents the result in
the client's terms. Keys, bindings, limits, access log and idempotency are the API's.
"""
