"""Konstruct: a multi-tenant platform in which AI agents remember."""

# Of the product. A test keeps pyproject.toml, the chart and the clients at the same one.
__version__ = "0.1.0"
