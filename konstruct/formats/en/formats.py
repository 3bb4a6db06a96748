"""Dates and times in English: the day before the month, and hours from 0 to 23."""

DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j M Y, H:i:s T"
MONTH_DAY_FORMAT = "j M"
