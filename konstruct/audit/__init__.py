"""Who may do what with a tenant's memory, and who did: roles, and the access log."""
