"""Tests of tenants on several servers. A package, so that its servers end with its last test."""
