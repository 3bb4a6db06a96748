"""End-to-end tests. A package, so that its deployment ends with its last test."""
