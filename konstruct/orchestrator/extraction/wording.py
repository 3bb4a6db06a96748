"""Checks of a candidate's words: instructions, another language, sensitive topics. Pure.

In doubt a candidate is refused or reviewed. The word lists are in English, German, French and
Spanish; the check of languages knows more.
"""

import re
import unicodedata
from collections import Counter
from typing import Final

from memory.text.english import STOP_WORDS

# A language is recognized by this many of its stop words, and this lead over the other one.
MIN_STOP_WORDS: Final = 2
MIN_LEAD: Final = 2
# Shorter words of a text are ignored if it has longer ones.
MIN_WORD_LETTERS: Final = 4
# Fewer letters do not show a script.
MIN_LETTERS: Final = 6

_WORD: Final = re.compile(r"[^\W\d_]+")


def _plain(text: str) -> str:
    """Return the text in lower case, without characters that hide words from a search."""
    # One by one: a long run of combining characters takes the square of its length.
    shown = "".join(unicodedata.normalize("NFKC", character) for character in text)
    shown = "".join(
        character for character in shown if unicodedata.category(character) not in ("Cf", "Mn")
    )
    return " ".join(shown.casefold().split())


def has_words_of(quote: str, text: str) -> bool:
    """Return whether a quote has all numbers of a text and one of its words.

    Inflected words count: the last two letters of a long word may differ.
    """
    quote, words = _plain(quote), re.findall(r"\w+", _plain(text))
    long_words = [word for word in words if len(word) >= MIN_WORD_LETTERS] or words
    return all(word in quote for word in words if word.isdecimal()) and any(
        word[: max(MIN_WORD_LETTERS, len(word) - 2)] in quote for word in long_words
    )


# --- Words that are not the author's --------------------------------------------------------------

