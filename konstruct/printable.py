"""Text as one line that a terminal shows and does not obey. Pure, and quick to import."""


def one_line(text: str) -> str:
    """Return the text with whatever is no visible character, but for spaces, written as its escape.

    Those are line breaks and their Unicode kin, control characters with which a terminal is told
    what to do, marks that change the direction of text, characters without width, and halves of
    surrogate pairs: whatever `str.isprintable` says no to.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )
