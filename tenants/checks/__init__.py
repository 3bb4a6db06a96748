"""Refusing to serve where one tenant could see another: system checks, and a last look at start."""
