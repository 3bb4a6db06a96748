"""The analysis of the words of a candidate."""

import pytest

from konstruct.orchestrator.extraction.checks import (
    is_limited_in_time,
    is_other_language,
    sensitive_topic,
)


@pytest.mark.parametrize(
    ("fact", "evidence", "expected"),
    [
        ("Ben lives in Turin.", "I am staying in Turin until Friday.", False),
        ("Den lives in Die.", "I have moved from Turin to Die, and we like it.", False),
        (
            "Ben wohnt nicht mehr in Turin und ist zufrieden.",
            "I have left Turin and am glad.",
            True,
        ),
        ("Ben lives with his dog and he is glad.", "Ich wohne mit meinem Hund und bin froh.", True),
    ],
)
def test_names_show_no_language(fact: str, evidence: str, expected: bool) -> None:
    assert is_other_language(fact, evidence) is expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I am in Oslo this week.", True),
        ("I live in Oslo until June.", True),
        ("Wir wohnen bis Freitag in Oslo.", True),
        ("Vivo en Oslo por ahora.", True),
        ("I live in Oslo now.", False),
        ("I have lived in Oslo since last week.", False),
        ("Ich wohne in Oslo.", False),
        ("Vivo en Oslo.", False),
    ],
)
def test_limited_times_are_recognized(text: str, expected: bool) -> None:
    assert is_limited_in_time(text) is expected


@pytest.mark.parametrize(
    ("slot", "text", "topic"),
    [
        ("job_title", "She is a nurse at the children's hospital.", ""),
        ("employer", "She works for the catholic church.", "religion"),
        ("sport", "She broke her arm.", "health"),
        ("diet", "Sie hat eine Nussallergie.", "health"),
        ("sport", "Sie hat sich den Arm gebrochen.", "health"),
        ("diet", "Elle est intolérante au lactose.", "health"),
        ("sport", "Elle s'est cassé le bras.", "health"),
        ("diet", "Es alérgica a las nueces.", "health"),
        ("sport", "Se ha roto el brazo.", "health"),
    ],
)
def test_topics_are_those_of_the_value(slot: str, text: str, topic: str) -> None:
    assert sensitive_topic(slot, text) == topic
