"""Tests of tenants on several servers; a package, so that its servers end with its last test."""
