"""A person that a page asks for by an id or a name."""

from dataclasses import dataclass
from typing import Final, Self

from django.http import HttpRequest
from django.utils.translation import gettext

from konstruct.admin.query_parameters import as_user_id
from konstruct.orchestrator.identities.channel_identities import find_people, main_id
from memory.browse.people import displayed_names

MAX_CHOICES: Final = 10


@dataclass(frozen=True, slots=True)
class PersonChoice:
    """The person that a text names, or the reason why it names no person."""

    typed: str = ""
    user_id: str = ""
    """The id of the person; empty if no text was typed, or it does not name one person."""
    problem: str = ""
    """Why the text names no person, or not one."""
    people: tuple[tuple[str, str], ...] = ()
    """The people that the text could name: their ids and names."""

    @classmethod
    def of(cls, typed: str, *, whole: bool = False) -> Self:
        """Return the choice for a text, see `find_people`."""
        if not typed:
            return cls()
        found = find_people(typed, whole=whole) if as_user_id(typed) else []
        if len(found) == 1:
            return cls(typed, found[0])
        if not found:
            return cls(typed, problem=gettext("No person has this id or name."))
        names = displayed_names(found[:MAX_CHOICES])
        people = tuple((user_id, names.get(user_id, "")) for user_id in found[:MAX_CHOICES])
        listed = ", ".join(f"{name} ({user_id})" if name else user_id for user_id, name in people)
        problem = gettext("Several people have this name: %(people)s. Choose one by the id.")
        return cls(typed, problem=problem % {"people": listed}, people=people)

    @classmethod
    def of_request(cls, request: HttpRequest) -> Self:
        """Return the choice for the parameter `user` of a page."""
        choice = cls.of(request.GET.get("user", "").replace("\0", ""))
        return cls(choice.typed, main_id(choice.user_id)) if choice.user_id else choice
