"""Load tests: calls of many tenants to a whole deployment."""
