"""Postgres and Valkey from Python packages, used where no URL is configured.

`database_url`, `redis_url` and `broker_url` are computed from KONSTRUCT_HOME and start nothing.
`ensure_postgres` and `ensure_valkey` start what does not run yet and make this process a user of
it. A service stops when its last user is gone. docs/operations.md describes it for operators.
"""

from konstruct.local.embedded.paths import (
    EmbeddedError,
    broker_url,
    database_url,
    home,
    local_journal,
    local_secret_key,
    local_token_key,
    redis_url,
)
from konstruct.local.embedded.supervision import (
    ensure,
    ensure_postgres,
    ensure_valkey,
    release,
    stop,
    wait_stopped,
)

__all__ = [
    "EmbeddedError",
    "broker_url",
    "database_url",
    "ensure",
    "ensure_postgres",
    "ensure_valkey",
    "home",
    "local_journal",
    "local_secret_key",
    "local_token_key",
    "redis_url",
    "release",
    "stop",
    "wait_stopped",
]