# Reasons for a review by their marks: lone surrogates, which neither a message nor a quote has.
_PARTS: Final = ("quoted or forwarded", "in a signature", "in code")
PARTS_OF_OTHERS: Final = {chr(0xD800 + number): part for number, part in enumerate(_PARTS)}
# Lines with a mark of mails and chats; after a header or a first line of a mail, all that follows.
# After the first line above marked lines, only these.
_OF_OTHERS: Final = re.compile(
    r"""
      (?P<quoted_or_forwarded>
        ^[ \t]*>.*$
        | (?:
          ^[ \t*_-]*(?:(?:begin|anfang[ ]der|début[ ]du|inicio[ ]del)[ ])?(?:
            (?:forwarded|original|fwd)[ ]message | message[ ](?:transféré|réexpédié|d['’]origine)
            | (?:weitergeleiteten?|ursprüngliche|original)[ -]?nachricht
            | mensaje[ ](?:reenviado|original)
          )[ \t*:_-]*$
          | ^[ \t*]*(?:from|von|de|da)[ ]?:(?:.|\n){1,300}?
            \b(?:sent|date|gesendet|datum|envoyé|fecha|enviado)(?:[ ]el)?[ ]?:
          | ^(?:on|am|le|el)\b(?:.|\n(?!\n)){5,200}?
            \b(?:wrote|schrieb|a[ ]écrit|escribió)\b(?:.|\n(?!\n)){0,100}?:[ \t]*$(?!\s*>)
        )(?:.|\n)*
      )
      | (?P<in_a_signature>
        ^(?:
          --[ ]? | (?:sent[ ]from|get[ ]outlook|von[ ]meinem|enviado[ ]desde|envoyé[ ]de)\b.*
          | (?:(?:best|kind|warm|kindest|warmest)[ ])?regards[,.!]? | (?:yours[ ])?sincerely[,.]?
          | (?:mit[ ]freundlichen|viele|liebe|beste|herzliche)[ ]grüße[n]?[,.!]? | mfg | lg | vg
          | (?:bien[ ])?cordialement[,.]? | (?:un[ ])?saludos?(?:[ ]cordiale?s?)?[,.]?
          | atentamente[,.]?
        )[ ]*$(?:.|\n)*
      )
      | (?P<in_code>^[ \t]*(?P<fence>```|~~~)(?:.|\n)*?(?:(?P=fence)|\Z))
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)


def mark_parts_of_others(text: str) -> str:
    """Return a message with a mark in place of each character that is not its author's statement.

    It is as long as the message. The marks are the keys of PARTS_OF_OTHERS.
    """
    marks = {name.replace(" ", "_"): mark for mark, name in PARTS_OF_OTHERS.items()}
    return _OF_OTHERS.sub(lambda part: marks[part.lastgroup or ""] * len(part[0]), text)


# --- Instructions ---------------------------------------------------------------------------------

# Texts that address a language model. People do not use them about themselves.
_ORDERS: Final = re.compile(
    r"""
      \b(?:ignore|disregard|forget|override|bypass)\b[ ](?:\w+[ ]){0,4}
        (?:instructions?|rules|guidelines|prompts?|restrictions|safeguards|policies)\b
    | \b(?:ignorier\w*|vergiss|missacht\w*)\b[ ](?:\w+[ ]){0,4}(?:anweisung\w*|regeln|vorgaben)\b
    | \b(?:ignore[zr]?|oublie[zr]?)\b[ ](?:\w+[ ]){0,4}(?:instructions|consignes|regles|règles)\b
    | \b(?:ignora|ignore|olvida|olvide)\b[ ](?:\w+[ ]){0,4}(?:instrucciones|reglas)\b
    | \b(?:your|the)[ ]system[ ]prompt\b
    | \b(?:reveal|print|show|leak|send|repeat|output|disclose)[ ](?:me[ ])?(?:your|the|all|every)[ ]
        (?:\w+[ ]){0,2}(?:prompt|instructions|api[ ]keys?|passwords?|credentials|secrets|tokens?)\b
    | <\|? /? (?:system|assistant|user|developer|im_start|im_end|tool|message|instructions?)\b
    | \[/?(?:inst|system)\] | (?:^|\s)(?:system|assistant|developer)[ ]?:[ ] | ``` | \#\#\#[ ]?\w
    | \b(?:begin|end)[ ](?:of[ ])?(?:system|prompt|conversation|messages|instructions)\b
    | \byou[ ]are[ ](?:now|no[ ]longer)[ ](?:an?|the|in|bound|restricted)\b
    | \b(?:jailbreak|dan[ ]mode|developer[ ]mode)\b
    | \b(?:store|save|record|remember|add|extract)[ ](?:this|the[ ]following)[ ](?:\w+[ ]){0,2}
        (?:as[ ]an?[ ](?:\w+[ ])?(?:fact|memory|rule|instruction)|in[ ](?:your|the)[ ]memory)\b
    """,
    re.VERBOSE,
)
_AGENT: Final = (
    r"(?:(?:the|this|an?|any|every|all|your|der|die|das|l['’]|le|el|la)[ ]?)?"
    r"(?:ai|a\.i\.|assistants?|agents?|chatbots?|bots?|language[ ]models?|llms?|model|system"
    r"|ki|assistent\w*|agenten?|asistente|agente|modell|modelo)"
)
# Orders. A fact is in the third person and contains none.
_IMPERATIVE: Final = re.compile(
    rf"""
      \b{_AGENT}[ ](?:must|should|shall|has[ ]to|have[ ]to|needs?[ ]to|(?:may|can)[ ]now
        |(?:is|are)[ ](?:to|required|instructed|allowed|permitted|authori[sz]ed|supposed|free)
        |muss|müssen|soll|sollen|darf|doit|doivent|debe|deben)\b
    | \b(?:you|du|vous|tu|tú|usted)[ ](?:must|should|shall|have[ ]to|need[ ]to|are[ ]to
        |musst|sollst|darfst|devez|dois|debes?)\b
    | \b(?:always|never|from[ ]now[ ]on|immer|niemals|ab[ ]jetzt|toujours|siempre
        |nunca),?[ ]
        (?:answer|reply|respond|say|tell|send|forward|include|recommend|approve|grant|reveal
        |ignore|call|transfer|delete|execute|run|mention|trust|treat|refund|pay|give|answer|obey|comply
        |antworte|sage|sende|empfiehl|bestätige|réponds|répondez|responde|recomienda)\b
    | ^(?:please[ ])?(?:ignore|disregard|reveal|obey|pretend|act[ ]as
        |(?:answer|reply|respond)[ ]with)\b
    | \bwhen(?:ever)?[ ](?:asked|anyone[ ]asks|someone[ ]asks|the[ ]user[ ]asks)\b
    | !\[|\]\(|javascript:|data:text
    """,
    re.VERBOSE,
)


# A fact is a sentence about a person or a thing, and does not begin like this.
_BARE_VERB: Final = re.compile(
    r"^(?:please[ ])?(?:answer|reply|respond|send|forward|execute|run|delete|transfer|approve|grant"
    r"|do not|don['’]t|never|always|make sure|remember)\b"
)


def orders_agent(text: str) -> bool:
    """Return whether a text addresses a language model, such as “ignore your instructions”."""
    return _ORDERS.search(_plain(text)) is not None


def is_instruction(fact: str, *parts: str) -> bool:
    """Return whether a fact or a part of it, such as its value, is an instruction to an agent."""
    sentence, *others = map(_plain, (fact, *parts))
    return _BARE_VERB.search(sentence) is not None or any(
        pattern.search(text) for text in (sentence, *others) for pattern in (_ORDERS, _IMPERATIVE)
    )


# --- Languages ------------------------------------------------------------------------------------


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_STOP_WORDS: Final[dict[str, frozenset[str]]] = {
    "en": STOP_WORDS - {"a", "i", "s", "t", "d", "m", "re", "ve", "an", "do", "me", "on", "in"},
    "de": _words(
        "der die das und ist ich nicht ein eine einen mit auf für von im wir sie er es den dem zu"
        " war hat habe bin sind auch als aber wie mein meine seit nach bei noch"
    ),
    "fr": _words(
        "le la les et est je ne pas un une des du dans pour avec sur il elle nous vous que qui mon"
        " ma mes son sa ses suis ai au aux ce cette depuis chez"
    ),
    "es": _words(
        "el la los las y es yo no un una de del en para con por que mi mis su sus soy estoy tengo"
        " está muy pero como desde al se lo"
    ),
    "it": _words(
        "il lo la gli le e è io non un una di del della in per con che mi mio mia sono ho ha si ma"
        " come da nel alla"
    ),
    "pt": _words(
        "o os as e é eu não um uma de do da em para com por que meu minha seu sua sou estou tenho"
        " muito mas como desde ao no na"
    ),
    "nl": _words(
        "de het een en is ik niet met op voor van in wij zij hij zijn was heeft heb ben ook maar"
        " mijn naar bij nog sinds"
    ),
}
# Scripts by the first word of a character's name. A Japanese text has two of them.
_SCRIPTS: Final = {
    "LATIN": "latin", "CYRILLIC": "cyrillic", "GREEK": "greek", "ARABIC": "arabic",
    "HEBREW": "hebrew", "DEVANAGARI": "devanagari", "THAI": "thai", "HANGUL": "hangul",
    "CJK": "han", "HIRAGANA": "han", "KATAKANA": "han",
}  # fmt: skip


def is_other_language(fact: str, evidence: str) -> bool:
    """Return whether a fact is clearly in another language than the messages that support it.

    Names and borrowed words make no difference: the scripts of most letters are compared, and for
    the Latin script the stop words.
    """
    scripts = {_script(fact), _script(evidence)} - {""}
    if len(scripts) > 1:
        return True
    of_fact, of_evidence = _stop_words(fact), _stop_words(evidence)
    language, expected = _language(of_fact), _language(of_evidence)
    if not language or not expected or language == expected:
        return False
    lead = of_fact[language] - of_fact[expected]
    return lead >= MIN_LEAD and of_evidence[expected] - of_evidence[language] >= MIN_LEAD


def _script(text: str) -> str:
    """Return the script of more than half of the letters; empty if none has, or there are few."""
    counts = Counter(
        _SCRIPTS.get(unicodedata.name(character, "").split(" ")[0].split("-")[0], "other")
        for character in text
        if character.isalpha()
    )
    if counts.total() < (MIN_LETTERS if "han" not in counts else 2):
        return ""
    script, letters = counts.most_common(1)[0]
    return script if 2 * letters > counts.total() else ""


def _stop_words(text: str) -> Counter[str]:
    # Not "Ben", "Una" or "Den Haag".
    words = {word for word in _WORD.findall(text) if word.islower()}
    return Counter({name: len(words & known) for name, known in _STOP_WORDS.items()})


def _language(counts: Counter[str]) -> str:
    (first, most), (_, second) = counts.most_common(2)
    return first if most >= MIN_STOP_WORDS and most > second else ""


# --- Periods --------------------------------------------------------------------------------------

_PERIOD: Final = (
    r"(?:mornings?|days?|weeks?|weekends?|fortnight|months?|summer|winter|semester|term)"
)
_LIMITED: Final = re.compile(
    rf"""
      \b(?:this|next|over[ ]the|for[ ](?:the|an?|a[ ]few|some|two|three|four|six))[ ]{_PERIOD}\b
    | \b(?:un)?till?\b | \b(?:for[ ]now|for[ ]the[ ]time[ ]being|in[ ]the[ ]meantime|temporar\w*)\b
    | \bfor[ ]the[ ]moment\b | \b(?:staying|visiting|holidaying)\b | \bon[ ](?:holiday|vacation)\b
    | \bon[ ](?:an?|my|our)[ ](?:business[ ])?trip\b
    | \b(?:diese[nrs]?|nächste[nrs]?|für[ ](?:eine?n?|zwei|drei|vier))[ ](?:tage?|wochen?
        |wochenende|monate?|sommer|winter)\b
    | \b(?:vorübergehend|vorläufig|zurzeit|derzeit|einstweilen|zu[ ]besuch|im[ ]urlaub)\b
    | \bbis[ ]zu?m?\b
    | \bbis[ ](?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|ende|anfang|mitte)\b
    | \b(?:cette[ ]semaine|ce[ ]mois|jusqu|provisoire\w*|temporaire\w*|pour[ ]l['’]instant)
    | \b(?:esta[ ]semana|este[ ]mes|hasta|temporal(?:mente)?|por[ ]ahora|de[ ]visita)\b
    """,
    re.VERBOSE,
)


def is_limited_in_time(text: str) -> bool:
    """Return whether a text names a limited time, such as “this week” or “until Friday”."""
    return _LIMITED.search(_plain(text)) is not None


# --- Sensitive topics -----------------------------------------------------------------------------


# By articles 9 and 10 of the GDPR; and claims of permissions, which agents must not take from a
# message. A low line is a space, a hyphen or a low line.
TOPIC_WORDS: Final = {
    "health": r"""
        health\w* medical\w* medicin\w* medicat\w* diagnos\w* diseases? disorders? illness\w*
        sick\w* allerg\w* diabet\w* cancer\w* tumou?rs? depress\w* anxiety adhd autis\w*
        bipolar therap(?:y|ist\w*) psych\w* surger\w* surgical hospital\w* pregnan\w*
        miscarr\w* abortion\w* disab\w* hiv aids epilep\w* asthma\w* addict\w* alcoholi\w*
        overdos\w* prescri\w* injur\w* vaccin\w* symptom\w* chronic\w* insulin antidepress\w*
        blood_pressure infertil\w* ivf suicid\w* self_harm intoleran\w* co?eliac fractur\w*
        (?:broke|broken)_(?:\w+_)?(?:arm|leg|wrist|hand|foot|ankle|knee|rib|hip|nose|bone)s?
        gesundheit\w* krank\w* krebs\w* \w+allerg\w* unverträglich\w* \w*zöliakie
        (?:arm|bein|knochen|rippen|hand|fuss)bruch
        (?:arm|bein|hand|finger|fuss|rippe|knie|nase|knöchel)_gebrochen
        schwanger\w* behinder\w* operation medikament\w* santé malad\w* enceinte cancer\w*
        intoléran\w* cœliaque (?:bras|jambe|main|pied|doigt|nez|poignet|côte|cheville)_cassée?
        cassée?_(?:le_|la_|un_|une_)?(?:bras|jambe|main|pied|doigt|nez|poignet|côte|cheville)
        handicap\w* salud enferm\w* embaraz\w* cáncer discapacid\w* alergi\w* alérgic\w*
        celíac\w* (?:brazo|pierna|mano|pie|dedo|nariz|muñeca|costilla|tobillo)_rot[oa]
        roto_(?:el_|la_|un_|una_)?(?:brazo|pierna|mano|pie|dedo|nariz|muñeca|costilla|tobillo)
    """,
    "religion": r"""
        religio\w* faith christian\w* catholic\w* protestant\w* muslims? islam\w* jew(?:s|ish)?
        juda\w* hindu\w* buddhis\w* sikh\w* atheis\w* agnostic\w* church\w* mosques?
        synagogues? baptis\w* prayers? bible quran koran torah spiritual\w* kirche\w*
        christlich katholisch\w* evangelisch\w* muslim\w* jüdisch\w* église catholique
        musulman\w* iglesia católic\w* musulmán\w*
    """,
    "politics": r"""
        politic\w* democrats? republicans? conservative\w* socialis\w* communis\w* liberals?
        left_wing right_wing votes? voted voting elections? activis\w* protest(?:s|ed|ing)?
        party_member\w* parliament\w* politisch\w* partei\w* wähl(?:t|te|en) politique\w* vote
        político\w* política\w* partido
    """,
    "ethnicity": r"""
        ethnic\w* racial\w* ancestry indigenous hispanic latin[oax]s? african_american roma
        sinti ethnisch\w* ethnique\w* étnic\w* skin_colou?r
    """,
    "sexuality": r"""
        sexual\w* gay lesbian\w* bisexual\w* homosexual\w* heterosexual\w* transgender trans
        transition\w* queer lgbt\w* nonbinary non_binary pride gender_identity schwul\w*
        lesbisch\w* sexuell\w* homosexuel\w* lesbiana\w* gender_\w*
    """,
    "trade_union": r"""
        trade_unions? labou?r_unions? union_members?\w* gewerkschaft\w* syndicat\w* sindicat\w*
        sindicalist\w*
    """,
    "crime": r"""
        crim(?:e|es|inal\w*) convict\w* arrest\w* prison\w* jail\w* felon\w* probation parole
        lawsuits? fraud\w* stole theft vorbestraft\w* gefängnis\w* straftat\w* haft condamn\w*
        délit\w* cárcel delito\w* condenad\w*
    """,
    "permission": r"""
        administrators? admin root superuser authori[sz](?:ed|ation) entitled permission\w*
        permitted approved clearance unlimited refunds? discounts? passwords? credentials
        api_keys? berechtig\w* autorisiert\w* autorisé\w* autorizad\w*
    """,
}
_TOPICS: Final = re.compile(
    "|".join(
        rf"(?P<{topic}>\b(?:{'|'.join(words.split()).replace('_', '[ _-]')})\b)"
        for topic, words in TOPIC_WORDS.items()
    )
)


# A nurse's job tells nothing about the nurse's health.
_JOB_SLOTS: Final = _words("job job_title employer occupation profession workplace company")
_TOPICS_OF_JOBS: Final = _words("health crime")


def sensitive_topic(slot: str, text: str) -> str:
    """Return the first sensitive topic of a slot or a text, such as "health"; empty: none."""
    ignored = _TOPICS_OF_JOBS if slot in _JOB_SLOTS else ()
    for match in _TOPICS.finditer(f"{slot.replace('_', ' ')} | {_plain(text)}"):
        if match.lastgroup not in ignored:
            return str(match.lastgroup).replace("_", " ")
    return ""
