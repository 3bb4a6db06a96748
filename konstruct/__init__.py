"""Konstruct: a multi-tenant platform in which AI agents remember."""

from konstruct.celery import app as celery_app

__all__ = ["celery_app"]
