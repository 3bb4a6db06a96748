"""The web process: an event loop for connections, a bounded pool of threads for Django."""
