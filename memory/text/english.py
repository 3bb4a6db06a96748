"""English words of the lexical index: stop words, irregular forms, words of time."""

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The stop words of Snowball's English list, which Postgres' `english` configuration uses too, with
# the endings after an apostrophe.
STOP_WORDS = _words(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his
    himself she her hers herself it its itself they them their theirs themselves what which
    who whom this that these those am is are was were be been being have has had having do
    does did doing a an the and but if or because as until while of at by for with about
    against between into through during before after above below to from up down in out on
    off over under again further then once here there when where why how all any both each
    few more most other some such no nor not only own same so than too very s t can will
    just don should now d ll m re ve
    """
)

# Forms that the stemmer does not reduce to the stem of their base: went and go.
_IRREGULAR_FORMS = """
    go went gone|buy bought|bring brought|think thought|teach taught|catch caught
    seek sought|fight fought|sell sold|tell told|find found|hold held|keep kept|sleep slept
    feel felt|leave left|lose lost|meet met|feed fed|lead led|read read|make made|say said
    pay paid|lay laid|hear heard|build built|send sent|spend spent|lend lent|bend bent
    mean meant|learn learnt|dream dreamt|burn burnt|win won|stand stood
    understand understood|sit sat|get got gotten|give gave given|take took taken
    see saw seen|eat ate eaten|drink drank drunk|drive drove driven|ride rode ridden
    write wrote written|rise rose risen|speak spoke spoken|break broke broken
    choose chose chosen|wake woke woken|freeze froze frozen|steal stole stolen
    wear wore worn|tear tore torn|bear bore born|know knew known|grow grew grown
    throw threw thrown|fly flew flown|draw drew drawn|blow blew blown|show shown
    begin began begun|swim swam swum|sing sang sung|ring rang rung|run ran|come came
    become became|fall fell fallen|forget forgot forgotten|forgive forgave forgiven
    hide hid hidden|bite bit bitten|shake shook shaken|mistake mistook|undertake undertook
    overcome overcame|stick stuck|dig dug|hang hung|strike struck|swing swung|spin spun
    shoot shot|shine shone|light lit|slide slid|bleed bled|breed bred|deal dealt|kneel knelt
    lean leant|leap leapt|spell spelt|spill spilt|spoil spoilt|weep wept|sweep swept
    creep crept|sink sank sunk|shrink shrank shrunk|stink stank|spring sprang sprung
    lie lain|swear swore sworn|weave wove woven|sew sewn|bind bound|wind wound
    child children|man men|woman women|person people|foot feet|tooth teeth|mouse mice
    goose geese|wife wives|life lives|knife knives|leaf leaves|half halves|shelf shelves
    wolf wolves|self selves|good better best|bad worse worst|mom mum mother|dad father
"""
IRREGULAR = {
    form: group.split()[0]
    for line in _IRREGULAR_FORMS.strip().splitlines()
    for group in line.split("|")
    for form in group.split()[1:]
}

MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip

# A memory with one of these, or a year, can answer a question for a time.
TIME_WORDS = _words(
    """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
    yesterday today tonight tomorrow ago last next since recently week weeks weekend month months
    year years day days night morning afternoon evening summer winter spring autumn fall
    """
)

# Pronouns of the user and of the agent in a conversation between the two.
I_WORDS = _words("i me my mine myself we us our ours ourselves")
YOU_WORDS = _words("you your yours yourself")

# A sentence with such a beginning and without a mark at its end is a question.
QUESTION_WORDS = _words(
    """
    who whom whose what which when where why how do does did is are was were am has have had
    can could will would shall should may might must
    """
)

# Beginnings of questions that are not answered by yes or no. In "When I was five I lived in Bern"
# the subject follows, in a question the verb.
WH_WORDS = _words("who whom whose what which when where why how")
SUBJECT_WORDS = _words("i we you he she it they my our your his her their")
# "Do not forget" and "do remember" are no questions.
AFTER_NO_SUBJECT = _words("not never remember note keep forget")
# "I live in Bern, remember?" Tokenized: "don't" is two words.
TAGS = frozenset(
    (
        "ok", "okay", "right", "remember", "correct", "yes", "no", "yeah", "you know",
        "did you know", "do you remember", "remember that", "is that ok", "got it", "understood",
        "will you", "would you", "can you", "could you", "please",
        *(
            f"{verb}{negation} {subject}"
            for verb in ("is", "are", "was", "were", "do", "does", "did", "has", "have")
            for negation in ("", " not", "n t")
            for subject in ("i", "you", "he", "she", "it", "we", "they")
        ),
    )
)  # fmt: skip
# A statement follows "Can you note ..." and "Did I tell you that ...".
REQUESTING_WORDS = _words("can could will would")
NOTING_WORDS = _words("note save store")
TELLING_WORDS = _words(
    "remember forget mind know knew tell told say said mention mentioned see hear"
)

# "How much", "how many": answers do not repeat them.
ASKED_NUMBERS = _words("much mani")  # as stemmed

# A question for a time.
WHEN = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|time)\b|\bhow long ago\b", re.IGNORECASE
)
