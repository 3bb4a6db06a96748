"""Detects requests for a person, phrases of rules, and plain answers (yes, no). Pure.

A request must be the whole message, with nothing but polite words around it. A false positive would
leave the user without an answer until a person comes.
"""

import re
import unicodedata
from collections.abc import Iterable

from memory.text.folding import decompose

# Longer messages are neither plain requests nor plain answers.
MAX_WORDS = 16
MAX_CHARACTERS = 500

_PERSON = (
    r"(?:(?:a|an|the|some)\s+)?(?:real\s+|live\s+|actual\s+|human\s+)*"
    r"(?:human(?:\s+being)?|person|people|someone|somebody|agent|operator|representative|employee"
    r"|colleague|member\s+of\s+(?:your\s+)?staff)(?:\s+(?:please|instead|here|now))*"
)
_MENSCH = (
    r"(?:(?:einem|einen|einer|eine|ein)\s+)?(?:echten?r?\s+|richtigen?r?\s+)*"
    r"(?:menschen?|person|mitarbeiter(?:in|s)?|kollegen|kollegin|berater(?:in)?)"
)
_HUMAIN = (
    r"(?:(?:un|une|a)\s+)?(?:vraie?\s+)?"
    r"(?:humain|personne(?:\s+(?:reelle|humaine))?|etre\s+humain|conseiller|conseillere|operateur)"
)
_PERSONA = (
    r"(?:(?:un|una|a\s+una|con\s+una)\s+)?(?:persona(?:\s+(?:real|humana|de\s+verdad))?|humano"
    r"|ser\s+humano|agente|operador|operadora|asesor)"
)
_REQUESTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?:(?:can|could|may|might)\s+i\s+|(?:i\s+(?:want|need|wish|have|d\s+like|would\s+like)\s+to"
        rf"\s+)|let\s+me\s+|i\s+(?:d|would)\s+rather\s+|how\s+(?:can|do)\s+i\s+)?"
        rf"(?:talk|speak|chat)\s+(?:to|with)\s+{_PERSON}",
        rf"(?:(?:can|could|would|will)\s+you\s+)?(?:get|give|find|call|fetch)\s+(?:me\s+)?{_PERSON}",
        rf"(?:(?:can|could|would|will)\s+you\s+)?(?:connect|transfer|hand|forward|put)\s+me"
        rf"\s+(?:over\s+|through\s+)?(?:to|with)\s+{_PERSON}",
        rf"i\s+(?:want|need)\s+{_PERSON}",
        r"(?:please\s+)?(?:human|real\s+person|live\s+agent|human\s+agent|operator)",
        rf"(?:(?:ich\s+(?:mochte|moechte|will|muss|wurde\s+gern(?:e)?)|kann\s+ich|konnte\s+ich|lass"
        rf"\s+mich|darf\s+ich)\s+)?(?:gern(?:e)?\s+)?(?:bitte\s+)?mit\s+{_MENSCH}"
        rf"\s+(?:sprechen|reden|schreiben|chatten)",
        rf"(?:verbinde(?:n\s+sie)?\s+mich|verbinden)\s+(?:bitte\s+)?mit\s+{_MENSCH}",
        rf"(?:(?:je\s+(?:veux|voudrais|souhaite|dois)|puis\s+je|est\s+ce\s+que\s+je\s+peux"
        rf"|pourrais\s+je)\s+)?parler\s+(?:a|avec)\s+{_HUMAIN}",
        rf"passez\s+moi\s+{_HUMAIN}",
        rf"(?:(?:quiero|quisiera|necesito|puedo|podria|me\s+gustaria)\s+)?hablar\s+(?:con\s+)?"
        rf"{_PERSONA}",
    )
)
_POLITENESS = re.compile(
    r"\b(?:please|pls|hi|hello|hey|thanks|thank\s+you|now|again|ok|okay|no|sorry|bitte|danke|hallo"
    r"|jetzt|s\s+il\s+vous\s+plait|svp|merci|bonjour|maintenant|por\s+favor|gracias|hola|ahora)\b"
)


def asks_for_person(text: str) -> bool:
    """Return whether the message is a request for a person, and nothing else."""
    words = "" if len(text) > MAX_CHARACTERS else _normalize(text)
    if not words or len(words.split()) > MAX_WORDS:
        return False
    if any(request.fullmatch(words) for request in _REQUESTS):
        return True
    without_politeness = " ".join(_POLITENESS.sub(" ", words).split())
    return any(request.fullmatch(without_politeness) for request in _REQUESTS)


def find_phrase(text: str, phrases: Iterable[str]) -> str | None:
    """Return the first of the phrases that the text contains as whole words; None without one."""
    words = f" {_normalize(text)} "
    for phrase in phrases:
        wanted = _normalize(phrase)
        if wanted and f" {wanted} " in words:
            return phrase
    return None


_YES = frozenset(
    {
        "yes", "y", "yes please", "yep", "yeah", "sure", "ok", "okay", "go ahead", "do it",
        "please do", "yes do", "of course", "approve", "approved", "ja", "ja bitte", "gerne",
        "klar", "oui", "oui s il te plait", "oui s il vous plait", "d accord", "bien sur", "si",
        "si por favor", "claro", "vale", "sim", "da",
    }
)  # fmt: skip
_NO = frozenset(
    {
        "no", "n", "no thanks", "no thank you", "nope", "don t", "do not", "please don t",
        "better not", "never mind", "deny", "denied", "nein", "nein danke", "lieber nicht", "non",
        "non merci", "no gracias", "nao",
    }
)  # fmt: skip


def yes_or_no(text: str) -> bool | None:
    """Return True if the whole message is a yes, False if it is a no, and None otherwise."""
    words = "" if len(text) > MAX_CHARACTERS else _normalize(text)
    if words in _YES:
        return True
    return False if words in _NO else None


def _normalize(text: str) -> str:
    """Return the words in lower case, without accents and punctuation."""
    folded = decompose(text.casefold())
    kept = "".join(
        letter if letter.isalnum() else " "
        for letter in folded
        if not unicodedata.combining(letter)
    )
    return " ".join(kept.split())
