"""Titles of pages as the menu has them."""

from collections.abc import Mapping
from typing import Any

from django import template
from django.http import HttpRequest

register = template.Library()


@register.simple_tag
def heading(request: HttpRequest, part: Mapping[str, Any]) -> Any:
    """Return the title of a link above a page; of a list, that of its entry in the menu."""
    # Django imports this module before the admin can be.
    from konstruct.admin.menu import titles_of_lists

    return titles_of_lists(request).get(str(part.get("link", "")), part["title"])
