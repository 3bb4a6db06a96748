"""Facts without a language model: statements that give a fact, and statements that do not."""

from types import SimpleNamespace

import pytest

from konstruct.orchestrator.extraction.rules import MAX_CHARACTERS, MAX_EVIDENCE, candidates
from memory.models import FactKind


def _message(content: str, *, role: str = "user", label: str = "m1") -> SimpleNamespace:
    return SimpleNamespace(label=label, role=role, speaker="Ada", content=content)


def _found(text: str) -> list[tuple[str, str]]:
    return [(candidate.slot, candidate.value) for candidate in candidates([_message(text)])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My name is Ada Lovelace.", [("name", "Ada Lovelace")]),
        ("Hi, I'm Ada and I live in Oslo.", [("name", "Ada"), ("home", "Oslo")]),
        ("hello! I am Ada", [("name", "Ada")]),
        ("I live in New York", [("home", "New York")]),
        ("i live in Portland, Oregon.", [("home", "Portland, Oregon")]),
        ("Thanks! I live in São Paulo with my dog.", [("home", "São Paulo")]),
        ("I just moved to Bergen.", [("home", "Bergen")]),
        ("I live in Oslo, can you recommend a café?", [("home", "Oslo")]),
        ("By the way, I'm originally from Frankfurt am Main!", [("origin", "Frankfurt am Main")]),
        ("I work at Johnson & Johnson.", [("employer", "Johnson & Johnson")]),
        ("I work for Siemens and I love it.", [("employer", "Siemens")]),
        ("I'm a nurse.", [("job", "nurse")]),
        (
            "I'm a software engineer at Google.",
            [("job", "software engineer"), ("employer", "Google")],
        ),
        ("I work as an accountant, so I know.", [("job", "accountant")]),
        ("As a teacher, I have long holidays.", [("job", "teacher")]),
        ("I'm vegan.", [("diet", "vegan")]),
        ("I'm a vegetarian, what could I cook tonight?", [("diet", "vegetarian")]),
        ("As a vegetarian, I miss good options here.", [("diet", "vegetarian")]),
        ("I don't eat pork.", [("does_not_eat", "pork")]),
        ("I'm lactose intolerant", [("diet", "lactose intolerant")]),
        ("I'm allergic to peanuts.", [("allergy", "peanuts")]),
        (
            "Please remember: I'm allergic to nuts, cow milk and shellfish.",
            [("allergy", "nuts"), ("allergy", "cow milk"), ("allergy", "shellfish")],
        ),
        ("I have a peanut allergy.", [("allergy", "peanut")]),
        ("My birthday is on 3 May.", [("birthday", "3 May")]),
        ("My birthday's the 3rd of May 1990!", [("birthday", "the 3rd of May 1990")]),
        ("I was born on May 3, 1990.", [("birthday", "May 3, 1990")]),
        ("I was born and raised in Lisbon.", [("birthplace", "Lisbon")]),
        ("My wife's name is Grace.", [("wife", "Grace")]),
        ("My mum is called Ruth.", [("mother", "Ruth")]),
        ("We visited my brother Tom last week.", [("brother", "Tom")]),
        ("It was my daughter Sara's birthday!", [("daughter", "Sara")]),
        ("I have a dog named Max.", [("pet", "Max")]),
        ("My cat's name is Luna", [("pet", "Luna")]),
        ("I need food for my cat, Luna, when I'm away.", [("pet", "Luna")]),
        ("I love hiking!", [("likes", "hiking")]),
        ("I really enjoy baking bread.", [("likes", "baking bread")]),
        ("My favorite color is dark green.", [("favorite_color", "dark green")]),
        ("My favourite ice cream is vanilla.", [("favorite_ice_cream", "vanilla")]),
        (
            "A few things about me:\nI live in Oslo.\nI'm vegan.",
            [("home", "Oslo"), ("diet", "vegan")],
        ),
        ("Ich heiße Ada Müller.", [("name", "Ada Müller")]),
        ("Ich wohne in Bad Homburg.", [("home", "Bad Homburg")]),
        (
            "Ich komme aus Wien und ich arbeite als Lehrerin.",
            [("origin", "Wien"), ("job", "Lehrerin")],
        ),
        ("Ich bin Vegetarierin.", [("diet", "Vegetarierin")]),
        (
            "Ich bin allergisch gegen Erdnüsse und Milch.",
            [("allergy", "Erdnüsse"), ("allergy", "Milch")],
        ),
        ("Ich habe am 3. Mai Geburtstag.", [("birthday", "3. Mai")]),
        ("Meine Frau heißt Grace.", [("wife", "Grace")]),
        ("Mein Hund heißt Max.", [("pet", "Max")]),
        ("Me llamo Ada y vivo en Sevilla.", [("name", "Ada"), ("home", "Sevilla")]),
        ("Soy vegetariana.", [("diet", "vegetariana")]),
        ("Soy alérgica a las nueces.", [("allergy", "nueces")]),
        ("Mi cumpleaños es el 3 de mayo.", [("birthday", "3 de mayo")]),
        ("Mi hermano se llama Tomás.", [("brother", "Tomás")]),
    ],
)
def test_plain_statements_give_facts(text: str, expected: list[tuple[str, str]]) -> None:
    assert _found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        # About other people.
        "My sister is vegan.",
        "My brother lives in Oslo.",
        "My wife works at Siemens.",
        "Her name is Anna.",
        "She is allergic to peanuts.",
        "You live in Oslo.",
        "My friend Tom is a nurse.",
        "My son's teacher is named Anna.",
        "My name is also my grandfather's.",
        "Do you know my friend's sister Anna?",
        "The hero sighs, I live in Oslo.",
        "Meine Schwester ist Veganerin.",
        "Mi hermana es vegana.",
        # Negated.
        "I'm not vegan.",
        "I am no longer vegetarian.",
        "I don't live in Oslo.",
        "I never lived in Oslo.",
        "I'm not allergic to nuts.",
        "I'm not a nurse.",
        "My name is not Anna.",
        "I live in Oslo, not.",
        "It's not true that I'm vegan.",
        "I don't love hiking.",
        "Ich bin nicht vegan.",
        "Ich wohne nicht in Oslo.",
        "No soy vegano.",
        "No vivo en Sevilla.",
        # Questions.
        "Do I live in Oslo?",
        "I live in Oslo?",
        "Am I vegan?",
        "I'm allergic to nuts, am I?",
        "My name is Anna, right?",
        "Did you know that I'm vegan?",
        "What if I'm allergic to nuts?",
        "Is my birthday on 3 May?",
        "¿Vivo en Sevilla?",
        "Wohne ich in Oslo?",
        # Conditions, wishes, doubts, plans.
        "If I live in Oslo, what do I pay?",
        "Suppose I'm a nurse.",
        "Say I live in Oslo.",
        "I wish I live in Oslo.",
        "Maybe I'm allergic to nuts.",
        "I think I'm allergic to nuts.",
        "I might be vegan.",
        "I'm thinking of becoming vegan.",
        "I'm going vegan.",
        "I'm almost vegan.",
        "I'm basically a therapist, I guess.",
        "I feel like I'm a nurse.",
        "When I live in Oslo, I cycle.",
        "I would love living in Oslo.",
        "I want to work at Google.",
        "I applied as a nurse at Charité.",
        "Imagine you wake up. I'm a doctor.",
        "Wenn ich in Oslo wohne, fahre ich Rad.",
        "Vielleicht bin ich allergisch gegen Milch.",
        "Si vivo en Sevilla, no pago nada.",
        # The past, and ended states.
        "I used to live in Oslo.",
        "I lived in Oslo.",
        "I was vegan.",
        "I'm a former nurse.",
        "I live in Oslo until June.",
        "I live in Oslo temporarily.",
        "I live in Oslo for the summer.",
        "As a student, I worked in bars.",
        "Ich habe früher in Oslo gewohnt.",
        # Quotes of others.
        'She said "I live in Oslo."',
        "She said: I live in Oslo.",
        "My boss told me I'm a nurse.",
        "“I’m vegan,” he answered.",
        "Er meint, ich bin vegan.",
        "»Ich wohne in Oslo.«",
        "«Vivo en Sevilla.»",
        "> I live in Oslo.",
        "On 3 May Tom wrote:\nI live in Oslo.",
        "Tom: I live in Oslo.",
        "The song goes 'I'm a doctor.'",
        "According to her, I'm a nurse.",
        'An unfinished quotation: "I live in Oslo. I am vegan.',
        # Texts to work on, games, examples.
        "Translate this to German:\nMy name is Anna.",
        "Translate: I live in Oslo.",
        "Is this sentence correct? I live in Oslo.",
        "Please rewrite my text. I am a nurse and I live in Oslo.",
        "Please write a story. I'm a doctor.",
        "Let us role-play. I'm a doctor.",
        "Pretend that I'm a doctor. I live in Oslo.",
        "You are a nurse. I'm a doctor.",
        "From now on, act as if. I'm a doctor.",
        "For example, I live in Oslo.",
        "Repeat after me. I am vegan.",
        "Dear Sir, I work at Siemens.",
        "Correct the grammar. I lives in Oslo. I live in Oslo.",
        "Übersetze bitte: Ich wohne in Oslo.",
        "Stell dir vor. Ich wohne in Oslo.",
        "Traduce esto. Vivo en Sevilla.",
        # Code.
        "```\nI live in Oslo.\n```",
        "`I am vegan.`",
        "```\nI live in Oslo.",
        "print(x) # I live in Oslo.",
        "| I live in Oslo |",
        "https://example.com/?q=I live in",
        "name = Anna; My name is {name}.",
        # Irony and jokes.
        "I'm a doctor, lol.",
        "I live in Oslo 😂",
        "I'm vegan. Just kidding!",
        "Yeah right, I'm vegan.",
        "I'm a lawyer /s",
        "Haha. I'm vegan.",
        "I'm allergic to Mondays.",
        "I'm allergic to work.",
        "I'm allergic to you.",
        "Ich bin Veganer. War nur Spaß!",
        "Soy vegano. Es broma.",
        # Other meanings of the same words.
        "I'm a big fan of hiking.",
        "I'm a bit nervous.",
        "I'm a mix of excited and scared.",
        "I'm a morning person.",
        "I'm a good cook.",
        "I'm a nurse in a play.",
        "I'm a doctor for Halloween.",
        "I'm from the future.",
        "I live in fear.",
        "I live in a city near LA.",
        "I live in the suburbs.",
        "I live in the moment.",
        "I work at night.",
        "I work at Night.",
        "I work for free.",
        "I work as a team.",
        "I work as fast as I can.",
        "My name is on the list.",
        "My name is known.",
        "My birthday is soon.",
        "My birthday is in May.",
        "I was born in May.",
        "I was born in a small town.",
        "I was born on Monday.",
        "Hi, I'm Sorry.",
        "Hi, I'm hungry.",
        "Hi, I'm German.",
        "I'm Batman.",
        "My dog is called every morning.",
        "I have a dog.",
        "I have a friend called Max.",
        "I have a bad allergy.",
        "I love you.",
        "I love going.",
        "I love being here.",
        "I like the idea of hiking.",
        "I love nothing.",
        "I love everything.",
        "I love seeing them.",
        "I love this thing.",
        "I love finding new trends for my store.",
        "My favorite part is the end.",
        "My favorite food is always changing.",
        "My favorite color is the one that you chose for me.",
        "My sister Sunday school is closed.",
        "I'm allergic to most reptiles.",
        "I'm allergic to nuts in stories that my cousins invent about me",
        "Ich arbeite bei Regen.",
        "Ich wohne in Miete.",
        "Ich bin müde.",
        "Hallo, ich bin Lehrerin.",
        "Ich bin Vegetarierin gewesen.",
        "Soy de los que duermen poco.",
        "Vivo en paz.",
        "",
        "…",
    ],
)
def test_other_texts_give_none(text: str) -> None:
    assert _found(text) == []


