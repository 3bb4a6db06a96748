"""Checks that an argument names the database or the embedding model of this process."""

import re
from collections.abc import Mapping

from django.conf import settings
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from memory.embedding.embedder import model_version
from memory.exceptions import InvalidArgument
from tenants.context import tenant_connection

_DEFAULT_PORT = "5432"
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
    is_same_user = given.get("user") in (None, configured.get("user"))
    if _address(given) != _address(configured) or not is_same_user:
        raise InvalidArgument(
            f"this process uses the database {_address(configured)} as {configured.get('user')},"
            f" not {_address(given)} as {given.get('user')}: leave database_url out, or set"
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
    if name not in (
        version,
        configured,
        f"sentence-transformers/{configured}",
        settings.EMBEDDING_MODEL,
    ):
        raise InvalidArgument(
            f"this process embeds with {configured!r}, not with {name!r}: leave embedding_model"
            " out, or set EMBEDDING_MODEL and start again"
        )


def _address(parameters: Mapping[str, object]) -> str:
    """Return host, port and name of a database, for comparison and for messages."""
    host = parameters.get("host") or "localhost"
    port = parameters.get("port") or _DEFAULT_PORT
    return f"{host}:{port}/{parameters.get('dbname')}"
