"""Words and numbers of lists: the colours of badges, and numbers as the reader writes them."""

from decimal import Decimal

from django.utils.formats import number_format
from django.utils.translation import gettext


class Colours(dict[str, str]):
    """Colours by the English word of a badge, found by the word in the reader's language too."""

    def __missing__(self, word: str) -> str:
        for key, colour in self.items():
            if gettext(key) == word:
                return colour
        raise KeyError(word)

    def __contains__(self, word: object) -> bool:
        return super().__contains__(word) or any(gettext(key) == word for key in self)


def format_number(number: float | Decimal, decimals: int = 0) -> str:
    """Return a number with the separators of the reader's language, rounded to some decimals."""
    # Django's function cuts decimals off.
    return str(number_format(f"{number:.{decimals}f}", decimals, force_grouping=True))
