"""The REST API: keys, shared parts of endpoints, and the resources below /api/v1/."""
