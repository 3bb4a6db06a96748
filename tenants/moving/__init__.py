"""Moving a tenant to another database server: a copy while it is served, the rest in a pause."""
