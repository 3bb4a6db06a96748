"""The resources below /api/v1/, each with its views and serializers."""
