"""Frameworks that are installed with an extra of this distribution."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Add the package to install to the error of a failed import."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f'{error}. Install the extra: pip install "konstruct-client[{name}]"', name=error.name
        ) from error
