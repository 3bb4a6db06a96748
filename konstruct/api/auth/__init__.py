"""API keys: issuing, checking, binding and limiting them; the caller of a request."""
