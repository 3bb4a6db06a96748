"""The analysis of a question for recall."""

import pytest

from memory.recall.scoring import MAX_TERMS, Question, proper_names
from memory.text import lexical
from memory.text.sentences import is_question, only_asks


@pytest.mark.parametrize(
    "text",
    [
        "Where does my sister live?",
        "where does my sister live",
        '"Where does she live?"',
        "Wo wohnt meine Schwester?",
        "¿Dónde vive mi hermana?",
        "姉はどこに住んでいますか。",
        "Where does she live? And since when is it so?",
    ],
)
def test_questions_are_recognized(text: str) -> None:
    assert is_question(text)
    assert only_asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "I live in Bern, did you know?",
        "My flight to Oslo leaves on Friday at 9, remember?",
        "My flight to Oslo leaves on Friday, doesn't it?",
        "Did I tell you that my dog is called Rex?",
        "Can you please remember that my favourite colour is teal?",
        "Could you note my birthday is on 3 May?",
        "Do not forget: my passport number is X123",
        "Do not call me before nine",
        "Do remember my password is qwerty",
        "How do I take my coffee: black, no sugar",
        "When I was five I lived in Rome",
        "What I love most is hiking",
    ],
)
def test_query_with_a_statement_is_not_only_a_question(text: str) -> None:
    assert is_question(text)
    assert not only_asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "What am I allergic to, do you know?",
        "So, what am I allergic to?",
        "Hey, do you know where my sister has moved?",
        "Do you remember where I live?",
        "Can you tell me when my train to Bern leaves?",
        "do you know my name",
        "Quick question: where do I live?",
        "does the 9:30 train stop in Bern?",
        "Where do I keep my note about the store?",
    ],
)
def test_a_question_that_speaks_of_remembering_only_asks(text: str) -> None:
    assert only_asks(text)


@pytest.mark.parametrize(
    "text",
    [
        "My sister lives in Lisbon.",
        "my sister lives in lisbon",
        "What a day!",
        "My sister lives in Lisbon. Where do you live?",
        "",
    ],
)
def test_statements_are_not_questions(text: str) -> None:
    assert not is_question(text)


def test_names_are_written_with_a_capital_and_not_because_a_sentence_begins() -> None:
    text = "Has Ann met Bob's friends in Lisbon? Maybe NATO knows."
    assert proper_names(text) == ["ann", "bob", "lisbon"]


def test_question_is_split_into_terms() -> None:
    question = Question.of("When did I tell you that Ann moved to Lisbon?")
    assert question.is_question
    assert question.asks_when
    assert question.mentions_user
    assert question.mentions_agent
    assert question.proper_names == [lexical.lexeme_hash("ann"), lexical.lexeme_hash("lisbon")]
    hashes = [lexical.lexeme_hash(lexeme) for lexeme in ("tell", "ann", "move", "lisbon")]
    assert question.text_terms == hashes
    assert question.terms[: len(hashes)] == hashes
    assert len(question.terms) == len(hashes) + 2  # the user's words, and the agent's


def test_how_many_asks_for_a_number_which_no_answer_repeats() -> None:
    assert Question.of("How many cats?").text_terms == Question.of("Cats?").text_terms


def test_beginning_and_end_of_a_long_query_are_the_question() -> None:
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}x" for n in range(200)]
    terms = Question.of(" ".join(words)).text_terms
    assert len(terms) == MAX_TERMS
    assert lexical.lexeme_hash(lexical.lexemes(words[0])[0]) == terms[0]
    assert lexical.lexeme_hash(lexical.lexemes(words[-1])[0]) == terms[-1]
