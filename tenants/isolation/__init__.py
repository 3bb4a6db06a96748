"""Isolation of the tables in a tenant's schema that others define: Django's, a library's."""
