"""The Python client and its framework adapters. All live tests share one server."""
