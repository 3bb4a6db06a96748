"""Patterns of the rules that find facts without a language model: statements, and doubts."""

from typing import Final

import regex

# --- Words ----------------------------------------------------------------------------------------

_NAME = r"\p{Lu}\p{Ll}[\p{L}'’-]{0,30}"
_NAMES = rf"{_NAME}(?: {_NAME}){{0,2}}"
# "Oslo", "New York", "Frankfurt am Main", "Portland, Oregon".
_PLACE_WORD = r"(?:St\. )?\p{Lu}[\p{L}'’-]{1,30}"
_PLACE = (
    rf"(?:the )?{_PLACE_WORD}(?:(?: (?:am|an der|de|de la|del|la|of|upon|do|da))? {_PLACE_WORD})"
    rf"{{0,3}}(?:, {_PLACE_WORD}(?: {_PLACE_WORD})?)?"
)
_COMPANY_WORD = r"\p{Lu}(?:[\p{L}\p{N}&'’-]|\.(?=\p{L})){0,30}"
_COMPANY = rf"(?:the )?{_COMPANY_WORD}(?: (?:(?:of|and|&) )?{_COMPANY_WORD}){{0,4}}"
_THING = r"\p{L}[\p{L}'’-]{1,24}"
_DATE = (
    r"(?:(?:the )?{day}(?:st|nd|rd|th)?(?: of)? {month}(?:,? {year})?"
    r"|{month} (?:the )?{day}(?:st|nd|rd|th)?(?:,? {year})?|{year}-\d\d-\d\d)"
).format(
    day=r"\d{1,2}",
    year=r"(?:19|20)\d\d",
    month=r"(?i:january|february|march|april|may|june|july|august|september|october|november"
    r"|december|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)",
)
_MONAT = (
    r"(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)"
)
# Instead of the point of "3. Mai", which does not end a sentence.
ORDINAL_POINT: Final = "\u2024"
ORDINAL = regex.compile(rf"(?<=\d)\.(?= {_MONAT})")
_DATUM = rf"\d{{1,2}}{ORDINAL_POINT} {_MONAT}(?: (?:19|20)\d\d)?"
_FECHA = (
    r"\d{1,2} de (?:enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre"
    r"|noviembre|diciembre)(?: (?:de|del) (?:19|20)\d\d)?"
)


def _list(conjunction: str) -> str:
    """Up to six things, such as "nuts, cow milk and shellfish"."""
    item = rf"{_THING}(?: {_THING})?"
    return rf"{item}(?:, {item}){{0,4}}(?:,? {conjunction} {item})?"


_TRADE = (
    r"(?:(?:assistant|backend|civil|data|dental|elementary|emergency|freelance|frontend|full-time"
    r"|graphic|high|history|junior|law|marketing|math|mechanical|medical|music|part-time|primary"
    r"|registered|retail|school|science|security|senior|social|software|tax|truck|university) )"
    r"{0,3}"
    r"(?:accountant|actor|actress|analyst|architect|artist|attorney|baker|barber|barista|bartender"
    r"|biologist|bookkeeper|butcher|carpenter|cashier|chef|chemist|consultant|cook|counsell?or"
    r"|dentist|designer|developer|dietitian|doctor|driver|economist|editor|electrician|engineer"
    r"|farmer|firefighter|florist|gardener|geologist|guard|hairdresser|historian|janitor|journalist"
    r"|judge|lawyer|lecturer|librarian|locksmith|manager|mathematician|mechanic|midwife|musician"
    r"|nurse|nutritionist|optician|painter|paralegal|paramedic|pediatrician|pharmacist"
    r"|photographer|physician|physicist|physiotherapist|pilot|plumber|police officer|principal"
    r"|professor|programmer|psychiatrist|psychologist|radiologist|realtor|receptionist|researcher"
    r"|scientist|secretary|solicitor|student|surgeon|tailor|teacher|technician|therapist"
    r"|translator|tutor|veterinarian|waiter|waitress|welder|worker|writer)"
)
_RELATION = (
    r"(?:wife|husband|fiancée?|boyfriend|girlfriend|son|daughter|brother|sister|mother|father|mom"
    r"|mum|dad|grandmother|grandfather|grandma|grandpa|aunt|uncle|niece|nephew|cousin)"
)
_PET = r"(?:dog|cat|puppy|kitten|parrot|hamster|rabbit|horse|guinea pig|turtle|tortoise)"
_VERWANDT = r"(?:Frau|Mann|Sohn|Tochter|Bruder|Schwester|Mutter|Vater|Oma|Opa|Tante|Onkel)"
_HAUSTIER = r"(?:Hund|Hündin|Katze|Kater|Papagei|Hamster|Kaninchen|Pferd|Schildkröte)"
_PARIENTE = (
    r"(?:esposa|esposo|mujer|marido|novia|novio|hija|hijo|hermana|hermano|madre|padre|mamá|papá"
    r"|abuela|abuelo|tía|tío)"
)
_MASCOTA = r"(?:perro|perra|gato|gata|loro|hámster|conejo|caballo|tortuga)"

