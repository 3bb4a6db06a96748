"""Pages of rights and records: team, API keys, the access log."""
