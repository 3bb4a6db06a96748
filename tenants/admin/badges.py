"""The colours of badges in lists."""

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