# The end of a statement: of its sentence, or of its clause before another clause.
_END = (
    r"(?=(?: too| as well)? ?(?:[.!;)]{0,3}$|[;)]|[,–—-]{0,2} ?(?:(?:and|but) (?:am|have|live|love"
    r"|work|our|we|my|[Ii])\b|so\b|with my\b|because\b|since\b)"
    r"|, (?:any|can|could|do you|how|is|what|where|which)\b))"
)
_ENDE = (
    r"(?= ?(?:[.!;)]{0,3}$|[;)]|,? ?(?:(?:und|aber) (?:ich|meine?|bin|habe|wohne|arbeite)\b"
    r"|weil\b|mit meine)))"
)
_FIN = (
    r"(?= ?(?:[.!;)]{0,3}$|[;)]|,? ?(?:(?:y|pero) (?:soy|me|mi|vivo|trabajo|tengo)\b|porque\b"
    r"|con mi)))"
)
_ONLY = r"(?= ?[.!]{0,3}$)"

# --- Rules ----------------------------------------------------------------------------------------

# The slots are the names of the groups. A slot depends on the word of its "…_of" group.
_I_AM = r"[Ii](?:['’]?m| am)"
ENGLISH = regex.compile(
    "|".join(
        (
            rf"[Mm]y (?:full )?name(?: is|['’]s) (?P<name>{_NAMES}){_END}",
            rf"[Ii] (?:currently )?live in (?P<home>{_PLACE}){_END}",
            rf"[Ii](?:['’]ve| have)? (?:just|recently) moved to (?P<home>{_PLACE}){_END}",
            rf"{_I_AM} (?:originally )?from (?P<origin>{_PLACE}){_END}",
            rf"[Ii] (?:currently )?work (?:at|for) (?P<employer>{_COMPANY}){_END}",
            r"[Aa]s an? (?P<diet>vegan|vegetarian|pescatarian)(?=, (?:I\b|my\b))",
            rf"[Aa]s an? (?P<job>{_TRADE})(?=, I(?:['’]m| am|['’]ve| have| need| work| often)\b)",
            rf"(?:[Ii] (?:currently )?work as|{_I_AM}) an? (?P<job>{_TRADE})"
            rf"(?: at (?P<employer>{_COMPANY}))?{_END}",
            rf"{_I_AM} (?:also )?(?:an? )?(?P<diet>vegan|vegetarian|pescatarian"
            rf"|(?:lactose|gluten)[ -]intolerant){_END}",
            r"[Ii] (?:don['’]?t|do not|never) eat (?P<does_not_eat>meat|red meat|pork|beef|fish"
            rf"|seafood|dairy|eggs|gluten){_END}",
            rf"{_I_AM} (?:also )?(?:severely |highly |very )?allergic to "
            rf"(?P<allergy>{_list('(?:and|or)')}){_END}",
            rf"[Ii] have an? (?:severe |bad )?(?P<allergy>{_THING}) allergy{_END}",
            rf"[Mm]y birthday(?: is|['’]s) (?:on )?(?P<birthday>{_DATE}){_END}",
            rf"[Ii] was born on (?P<birthday>{_DATE}){_END}",
            rf"[Ii] was born (?:and raised )?in (?P<birthplace>{_PLACE}){_END}",
            rf"[Mm]y (?P<relative_of>{_RELATION})(?:['’]s name is| is (?:called|named)) "
            rf"(?P<relative>{_NAME}){_END}",
            rf"[Mm]y (?P<pet_of>{_PET})(?:['’]s name is| is (?:called|named)) (?P<pet>{_NAME})"
            rf"{_END}",
            rf"[Ii] (?:also )?have an? (?P<pet_of>{_PET}) (?:named|called) (?P<pet>{_NAME}){_END}",
            rf"[Ii] (?:really )?(?:love|like|enjoy) (?P<likes>\p{{Ll}}{{2,20}}ing"
            rf"(?: \p{{Ll}}{{3,20}})?){_ONLY}",
            r"[Mm]y favou?rite (?P<favorite_of>animal|artist|author|band|book|cake|city|colou?r"
            r"|cuisine|dessert|dish|drink|flower|food|fruit|game|ice cream|meal|movie|restaurant"
            rf"|season|singer|snack|song|sport|subject|vegetable) is (?P<favorite>{_THING}"
            rf"(?: {_THING}){{0,3}}){_ONLY}",
            # After a greeting. Not "Hi, I'm Spanish".
            rf"{_I_AM} (?P<introduced>(?!\p{{L}}{{0,20}}(?:ish|ese|ian|can|ean)\b){_NAME}){_END}",
        )
    )
)
# "My wife Anna and I", "with my dog, Max," inside of a sentence.
NAMED_RELATIVE = regex.compile(
    rf"\b[Mm]y (?:(?P<relative_of>{_RELATION}),? (?P<relative>{_NAME})"
    rf"|(?P<pet_of>{_PET}),? (?P<pet>{_NAME}))"
)
GERMAN = regex.compile(
    "|".join(
        (
            rf"(?:[Ii]ch heiße|[Ii]ch heisse|[Mm]ein Name ist) (?P<name>{_NAMES}){_ENDE}",
            rf"[Ii]ch wohne (?:jetzt |derzeit )?in (?P<home>{_PLACE}){_ENDE}",
            rf"[Ii]ch komme aus (?P<origin>{_PLACE}){_ENDE}",
            rf"[Ii]ch arbeite bei (?:der |dem )?(?P<employer>{_COMPANY}){_ENDE}",
            rf"[Ii]ch arbeite als (?P<job>{_NAME}){_ENDE}",
            rf"[Ii]ch bin (?:auch )?(?P<diet>vegan|vegetarisch|Veganer(?:in)?"
            rf"|Vegetarier(?:in)?){_ENDE}",
            r"[Ii]ch esse kein(?:en)? (?P<does_not_eat>Fleisch|Fisch|Schweinefleisch|Gluten)"
            rf"{_ENDE}",
            rf"[Ii]ch bin (?:auch )?(?:stark )?allergisch (?:gegen|auf) "
            rf"(?P<allergy>{_list('und')}){_ENDE}",
            rf"[Ii]ch habe am (?P<birthday>{_DATUM}) Geburtstag{_ENDE}",
            rf"[Mm]ein Geburtstag ist (?:am |der )?(?P<birthday>{_DATUM}){_ENDE}",
            rf"[Mm]eine? (?P<relative_of>{_VERWANDT}) heißt (?P<relative>{_NAME}){_ENDE}",
            rf"[Mm]eine? (?P<pet_of>{_HAUSTIER}) heißt (?P<pet>{_NAME}){_ENDE}",
        )
    )
)
SPANISH = regex.compile(
    "|".join(
        (
            rf"(?:[Mm]e llamo|[Mm]i nombre es) (?P<name>{_NAMES}){_FIN}",
            rf"(?:[Yy]o )?[Vv]ivo en (?P<home>{_PLACE}){_FIN}",
            rf"(?:[Yy]o )?[Ss]oy de (?P<origin>{_PLACE}){_FIN}",
            rf"(?:[Yy]o )?[Tt]rabajo (?:en|para) (?P<employer>{_COMPANY}){_FIN}",
            rf"(?:[Yy]o )?[Tt]rabajo como (?P<job>{_THING}){_FIN}",
            rf"(?:[Yy]o )?[Ss]oy (?P<diet>vegan[oa]|vegetarian[oa]|celíac[oa]){_FIN}",
            rf"[Nn]o como (?P<does_not_eat>carne|cerdo|pescado|gluten){_FIN}",
            rf"(?:[Yy]o )?[Ss]oy (?:muy )?alérgic[oa] (?:al?|a la|a las|a los) (?P<allergy>{_THING}"
            rf"){_FIN}",
            rf"[Mm]i cumpleaños es el (?P<birthday>{_FECHA}){_FIN}",
            rf"[Nn]ací el (?P<birthday>{_FECHA}){_FIN}",
            rf"[Mm]i (?P<relative_of>{_PARIENTE}) se llama (?P<relative>{_NAME}){_FIN}",
            rf"[Mm]i (?P<pet_of>{_MASCOTA}) se llama (?P<pet>{_NAME}){_FIN}",
            rf"[Ss]oy (?P<introduced>{_NAME}){_FIN}",
        )
    )
)

