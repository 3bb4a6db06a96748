"""Texts of people's in pages."""

from django import template

register = template.Library()


@register.filter
def shorten(text: object, length: int) -> str:
    """The beginning of a text, with an ellipsis if there is more.

    Django's `truncatechars` normalises the whole text before, which takes the square of a run of
    combining marks: a second for one message of 32,000.
    """
    whole = str(text)
    return whole if len(whole) <= length else f"{whole[: length - 1]}…"
