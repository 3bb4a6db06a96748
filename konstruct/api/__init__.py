"""The REST API: keys, what all endpoints share, and the resources below /api/v1/."""
