"""Konstruct: a multi-tenant platform in which AI agents remember."""