SPEAKER_PLACEHOLDER: Final = "\0"
RULES: Final = {"en": ENGLISH, "de": GERMAN, "es": SPANISH}
MULTI_VALUED: Final = frozenset({
    "does_not_eat", "allergy", "son", "daughter", "brother", "sister", "aunt", "uncle", "niece",
    "nephew", "cousin", "grandmother", "grandfather", "pet", "likes",
})  # fmt: skip
SENTENCES: Final = {
    "en": {
        "name": "{0}'s name is {value}.",
        "home": "{0} lives in {value}.",
        "origin": "{0} comes from {value}.",
        "employer": "{0} works for {value}.",
        "job": "{0} works as a {value}.",
        "diet": "{0} is {value}.",
        "does_not_eat": "{0} does not eat {value}.",
        "allergy": "{0} is allergic to {value}.",
        "birthday": "{0}'s birthday is {value}.",
        "birthplace": "{0} was born in {value}.",
        "relative": "{0}'s {of} is named {value}.",
        "pet": "{0} has a {of} named {value}.",
        "likes": "{0} likes {value}.",
        "favorite": "{0}'s favorite {of} is {value}.",
    },
    "de": {
        "name": "{0} heißt {value}.",
        "home": "{0} wohnt in {value}.",
        "origin": "{0} kommt aus {value}.",
        "employer": "{0} arbeitet bei {value}.",
        "job": "{0} arbeitet als {value}.",
        "diet": "{0} ist {value}.",
        "does_not_eat": "{0} isst nicht: {value}.",
        "allergy": "{0} ist allergisch gegen {value}.",
        "birthday": "{0} hat am {value} Geburtstag.",
        "relative": "{0}: {of} heißt {value}.",
        "pet": "{0}: {of} heißt {value}.",
    },
    "es": {
        "name": "{0} se llama {value}.",
        "home": "{0} vive en {value}.",
        "origin": "{0} es de {value}.",
        "employer": "{0} trabaja en {value}.",
        "job": "{0} trabaja como {value}.",
        "diet": "{0} es {value}.",
        "does_not_eat": "{0} no come {value}.",
        "allergy": "{0} tiene alergia: {value}.",
        "birthday": "El cumpleaños de {0} es el {value}.",
        "relative": "{of} de {0}: {value}.",
        "pet": "{of} de {0}: {value}.",
    },
}
# Slots have English names in every language.
RELATIONS: Final = {
    "mom": "mother", "mum": "mother", "dad": "father", "grandma": "grandmother",
    "grandpa": "grandfather", "fiancé": "fiance", "fiancée": "fiance", "frau": "wife",
    "mann": "husband", "sohn": "son", "tochter": "daughter", "bruder": "brother",
    "schwester": "sister", "mutter": "mother", "vater": "father", "oma": "grandmother",
    "opa": "grandfather", "tante": "aunt", "onkel": "uncle", "esposa": "wife", "mujer": "wife",
    "esposo": "husband", "marido": "husband", "novia": "girlfriend", "novio": "boyfriend",
    "hija": "daughter", "hijo": "son", "hermana": "sister", "hermano": "brother",
    "madre": "mother", "padre": "father", "mamá": "mother", "papá": "father",
    "abuela": "grandmother", "abuelo": "grandfather", "tía": "aunt", "tío": "uncle",
}  # fmt: skip

