"""Whether a tenant is served, and whose a task or an event of a channel is."""
