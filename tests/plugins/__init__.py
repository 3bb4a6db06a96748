"""Plugins of pytest that measure what the tests run through: lines of code, and indexes."""
