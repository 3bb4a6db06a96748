"""Languages of the lexical index: frequent words, words of speakers and of time.

Words of a script of one language, such as Cyrillic, have its language. Of a Latin text the frequent
words decide, and English if no other language has more of them. Pure.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import regex

from memory.text import english
from memory.text.folding import CACHED_WORDS, fold

# A language is recognized by frequent words of at least this many letters together: not by "Los"
# in "Los Angeles".
MIN_LETTERS: Final = 4


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).split())


@dataclass(frozen=True, eq=False)
class Language:
    """A language, with folded words."""

    code: str
    stemmer: str
    """The name of its algorithm in Snowball, or ""."""
    stop_words: frozenset[str] = frozenset()
    user: frozenset[str] = frozenset()
    """Pronouns of the speaker."""
    agent: frozenset[str] = frozenset()
    """Pronouns of the person who is addressed."""
    when: frozenset[str] = frozenset()
    """Words that ask for a time."""
    time: frozenset[str] = frozenset()
    months: Mapping[str, int] = field(default_factory=dict)
    """The number of each month, from 0."""
    drops_subject: bool = False
    """Whether a speaker is usually named by the form of the verb alone, or not at all."""
    capitalizes_nouns: bool = False
    letters: frozenset[str] = frozenset()
    """Letters of its alphabet that English has not."""


def _language(
    code: str,
    stemmer: str,
    letters: str = "",
    *,
    drops_subject: bool = False,
    capitalizes_nouns: bool = False,
    months: str = "",
    **words: str,
) -> Language:
    numbers = {
        name: number
        for number, names in enumerate(months.split())
        for name in _words(names.replace("/", " "))
    }
    folded = {name: _words(text) for name, text in words.items()}
    stop_words = frozenset[str]().union(
        folded["stop_words"], *(folded[name] for name in ("user", "agent", "when"))
    )
    return Language(
        code,
        stemmer,
        **{**folded, "stop_words": stop_words, "time": folded["time"] | numbers.keys()},
        months=numbers,
        drops_subject=drops_subject,
        capitalizes_nouns=capitalizes_nouns,
        letters=frozenset(letters),
    )


ENGLISH: Final = Language(
    "en", "english", english.STOP_WORDS, english.I_WORDS, english.YOU_WORDS, time=english.TIME_WORDS
)
LATIN: Final = (
    ENGLISH,
    _language(
        "de",
        "german",
        "äöüß",
        capitalizes_nouns=True,
        stop_words="""der die das den dem des ein eine einen einem einer eines und oder aber
            nicht kein keine keinen er sie es wir ihr ihn ihm ist sind war waren wird werden
            wurde wurden hat habe haben hatte hatten bin bist sein zu zum zur im in an am auf
            aus bei beim mit nach von vom vor für über unter um bis durch ohne gegen als wie was
            wer wo welche welcher welches welchen welchem wohin woher warum wieso wogegen womit
            wofür wozu viel viele dass daß weil wenn ob auch noch nur schon sehr so ja nein doch
            mal denn dann da hier jetzt man sich kann können muss müssen soll will wollen darf
            mehr immer wieder gibt""",
        user="ich mich mir mein meine meinen meinem meiner meines unser unsere unserem unseren uns",
        agent="du dich dir dein deine deinen deinem deiner",
        when="wann",
        months="""januar februar märz april mai juni juli august september oktober
            november dezember""",
        time="""montag dienstag mittwoch donnerstag freitag samstag sonntag gestern heute morgen
            übermorgen vorgestern woche wochen monat monate jahr jahre tag tage nacht abend
            sommer winter frühling herbst letzte letzten nächste nächsten seit neulich""",
    ),
    _language(
        "es",
        "spanish",
        "áéíñóú",
        drops_subject=True,
        stop_words="""el la los las un una unos unas y o u pero no ni de del al a en con por
            para sin sobre entre hasta desde que qué quién quiénes cuál cuáles cómo dónde adónde
            cuánto cuánta cuántos cuántas porque si sí se le les lo él ella ellos ellas es son
            era fue está están estoy estaba ser estar ha he han había hay tiene tengo tienen
            este esta esto estos estas ese esa eso esos esas muy más ya también como cuando su
            sus tan todo toda todos todas algo ahora""",
        user="yo me mi mí mis mío mía míos nos nuestro nuestra nuestros nuestras nosotros",
        agent="tú vos te ti tu tus usted ustedes",
        when="cuándo",
        months="""enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre
            diciembre""",
        time="""lunes martes miércoles jueves viernes sábado domingo ayer hoy mañana semana
            semanas mes meses año años día días noche tarde verano invierno primavera otoño
            pasado próximo desde hace""",
    ),
    _language(
        "fr",
        "french",
        "àâæçèéêëîïôœùûü",
        stop_words="""le la les l un une des du de d et ou mais ne n pas plus en au aux à dans
            sur sous avec sans pour par chez qui que qu quoi quel quelle quels quelles comment
            où combien pourquoi est ce c cet cette ces ça cela il elle on ils elles se s son sa
            ses leur leurs suis es sont était étaient être été ai as a ont avait avoir fait
            faire y si oui non très aussi toujours encore comme donc alors tout
            tous toute lui""",
        user="je j me m mon ma mes moi nous notre nos",
        agent="tu te t ton ta tes toi vous votre vos",
        when="quand",
        months="""janvier février mars avril mai juin juillet août septembre octobre novembre
            décembre""",
        time="""lundi mardi mercredi jeudi vendredi samedi dimanche hier demain semaine semaines
            mois an ans année années jour jours nuit soir matin été hiver printemps automne
            dernier dernière prochain prochaine depuis""",
    ),
    _language(
        "pt",
        "portuguese",
        "ãáâàçéêíóôõú",
        drops_subject=True,
        stop_words="""o a os as um uma uns umas e ou mas não nem de do da dos das no na nos nas
            em ao aos à às com por pelo pela para pra pro sem sobre entre até desde que quem
            qual quais como onde quanto quanta quantos quantas porque se ele ela eles elas é são
            era foi foram está estão estou to tô ta tá ser estar ter tem tenho há isso isto esse
            essa este esta muito mais já também quando seu sua seus suas tudo todo toda agora
            aí lá só te assim""",
        user="eu me mim meu minha meus minhas nós nosso nossa",
        agent="tu te ti teu tua você vocês",
        when="quando",
        months="""janeiro fevereiro março abril maio junho julho agosto setembro outubro
            novembro dezembro""",
        time="""segunda terça quarta quinta sexta sábado domingo ontem hoje amanhã semana
            semanas mês meses ano anos dia dias noite manhã verão inverno primavera outono
            passado passada próximo próxima desde faz""",
    ),
    _language(
        "pl",
        "polish",
        "ąćęłńóśźż",
        drops_subject=True,
        stop_words="""i oraz a ale lub albo nie tak w we z ze na do od po za przed przy pod nad
            przez bez dla o u ku jest są był była było byli będzie być się to ten ta te tego tej
            tym tych ci co kto kogo komu czyj czyja czyje jak jaki jaka jakie jakim jakiego
            jakiej gdzie dokąd skąd który która które ile dlaczego czemu czy że żeby bo gdy
            jeśli już jeszcze tylko też bardzo teraz może takich takim takie taki coś
            ktoś potem jestem jesteś mam masz ma mamy mają
            trzeba można sobie swój swoje on ona ono oni jego jej ich mu jako no więc aż""",
        user="ja mnie mi mną mój moja moje mojego mojej nas nam nami nasz nasza nasze naszego",
        agent="ty ciebie cię tobie tobą twój twoja twoje wy was wam",
        when="kiedy",
        months="""styczeń/stycznia luty/lutego marzec/marca kwiecień/kwietnia maj/maja
            czerwiec/czerwca lipiec/lipca sierpień/sierpnia wrzesień/września
            październik/października listopad/listopada grudzień/grudnia""",
        time="""poniedziałek wtorek środa środę czwartek piątek sobota sobotę niedziela
            niedzielę wczoraj dziś dzisiaj jutro tydzień tygodnie miesiąc rok roku lat dzień dni
            noc wieczór rano lato zima wiosna jesień temu zeszły przyszły""",
    ),
    _language(
        "tr",
        "turkish",
        "çğıöşü",
        drops_subject=True,
        stop_words="""ve veya ama fakat ile için gibi kadar da de ki mi mı mu mü bir bu şu o
            bunu şunu onu onun ne neden niye nasıl nerede nereye nereden hangi kim kimin kimler
            kaç kaça kaçıncı değil var yok çok daha en her hiç ya yani sonra önce ise
            olmak hala beri bütün bile böyle şöyle öyle belki hem göre olur olmuş artık şimdi
            olarak olan oldu evet hayır diye""",
        user="ben beni bana benim bende biz bizi bize bizim",
        agent="sen seni sana senin siz sizi size sizin",
        when="zaman",
        months="""ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık""",
        time="""pazartesi salı çarşamba perşembe cuma cumartesi pazar dün bugün yarın hafta ay
            yıl gün gece sabah akşam yaz kış ilkbahar sonbahar geçen gelecek tarih tarihte""",
    ),
)
FREQUENT_ENGLISH: Final = english.STOP_WORDS | english.QUESTION_WORDS
# The languages in which a word is frequent.
_FREQUENT_IN: Final[dict[str, list[Language]]] = {}
for _latin in LATIN:
    for _word in FREQUENT_ENGLISH if _latin is ENGLISH else _latin.stop_words:
        _FREQUENT_IN.setdefault(_word, []).append(_latin)
_CYRILLIC: Final = _language(
    "ru",
    "russian",
    drops_subject=True,
    stop_words="""и а но или не ни да нет в во на с со к ко у о об от до по за из под над при
        без для через что чтобы кто кого кому кем чем чего как какой какая какое какие каким
        какого каком где куда откуда почему зачем сколько ли же бы то это этот эта эти того тот
        та те там тут уже ещё только очень так был была было были есть буду будет быть он она
        оно они его её их им ей ему сейчас теперь все всё если""",
    user="я меня мне мной мой моя моё мои моего моей моему моим моих мы нас нам нами наш наша наше",
    agent="ты тебя тебе тобой твой твоя твоё твои вы вас вам вами ваш ваша",
    when="когда",
    months="""январь/января февраль/февраля март/марта апрель/апреля май/мая июнь/июня июль/июля
        август/августа сентябрь/сентября октябрь/октября ноябрь/ноября декабрь/декабря""",
    time="""понедельник вторник среда среду четверг пятница пятницу суббота субботу воскресенье
        вчера сегодня завтра неделя неделю месяц год года лет день дня дней ночь вечер утро лето
        зима весна осень""",
)
_ARABIC: Final = _language(
    "ar",
    "arabic",
    drops_subject=True,
    stop_words="""من في على إلى الى عن مع بعد قبل عند بين حتى منذ هو هي هم هذا هذه ذلك تلك الذي
        التي ما ماذا أي أين كيف كم هل لماذا لا لم لن ليس أن إن أنا كان كانت يكون قد و أو ثم لكن
        بل كل كلها جدا الآن حاليا يا إذا لأن عليه فيه له لها به بها أم أما""",
    user="أنا انا لي عندي معي إلي مني بي نحن لنا عندنا",
    agent="أنت انت لك عندك معك إليك أنتم",
    when="متى موعد",
    months="""يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر""",
    time="""السبت الأحد الاثنين الثلاثاء الأربعاء الخميس الجمعة أمس اليوم غدا أسبوع الأسبوع شهر
        الشهر سنة عام يوم الليل الصباح الماضي القادم ساعة""",
)
_DEVANAGARI: Final = _language(
    "hi",
    "hindi",
    stop_words="""का के की को से में पर ने और या लेकिन पर है हैं था थी थे हो हूँ हुआ हुई हुए
        होगा होगी गया गई गए कर करता करती करते करना रहा रही रहे यह ये वह वे इस उस इन उन इसे उसे
        क्या कौन कौनसा किस किसे किसने कहाँ कैसा कैसी कैसे क्यों कितना कितने कितनी नहीं न ना मत
        भी ही तो तक साथ लिए वाला वाली वाले जो कि अब अभी सा सी एक दिया दी दिए लिया ली
        हाँ""",
    user="मैं मैंने मुझे मुझको मुझसे मेरा मेरी मेरे हम हमें हमारा हमारी हमारे",
    agent="तू तुम तुम्हें तुम्हारा तुम्हारी आप आपको आपका आपकी आपके",
    when="कब तारीख तिथि",
    months="""जनवरी फ़रवरी मार्च अप्रैल मई जून जुलाई अगस्त सितंबर अक्टूबर नवंबर दिसंबर""",
    time="""सोमवार मंगलवार बुधवार गुरुवार शुक्रवार शनिवार रविवार संडे कल आज परसों हफ़्ते महीने
        साल दिन रात सुबह शाम""",
)
# Words without their particles.
HANGUL: Final = _language(
    "ko",
    "",
    drops_subject=True,
    stop_words="""그 이 저 것 거 수 좀 더 또 잘 안 못 뭐 뭘 무엇 무슨 누구 누가 어디 어느 어떤
        어떻게 왜 얼마 얼마나 몇 있 있어 있나 있고 없 하 해 했 네 그리고 그래서 근데 이제 지금
        너무 다시""",
    user="나 내 내가 난 저 제 제가 전 우리 저희",
    agent="너 네가 당신",
    when="언제 날짜",
    time="""월요일 화요일 수요일 목요일 금요일 토요일 일요일 어제 오늘 내일 모레 이번주 다음주
        지난주 주말 작년 올해 내년 아침 저녁 밤 새벽 봄 여름 가을 겨울""",
)
# Chinese and Japanese, and Thai and its neighbours, of which no words are listed.
UNSPACED: Final = _language(
    "zh",
    "",
    drops_subject=True,
    stop_words="何 誰",
    user="私 僕 俺 我 我们 咱们",
    agent="你 您 君 你们",
    when="いつ 何日 何時 哪天 时候 什么时候",
    time="昨日 今日 明日 先週 来週 今週 月 年 昨天 今天 明天 周末 上周 下周",
)
_BY_SCRIPT: Final = (
    (regex.compile(r"\p{Cyrillic}"), _CYRILLIC),
    (regex.compile(r"\p{Arabic}"), _ARABIC),
    (regex.compile(r"\p{Devanagari}"), _DEVANAGARI),
    (regex.compile(r"\p{Hangul}"), HANGUL),
    (regex.compile(r"\p{Greek}"), Language("el", "greek")),
    (regex.compile(r"\p{Armenian}"), Language("hy", "armenian")),
    (regex.compile(r"\p{Tamil}"), Language("ta", "tamil")),
    (regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]"), UNSPACED),
)


def latin_language(words: Sequence[str], folded: Sequence[str]) -> Language:
    """Return the language of the Latin words of a text, by its frequent words and its letters.

    Args:
        words: the words in lower case.
        folded: the same words, folded; the same object if all are ASCII.

    Returns:
        The language; English if it is not known.
    """
    counts = dict.fromkeys(LATIN, 0)
    letters = dict.fromkeys(LATIN, 0)
    for word in folded:
        for language in _FREQUENT_IN.get(word, ()):
            counts[language] += 1
            letters[language] += len(word)
    for word in words if words is not folded else ():
        accented = {letter for letter in word if not letter.isascii()}
        for language in LATIN if accented else ():
            if accented <= language.letters:
                counts[language] += 1
                letters[language] += MIN_LETTERS
    # Of equal counts, English.
    likely = max(LATIN, key=counts.__getitem__)
    return likely if letters[likely] >= MIN_LETTERS else ENGLISH


@lru_cache(maxsize=CACHED_WORDS)
def language_of(word: str, latin: Language) -> Language:
    """Return the language of a folded word in a text with this language of its Latin words."""
    if word.isascii():
        return latin
    return next((language for script, language in _BY_SCRIPT if script.match(word)), latin)
