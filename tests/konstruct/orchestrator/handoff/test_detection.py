"""Detection of messages that ask for a person, and of a plain yes or no."""

import pytest

from konstruct.orchestrator.handoff.escalations import asks_for_person, find_phrase, yes_or_no


@pytest.mark.parametrize(
    "text",
    [
        "Talk to a human",
        "Can I talk to a human, please?",
        "I want to speak to a real person!",
        "hi, I'd like to talk to someone",
        "Please connect me with an operator.",
        "human please",
        "Could you get me a human agent?",
        "Ich möchte mit einem Menschen sprechen.",
        "Bitte verbinden Sie mich mit einem Mitarbeiter",
        "Kann ich bitte mit einer Person reden?",
        "Je voudrais parler à un humain, s'il vous plaît",
        "Quiero hablar con una persona",
        "por favor, hablar con un humano",
    ],
)
def test_a_plain_request_calls_for_a_person(text: str) -> None:
    assert asks_for_person(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "My sister wants to talk to a human rights lawyer.",
        "I talk to people all day.",
        "Are you a human?",
        "Yesterday I had to speak to an agent of the bank, and it took an hour.",
        "How do I talk to someone who lies to me?",
        "Remind me to call someone.",
        "Ich muss mit meinem Chef sprechen.",
        "I need somebody who loves me",
        "The person I want to speak to is Maria.",
        f"Talk to a human{'!' * 600}",
    ],
)
def test_longer_or_other_message_is_no_request_for_a_person(text: str) -> None:
    assert not asks_for_person(text)


def test_a_phrase_is_found_as_words_of_its_own() -> None:
    assert find_phrase("I have a COMPLAINT: it broke.", ["refund", "complaint"]) == "complaint"
    assert find_phrase("Je veux résilier", ["Resilier"]) == "Resilier"
    assert find_phrase("complaints", ["complaint"]) is None
    assert find_phrase("anything", [" ", "!"]) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes!", True),
        ("ja, bitte", True),
        ("Sí", True),
        ("No, thanks.", False),
        ("nein", False),
        ("Don't", False),
        ("Yes, and what is the weather?", None),
        ("Not today", None),
        (f"Yes{'!' * 600}", None),
        ("", None),
    ],
)
def test_only_a_complete_message_is_a_yes_or_no(text: str, expected: bool | None) -> None:
    assert yes_or_no(text) is expected
