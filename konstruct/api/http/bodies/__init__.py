"""Bodies of requests and responses: strict JSON, strict fields."""
