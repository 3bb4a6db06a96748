"""Which hosts serve the operators and the neutral API instead of one tenant."""

from django.conf import settings
from django.http.request import split_domain_port


def host_name(host: str) -> str:
    """Return the host of a Host header: lower case, no port, no trailing dot."""
    return split_domain_port(host)[0]


def is_public_host(host: str) -> bool:
    """Tell whether the host is one of PUBLIC_HOSTS."""
    return host in settings.PUBLIC_HOSTS
