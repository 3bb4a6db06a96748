"""Times as text in pages: in the time zone of the reader, with its name."""

from datetime import datetime

from django.utils import timezone
from django.utils.formats import date_format


def time_text(moment: datetime) -> str:
    """Return a time as templates show it: `1 Jul 2026, 14:30:15 CEST`."""
    return date_format(timezone.localtime(moment), "DATETIME_FORMAT")


def exact_time_text(moment: datetime) -> str:
    """Return a time with milliseconds: `2026-07-01 14:30:15.123 CEST`."""
    local = timezone.localtime(moment)
    return f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond // 1000:03} {local:%Z}"
