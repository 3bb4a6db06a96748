"""Statements that a newer one replaces."""

from datetime import UTC, datetime, timedelta

import pytest

from memory.text import changes

JANUARY = datetime(2026, 1, 5, tzinfo=UTC)


def found(*texts: str, by_user: bool = True) -> list[changes.Statement]:
    """Return statements, each ten days after the one before."""
    return [
        changes.Statement(text, JANUARY + timedelta(days=10 * n), by_user)
        for n, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    ("older", "newer", "question"),
    [
        ("The port for ssh is 22.", "We moved ssh to 49222.", "Which port does ssh use?"),
        ("The port for ssh is 22.", "The port for ssh is 49222.", "Which port does ssh use?"),
        ("Ich arbeite in der Gärtnerei.", "In der Gärtnerei hab ich gekündigt.", "Wo arbeite ich?"),
        ("Dirige el coro Ramón.", "Ramón ya no dirige el coro.", "¿Quién dirige mi coro?"),
        ("Le code du portail est 45.", "Le code du portail a changé.", "Quel est mon code ?"),
        ("ロッカーの番号は4410です", "ロッカーの番号また変わった", "私のロッカーの番号は？"),
        ("SSH работает на порту 22.", "Мы перенесли SSH на порт 49222.", "На каком порту SSH?"),
        ("SSH portu 22.", "SSH portunu 49222 portuna taşıdık.", "SSH portu kaç?"),
        ("منفذ الخادم هو 22.", "نقلنا منفذ الخادم إلى 49222.", "ما هو منفذ الخادم؟"),
        ("SSHのポートは22番です。", "SSHのポートを49222番に変更しました。", "SSHのポートは何番？"),
        # No English question about the past.
        ("Die Säge war teuer.", "Hab jetzt doch eine neue Säge.", "Was kostet meine Säge?"),
    ],
)
def test_a_newer_statement_comes_first(older: str, newer: str, question: str) -> None:
    statements = found(older, "The train was late.", newer)
    replaced = changes.replacements(statements, question, mentions_user="ssh" not in question)
    assert replaced == {0: 2}
    assert changes.newer_first([0, 1, 2], replaced) == [2, 0, 1]
    assert changes.newer_first([2, 1, 0], replaced) == [2, 1, 0]


def test_what_replaces_nothing() -> None:
    ssh = ("The port for ssh is 22.", "We moved ssh to 49222.")
    question = "Which port does ssh use?"
    assert changes.replacements(found(*ssh, by_user=False), question, mentions_user=False) == {}
    past = "Which port did ssh have before?"
    assert changes.replacements(found(*ssh), past, mentions_user=False) == {}
    other = found(ssh[0], "We moved to Oslo.", "I like ssh, it is quick.")
    assert changes.replacements(other, question, mentions_user=False) == {}
    # Spanish "pas…" is a change, and German "Passwort" is none.
    german = found("Ich hab die Werkstatt in Altona.", "Das Passwort in der Werkstatt ist hobel.")
    assert changes.replacements(german, "Wo ist meine Werkstatt?", mentions_user=True) == {}


def test_the_newest_of_several_replaces_the_others() -> None:
    statements = found(
        "My code is 1 for the shed.", "The shed has a new code, 2.", "Again a new shed code, 3."
    )
    replaced = changes.replacements(statements, "What is my shed code?", mentions_user=True)
    assert changes.newer_first([0, 1, 2], replaced)[0] == 2


def test_a_correction_is_no_duplicate() -> None:
    assert changes.differs_by_one_word("The port is 22.", "The port is 49222.")
    assert changes.differs_by_one_word("Ann lives in Rome.", "Ann lives in Oslo.")
    assert not changes.differs_by_one_word("Ann lives in Rome.", "Ann is living in Rome.")
    assert not changes.differs_by_one_word("Her favourite is tea.", "Her favorite is tea.")


@pytest.mark.parametrize(
    "text",
    [
        "I am no longer a vegetarian", "Ich rauche nicht mehr", "ya no fumo", "je ne fume plus",
        "już nie palę",
    ],
)  # fmt: skip
def test_what_has_ended(text: str) -> None:
    assert changes.says_no_longer(text)
    assert not changes.says_no_longer("I like tea more than coffee")
