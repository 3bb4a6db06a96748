"""Exports: what is asked for, the schema that it is to have, and the memories in it."""