# --- What gives nothing ---------------------------------------------------------------------------

# Quotations, and text that is no prose, are masked.
QUOTATION = regex.compile(
    r"```.*?(?:```|\Z)|`[^`\n]{0,500}`|\"[^\"\n]{0,500}\"|[“„][^“”\n]{0,500}[“”]|«[^«»\n]{0,500}»"
    r"|»[^«»\n]{0,500}«|(?<!\w)'[^'\n]{1,300}'(?!\w)|‘[^‘’\n]{0,300}’(?!\w)|^[ \t]{0,9}>[^\n]*+$"
    r"|https?://\S++",
    regex.DOTALL | regex.MULTILINE,
)
OPEN_QUOTE = regex.compile(r"[\"“”„«»`]")
MARKUP = regex.compile(r"[<>{}=\[\]|#*~^\\]")
# A message with one of these may be a joke, a game, or a text to edit.
NOT_A_STATEMENT = regex.compile(
    r"""\b(?i:
      translat\w*+|rewrit\w*+|rephras\w*+|paraphras\w*+|proofread\w*+|grammar|summari[sz]\w*+
    | role-?play\w*+|act(?:ing)?\ as|pretend\w*+|imagin\w*+|essay|poem|lyrics?|screenplay|script
    | dialogu?es?|monologue|cover\ letter|resume|biography|speech|fiction\w*+|novels?|character
    | persona|protagonist|hypothetical\w*+|kidding|joking|jokes?|sarcas\w*+|ironic\w*+|irony
    | lol|lmao|rofl|(?:ha){2,9}h?|jk|yeah\ right|prompts?|quotes?|quoted|quoting|repeat\ after
    | sentence|paragraph
    | (?:please|you|now|then)\ (?:write|draft|compose)|write\ (?:a|an|me|the)|you\ are\ an?
    | from\ now\ on|ignore|system\ message|subject|dear
    | übersetz\w*+|formulier\w*+|umschreib\w*+|korrigier\w*+|rollenspiel|stell\ dir\ vor|angenommen
    | scherz\w*+|spaß|spass|witz\w*+|ironisch|gedicht|geschichte|aufsatz|liedtext|zitat\w*+|satz
    | traduc\w*+|traduz\w*+|reescrib\w*+|corrige\w*+|imagin\w*+|finge|fingir|broma|bromeando|chiste
    | (?:ja){2,9}|poema|cuento|ensayo|cita|frase
    )\b | \s/s\s*+\Z | [🙃😜😏😉😂🤣🤪😝😛]""",
    regex.VERBOSE,
)
# Reported speech in the same sentence; conditions, doubts, negations and the past.
REPORTED = regex.compile(
    r"""\b(?i:
      said|says?|saying|tell(?:s|ing)?|told|ask(?:s|ed)?|claim\w*+|according|someone|somebody|whoever
    | wrote|writes|calls\ (?:him|her)self|sagt\w*+|sagen|meint\w*+|fragt\w*+|behauptet\w*+|dice|dijo
    | dicen|pregunt\w*+
    )\b|_""",
    regex.VERBOSE,
)
DOUBT = regex.compile(
    r"""\b(?i:
      if|unless|whether|wish\w*+|hope|suppos\w*+|maybe|perhaps|probably|possibly|might|should
    | would(?!\ (?:like|love|appreciate|be))|could(?!\ you)|thinks?|thought|believes?|used\ to
    | until|till|before|when|whenever|while|once|not|never|no\ longer|neither|nor|almost|nearly
    | basically|practically|guess|feels?\ like|like\ an?|as\ though|dream\w*+|example|e\.g|everyone
    | ex|former\w*+|temporarily|for\ now|anymore|wenn|falls|ob|vielleicht|wahrscheinlich
    | würde|wäre|hätte|könnte|glaubt|nicht|nie|kein\w*+|früher|bis|beispiel|fast|si|quizás?|tal\ vez
    | sería|podría|cree|nunca|antes|hasta|ejemplo|casi|cuando|no
    )\b|n['’]t\b""",
    regex.VERBOSE,
)
QUESTION = regex.compile(r"[?¿]")
FOLLOWING_QUESTION = regex.compile(
    r",? ?(?:(?:and|so|but) )?(?:any|can|could|do you|how|is there|are there|what|where|which)\b"
)
# Before "I'm Anna".
GREETING = regex.compile(
    r"(?i:hi|hello|hey|good (?:morning|afternoon|evening)|hallo|guten (?:tag|morgen|abend)|moin"
    r"|hola|buen[oa]s (?:d[ií]as|tardes))(?: there| everyone| all)?[,.!–— -]{0,4}"
)
# Text before a statement in its sentence: nothing, an interjection, or another own statement.
LEAD = regex.compile(
    r"(?:(?i:actually|ah|also|and|btw|but|by the way|fyi|for context|hallo|hello|hey|hi|hola|i see"
    r"|just so you know|nice to meet you|note|oh|ok|okay|please note|please remember|remember|so"
    r"|thanks|thank you|that['’]s why|well|yeah|yep|yes|übrigens|ja|danke|bitte merken|merk dir|sí"
    r"|gracias|por cierto|recuerda)(?: there| that| so much| everyone)?[,.!:–— -]{1,3}){0,3}"
)
FIRST_PERSON = regex.compile(
    r"(?i:i|i['’]\w{1,2}|my|we|our|ich|mein|meine|wir|yo|mi|me|soy|tengo|vivo|trabajo)\b"
)
LIST = regex.compile(r",? (?:and|or|und) |, ")
CLAUSE = regex.compile(r"[,;–—-] |\b(?:and|but|und|aber|y|pero) ")
INTRODUCES_TEXT = regex.compile(r":\s*+\Z")
MENTIONS_SELF = regex.compile(r"(?i:about me|myself|remember|note|über mich|sobre mí)")
NOT_A_NAME: Final = frozenset({
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "january",
    "february", "march", "april", "may", "june", "july", "august", "september", "october",
    "november", "december", "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag",
    "sonntag", "januar", "februar", "märz", "mai", "juni", "juli", "oktober", "dezember", "god",
    "lord", "christmas", "easter", "mars", "venus", "hell", "heaven", "earth", "regen", "nacht",
    "bedarf", "miete", "untermiete", "frieden", "angst", "sorry", "happy", "sad", "back", "here",
    "ready", "good", "fine", "ok", "okay", "busy", "sure", "done", "late", "tired", "hungry",
    "home", "english", "german", "spanish", "french", "italian", "american", "british", "canadian",
    "indian", "chinese", "japanese", "russian", "night", "nights", "free", "myself", "unknown",
    "nobody", "catholic", "muslim", "hindu", "buddhist", "dutch", "greek", "swiss", "czech", "thai",
    "welsh",
})  # fmt: skip
NOT_AN_ALLERGEN: Final = frozenset({
    "mondays", "monday", "bullshit", "work", "working", "you", "people", "exercise", "stupidity",
    "drama", "nonsense", "commitment", "mornings", "that", "this", "it", "them", "him", "her",
    "something", "anything", "everything", "nothing", "most", "many", "all", "some", "those",
    "these", "hard", "any", "certain", "one", "homework", "school", "math", "cooking", "losing",
    "fun", "my", "your", "a", "an", "the", "being", "both", "almost", "not", "nobody", "so", "very",
    "bad", "severe", "mild", "new", "weird", "strange", "food", "skin",
})  # fmt: skip
NOT_A_LIKING: Final = frozenset({
    "going", "being", "having", "doing", "seeing", "getting", "talking", "hearing", "something",
    "everything", "nothing", "anything", "evening", "morning", "king", "thing", "spring", "ring",
    "string", "wing", "saying", "making", "trying", "using", "knowing", "feeling", "thinking",
    "looking", "chatting", "helping", "keeping", "finding", "giving", "taking", "sharing", "bring",
    "clothing", "ceiling", "building", "setting", "wedding", "meeting", "living", "coming",
    "putting", "showing", "watching", "telling", "asking",
})  # fmt: skip
NOT_AN_OBJECT: Final = frozenset({
    "you", "it", "them", "this", "that", "him", "her", "here", "there", "around", "things", "stuff",
    "together", "more", "up", "out", "about", "with", "too", "like", "for", "how", "what", "when",
    "where", "always", "now", "the", "by", "definitely", "probably", "still",
})  # fmt: skip
