"""The Python client, and its adapters to frameworks: all live tests share one server."""
