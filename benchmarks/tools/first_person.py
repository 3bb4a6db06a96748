"""Convert LoCoMo to the form of a user without a name. The module is pure.

"What did Caroline paint?" becomes "What did I paint?", as Caroline asks her agent. The conversion
uses rules, so some sentences are ungrammatical, like those of real users in a hurry.
"""

import re
from functools import partial

# Short names that LoCoMo's speakers use for each other.
NICKNAMES = {"Melanie": "Mel", "Joanna": "Jo"}
# (verb after the third person, after "I", after "you")
_VERBS = (
    ("does", "do", "do"),
    ("do", "do", "do"),
    ("has", "have", "have"),
    ("is", "am", "are"),
    ("was", "was", "were"),
    ("did", "did", "did"),
)
_BEFORE_ME = (
    "to for with of about from by on at after before towards help helps helped gave give given"
    " made make told invite invited motivated"
).replace(" ", "|")
# Matches a question that is about the user only.
_PRONOUNS = (
    (r"\b(?:she|he)\b", "I"),
    (r"\bhis\b", "my"),
    (r"\bher\b(?= \w)", "my"),
    (r"\b(?:her|him)\b", "me"),
    (r"\b(?:herself|himself)\b", "myself"),
)


def first_person(question: str, user: str, agent: str) -> str:
    """Return the question in the first person, as the user asks the agent."""
    i, you = _pattern(user), _pattern(agent)
    both = rf"(?:{i} and {you}|{you} and {i})"
    about_both = re.search(rf"\b{you}\b", question)
    text = re.sub(rf"\b{both}['’]s?(?!\w)", "our", question)
    text = re.sub(rf"\b{both}\b", "we", text)
    text = re.sub(rf"\b{i}['’]s?(?!\w)", "my", text)
    text = re.sub(rf"\b{you}['’]s?(?!\w)", "your", text)
    for verb, first_person, yours in _VERBS:
        for name, pronoun, form in ((i, "I", first_person), (you, "you", yours)):
            pattern = re.compile(rf"\b({verb})((?: not)?) {name}\b", re.IGNORECASE)
            text = pattern.sub(partial(_turned, form, pronoun), text)
            text = re.sub(rf"\b{name} {verb}\b", f"{pronoun} {form}", text)
    text = re.sub(rf"\b({_BEFORE_ME}) {i}\b", r"\1 me", text)
    text = re.sub(rf"\b{i}(?=[?.!]?$)", "me", text)
    text = re.sub(rf"\b{i}\b", "I", text)
    text = re.sub(rf"\b{you}\b", "you", text)
    if not about_both:
        for pronoun, instead in _PRONOUNS:
            text = re.sub(pronoun, instead, text)
    return text[:1].upper() + text[1:]


def _pattern(name: str) -> str:
    return f"(?:{'|'.join(filter(None, (name, NICKNAMES.get(name))))})"


def _turned(form: str, pronoun: str, found: re.Match[str]) -> str:
    return f"{_like(found[1], form)}{found[2]} {pronoun}"


def _like(word: str, instead: str) -> str:
    return instead.capitalize() if word[0].isupper() else instead
