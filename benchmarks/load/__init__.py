"""Real calls of many tenants against a whole deployment."""
