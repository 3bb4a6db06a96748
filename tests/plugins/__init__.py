"""Pytest plugins that measure the tests: coverage of lines, and use of indexes."""
