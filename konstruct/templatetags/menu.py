"""The links above a page, with the titles that the menu has."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.urls import reverse
from django.utils.translation import gettext

register = template.Library()


@register.simple_tag(takes_context=True)
def trail(context: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return the links above a page; a list has the title of its entry in the menu.

    Unfold begins with the page of the app, in whose place there is Records, or nothing.
    """
    if len(parts) < 2:
        return [*parts]
    titles = context["titles_of_lists"]()
    listed, *rows = parts[1:]
    title, in_records = titles.get(str(listed.get("link", "")), (listed["title"], False))
    links = [{**listed, "title": title}, *rows]
    if in_records:
        links.insert(0, {"title": gettext("Records"), "link": reverse("admin:records")})
    return links
