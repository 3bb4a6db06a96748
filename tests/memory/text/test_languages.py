"""Words of other languages than English: a question in one form finds the other."""

import pytest

from memory.recall.scoring import Question
from memory.text.lexical import (
    alternatives,
    analyse,
    has_time_word,
    language_of_latin_words,
    latin_language,
    lexemes,
    words,
)


@pytest.mark.parametrize(
    ("statement", "question", "shared"),
    [
        ("mir wurde das Rad am Bahnhof gestohlen", "Welche Räder stehen an Bahnhöfen?", 2),
        ("me lo dijo la veterinaria de los perros", "¿Qué veterinarias atienden a mi perro?", 2),
        ("j'ai arrêté de fumer les cigarettes", "Est-ce que je fume une cigarette ?", 2),
        ("aluguei um carro nas férias", "Que carros são de aluguel?", 1),
        ("dziadek przepisał na nas działkę", "Kto nam przepisał działki?", 2),
        ("kedim balkondan düştü", "Kediler neden balkona düşüyor?", 2),
        ("мой кот перегрыз провода", "Какой провод у кота?", 2),
        ("ёлку поставили", "где стоит елка?", 1),
        ("اشتريتُ الكتابَ", "ما كتاب؟", 1),
        ("पुरानी किताबें बेच दीं", "किताब बेची क्या?", 2),
        ("我领养了一只三花猫", "我的猫是谁？", 1),
        ("弟の翔太が大学に受かった", "弟の大学は？", 4),
        ("カフェラテを飲んだ", "ラテは？", 1),
        ("강아지를 데려왔어요", "강아지는 어디에?", 3),
        ("am 5. März", "March 5", 2),
        ("３月５日", "March 5", 2),
        ("Łukasz ließ uns grüßen", "lukasz LIESS", 2),
    ],
)
def test_a_question_shares_words_with_the_statement(
    statement: str, question: str, shared: int
) -> None:
    assert len({*lexemes(statement)} & {*lexemes(question)}) == shared


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Where do I live?", "en"),
        ("See ya!", "en"),
        ("Los Angeles", "en"),
        ("Beyoncé's café was on the corner", "en"),
        ("Wo wohne ich?", "de"),
        ("¿Dónde vivo?", "es"),
        ("Où est-ce que j'habite ?", "fr"),
        ("Onde eu moro?", "pt"),
        ("Gdzie mieszkam?", "pl"),
        ("Nerede oturuyorum?", "tr"),
        ("Waar woon ik nu?", "nl"),
        ("Dove abito adesso?", "it"),
        ("Var bor jag nu?", "sv"),
        ("Hvor bor jeg, og hvad hedder min hund?", "da"),
        ("Hvor bor jeg, og hva heter hunden min?", "nb"),
        ("Missä minä asun?", "fi"),
        ("Di mana aku tinggal sekarang?", "id"),
        ("42", "en"),
    ],
)
def test_frequent_words_and_letters_decide_the_language(text: str, code: str) -> None:
    assert language_of_latin_words(analyse(text)).code == code


def test_a_text_without_frequent_words_is_english() -> None:
    assert latin_language(["kartoffeln"], ["kartoffeln"]).code == "en"


@pytest.mark.parametrize(
    ("query", "mentions_user", "mentions_agent", "asks_when"),
    [
        ("Wann ziehe ich um?", True, False, True),
        ("Wann kommst du?", False, True, True),
        ("¿Dónde vivo?", True, False, False),
        ("Wo wohnt Jule?", False, False, False),
        ("你喜欢什么？", False, True, False),
        ("いつ引っ越した？", True, False, True),
    ],
)
def test_pronouns_and_words_of_time_are_seen(
    query: str, mentions_user: bool, mentions_agent: bool, asks_when: bool
) -> None:
    question = Question.of(query)
    assert question.mentions_user is mentions_user
    assert question.mentions_agent is mentions_agent
    assert question.asks_when is asks_when


def test_german_nouns_are_no_names() -> None:
    assert Question.of("Wo hat der Hund den Schuh versteckt?").proper_names == []


def test_words_of_time_are_seen_in_each_language() -> None:
    for text in ("It was last week", "in 2021", "wir waren gestern dort", "вчера был дождь"):
        assert has_time_word(text)
    for text in ("I like tea", "call 20215", "wir waren dort"):
        assert not has_time_word(text)


def test_characters_without_a_shape_do_not_cut_a_word() -> None:
    assert words("सॉफ्ट\u200cवेयर zu\u00adsammen") == [*words("सॉफ्टवेयर"), "zusammen"]
    # A Persian plural ends after one.
    assert words("کتاب\u200cها") == words("کتاب ها")


def test_a_word_of_unknown_language_has_the_lexemes_of_each() -> None:
    forms = {"wohnungen", "wohnung", "wohnunge"}  # English, German, Turkish
    assert dict.fromkeys(forms, "wohnungen").items() <= alternatives(analyse("Wohnungen")).items()
    known = alternatives(analyse("Wir suchen die Wohnungen"))
    assert {word for word in known if known[word] == word} == {"such", "wohnung"}
    assert "wohnunge" not in known
    assert alternatives(analyse("the weddings")) == {"wed": "wed"}
    assert alternatives(analyse("weddings"), limit=1) == {"wed": "wed"}


def test_text_without_accents_finds_the_text_with_them() -> None:
    assert lexemes("w domu jest lozko") == lexemes("w domu jest łóżko")
    assert lexemes("la cancion es para mi") == lexemes("la canción es para mí")


def test_stems_with_accents_are_those_of_the_language() -> None:
    assert lexemes("él corrió") == lexemes("ellos corrieron")
    assert alternatives(analyse("¿corrió?")).keys() >= {*lexemes("mi perro no corrio")[1:]}


@pytest.mark.parametrize(
    ("query", "statement"),
    [
        ("Wie groß ist die Wohnung?", "ich habe eine Zweizimmerwohnung gefunden"),
        ("Wo ist mein Fotoserver?", "der Server wird nicht angegriffen"),
        ("Waar is mijn fiets?", "ik heb een nieuwe bakfiets gekocht"),
        ("Var är min cykel?", "jag har en ny lastcykel"),
    ],
)
def test_parts_of_joined_words_are_found(query: str, statement: str) -> None:
    assert not {*lexemes(query)} & {*lexemes(statement)}
    assert {*alternatives(analyse(query))} & {*lexemes(statement)}


def test_letters_after_a_month_are_words() -> None:
    assert lexemes("8月生まれ") == ["8", "august", *lexemes("生まれ")]
