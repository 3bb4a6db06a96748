"""Pages of rights and records: team, API keys, the access log."""

from konstruct.admin.security import (
    access_log,
    api_keys,
    team,
)

__all__ = [
    "access_log",
    "api_keys",
    "team",
]