def test_the_agent_gives_none() -> None:
    assert candidates([_message("I live in Oslo.", role="assistant")]) == []


def test_long_texts_give_none() -> None:
    statement = "I live in Oslo. "
    assert _found(statement + "x" * MAX_CHARACTERS) == []
    assert _found("My name is " + "A" * 100_000) == []


def test_a_candidate_has_its_quote() -> None:
    text = "Hello, nice day! By the way, I'm allergic to cow milk and my wife is called Grace."
    first, second = candidates([_message(text)])
    assert (first.subject, first.speaker, first.kind) == ("Ada", "Ada", FactKind.OBSERVED)
    assert first.fact == "Ada is allergic to cow milk."
    assert first.evidence == (("m1", "I'm allergic to cow milk"),)
    assert first.is_multi_valued
    assert second.fact == "Ada's wife is named Grace."
    assert second.evidence == (("m1", "my wife is called Grace"),)
    assert not second.is_multi_valued
    assert all(quote in text for candidate in (first, second) for _, quote in candidate.evidence)


def test_the_same_value_is_one_candidate_with_its_evidence() -> None:
    messages = [_message("I live in Oslo.", label=f"m{number}") for number in range(6)]
    (candidate,) = candidates(messages)
    assert [message for message, _ in candidate.evidence] == ["m0", "m1", "m2"][:MAX_EVIDENCE]


def test_facts_are_in_the_language_of_the_message() -> None:
    texts = ["Ich wohne in Graz.", "Vivo en Sevilla.", "I live in Oslo."]
    found = candidates([_message(text, label=text) for text in texts])
    assert [candidate.fact for candidate in found] == [
        "Ada wohnt in Graz.",
        "Ada vive en Sevilla.",
        "Ada lives in Oslo.",
    ]
