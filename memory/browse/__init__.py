"""Reads of the admin: threads, users, numbers of rows, search, similar messages."""
