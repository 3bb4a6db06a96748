"""Postgres and Valkey from Python packages, for deployments without configured URLs.

`database_url`, `redis_url` and `broker_url` are computed from KONSTRUCT_HOME and start nothing.
`ensure_postgres` and `ensure_valkey` start a service that does not run, and register this process
as its user. A service stops when its last user has ended. docs/operations.md describes it.
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
