"""Titles of pages as the menu has them."""

from collections.abc import Mapping
from typing import Any

from django import template

register = template.Library()


@register.simple_tag(takes_context=True)
def heading(context: Mapping[str, Any], part: Mapping[str, Any]) -> Any:
    """Return the title of a link above a page; of a list, that of its entry in the menu."""
    return context["titles_of_lists"]().get(str(part.get("link", "")), part["title"])
