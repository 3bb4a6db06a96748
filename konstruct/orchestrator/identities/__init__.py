"""Identities: the ids of channels that belong to one person, and the person's threads."""
