"""Dates and times in Spanish: the day before the month, hours from 0 to 23, and seconds."""

DATE_FORMAT = "j b Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j b Y, H:i:s T"
MONTH_DAY_FORMAT = "j b"
