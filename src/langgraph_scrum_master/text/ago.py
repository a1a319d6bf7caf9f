"""Relative times, such as "2 hours ago"."""

from __future__ import annotations

from datetime import datetime, tzinfo

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def ago(created: float, now: float, zone: tzinfo) -> str:
    """The age as "2 hours ago", "Yesterday" or "3 weeks ago". Days are those of the time zone."""
    age = now - created
    if age < _MINUTE:
        return "Just now"
    if age < _HOUR:
        return _counted(age // _MINUTE, "minute")
    if age < _DAY:
        return _counted(age // _HOUR, "hour")
    days = days_between(created, now, zone)
    if days == 1:
        return "Yesterday"
    for unit, length in (("year", 365), ("month", 30), ("week", 7)):
        if days >= length:
            return _counted(days // length, unit)
    return _counted(days, "day")


def days_between(created: float, now: float, zone: tzinfo) -> int:
    """The number of midnights between two times in the time zone."""
    first, last = (datetime.fromtimestamp(moment, zone).date() for moment in (created, now))
    return (last - first).days


def _counted(number: float, unit: str) -> str:
    return f"{int(number)} {unit}{'' if int(number) == 1 else 's'} ago"
