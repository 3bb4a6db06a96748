"""Tool calls: asked for by an agent, approved by the user, done at most once."""
