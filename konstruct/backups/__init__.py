"""Backups of tenants, and restores that repeat the erasures since a backup."""
