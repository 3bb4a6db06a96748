"""Dates and times in German: the day before the month, hours from 0 to 23, and seconds."""

DATE_FORMAT = "j. M Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j. M Y, H:i:s T"
MONTH_DAY_FORMAT = "j. M"
