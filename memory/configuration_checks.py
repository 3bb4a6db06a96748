"""Checks that an argument names the database or the embedding model of this process."""

import re

from django.conf import settings
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from memory.embedding.embedder import model_version
from memory.exceptions import InvalidArgument
from tenants.context import tenant_connection

# SQLAlchemy's syntax for a driver: postgresql+asyncpg://
_DRIVER = re.compile(r"^(postgres(?:ql)?)\+\w+://")


def require_configured_database(url: str | None) -> None:
    """Accept None, and the URL of the database of this process.

    Passwords are neither compared nor shown.

    Raises:
        InvalidArgument: it is another database, or no URL of one.
    """
    if url is None:
        return
    try:
        given = conninfo_to_dict(_DRIVER.sub(r"\1://", url))
    except (ProgrammingError, TypeError):
        raise InvalidArgument("database_url is not the URL of a PostgreSQL database") from None
    configured = tenant_connection().get_connection_params()
    given.setdefault("user", configured.get("user"))
    own, other = (
        f"{database.get('host') or 'localhost'}:{database.get('port') or 5432}"
        f"/{database.get('dbname')} as {database.get('user')}"
        for database in (configured, given)
    )
    if own != other:
        raise InvalidArgument(
            f"this process uses the database {own}, not {other}: leave database_url out, or set"
            " DATABASE_URL and start again"
        )


def require_configured_model(name: str | None) -> None:
    """Accept None, and the name of the embedding model of this process.

    Raises:
        InvalidArgument: it is another model. Vectors of two models cannot be compared.
    """
    if name is None:
        return
    version = model_version()
    configured = version.partition("@")[0]
    full_name = f"sentence-transformers/{configured}"
    if name not in (version, configured, full_name, settings.EMBEDDING_MODEL):
        raise InvalidArgument(
            f"this process embeds with {configured!r}, not with {name!r}: leave embedding_model"
            " out, or set EMBEDDING_MODEL and start again"
        )
