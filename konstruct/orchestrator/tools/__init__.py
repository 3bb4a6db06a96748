"""Tool calls: requested by an agent, approved by the user, executed at most once."""
