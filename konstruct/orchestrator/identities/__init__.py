"""Identities: which ids of channels are one person, and what is theirs."""
