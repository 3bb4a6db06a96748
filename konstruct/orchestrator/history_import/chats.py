"""Chats of people: the exports of Slack, WhatsApp and Telegram."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from html import unescape
from html.parser import HTMLParser
from pathlib import PurePosixPath
from typing import Any, Final

from konstruct.orchestrator.exceptions import ImportRefused
from konstruct.orchestrator.history_import import files
from konstruct.orchestrator.history_import.files import list_of, text_of, utc_time

# --- Slack ------------------------------------------------------------------------------------

# Other subtypes are messages of Slack itself, such as channel_join.
_SPOKEN: Final = frozenset(
    {"", "bot_message", "file_comment", "file_share", "me_message", "thread_broadcast"}
)
# A mention, a link or a command.
SLACK_TOKEN: Final = re.compile(r"<([^<>]*)>")


def slack(source: files.Source) -> files.Found:
    """Read Slack's export: a folder for each channel, with a file for each day."""
    paths = map(PurePosixPath, source.texts)
    root = next((path.parent for path in paths if path.name == "users.json"), None)
    if root is None:
        raise ImportRefused(f"{source.name} has no users.json: give the whole export of Slack.")
    names = {
        user["id"]: text_of(user.get("profile"), "display_name", "real_name")
        or text_of(user, "real_name", "name")
        for user in source.objects(str(root / "users.json"))
        if text_of(user, "id")
    }
    ids = {
        text_of(channel, "name") or text_of(channel, "id"): text_of(channel, "id")
        for listed in ("channels", "groups", "mpims", "dms")
        if str(root / f"{listed}.json") in source.texts
        for channel in source.objects(str(root / f"{listed}.json"))
    }
    for name in sorted(source.texts):
        folder = PurePosixPath(name).parent
        if folder.parent == root and folder != root:
            channel = ids.get(folder.name) or folder.name
            messages = source.objects(name)
            for number, message in sorted(
                enumerate(messages, 1), key=lambda item: text_of(item[1], "ts")
            ):
                yield _slack_message(f"{name} item {number}", message, channel, names)


def _slack_message(
    place: str, message: Mapping[str, Any], channel: str, names: Mapping[str, str]
) -> files.Row | files.Problem:
    subtype, ts = text_of(message, "subtype"), text_of(message, "ts")
    if subtype not in _SPOKEN:
        return files.Problem(place, f"a message of Slack itself ({subtype})")
    thread = text_of(message, "thread_ts")
    author_id = text_of(message, "user", "bot_id")
    return files.Row(
        place,
        slack_text(text_of(message, "text"), names),
        thread=f"{channel}/{thread}" if thread else channel,
        external_id=f"slack:{channel}/{ts}",
        author=names.get(author_id)
        or text_of(message.get("bot_profile"), "name")
        or text_of(message, "username")
        or text_of(message.get("user_profile"), "display_name", "real_name")
        or author_id,
        author_id=author_id,
        time=utc_time(ts),
        media=tuple(
            text_of(file, "title", "name") or "a file" for file in list_of(message, "files")
        ),
    )


def slack_text(text: str, names: Mapping[str, str]) -> str:
    """Convert a text from Slack's mrkdwn to plain text.

    Args:
        text: the text.
        names: names of people, by Slack's ids.
    """
    # Every second part is the content of a token.
    parts = SLACK_TOKEN.split(text)
    parts[1::2] = [_slack_token(token, names) for token in parts[1::2]]
    return "".join(map(unescape, parts))


def _slack_token(token: str, names: Mapping[str, str]) -> str:
    target, _, label = token.partition("|")
    kind, rest = target[:1], target[1:]
    if kind == "@":
        return f"@{label or names.get(rest) or rest}"
    if kind == "#":
        return f"#{label or rest}"
    if kind == "!":
        word = rest.partition("^")[0]
        return label or (f"@{word}" if word in ("here", "channel", "everyone") else rest)
    address = target.removeprefix("mailto:").removeprefix("tel:")
    # Slack makes links of plain addresses: then the label repeats the address.
    if not label or label in (address, address.removeprefix("http://").removeprefix("https://")):
        return address
    return f"{label} ({address})"


# --- WhatsApp ---------------------------------------------------------------------------------

# 31.12.25, 21:15 - Maria: Hi     [12/31/25, 9:15:07 PM] Maria: Hi     12.3.2022 klo 14.08 - …
# 2025/12/31 下午9:15 - Maria: Hi   2025. 12. 31. 오후 9:15 - …          31/12/25, 9:15 p. m. - …
_MESSAGE: Final = re.compile(
    r"\[?(\d{1,4})[./-] ?(\d{1,2})[./-] ?(\d{1,4})\.?,?(?: [a-zà]{1,4}\.?)? "
    r"(?P<before>[上下]午|午[前後]|오[전후])? ?(?P<hour>\d{1,2})[:.](?P<minute>\d{2})"
    r"(?:[:.](?P<second>\d{2}))?(?: ?(?P<after>[ap])\.? ?m\.?)?(?:\] | - )(?P<said>.*)",
    re.IGNORECASE | re.DOTALL,
)
_AFTERNOON: Final = frozenset({"p", "下午", "午後", "오후"})
_SPACES: Final = str.maketrans({"\u202f": " ", "\u00a0": " "})
_AUTHOR: Final = re.compile(r"([^:\n]{1,100}): (.*)|([^:\n]{1,100}):$", re.DOTALL)
# The whole text stands for a file: of Android, with a name; and of iOS, after a mark.
_MEDIA: Final = (
    re.compile(r"<[^<>:]{1,40}: ([^<>]+\.\w{2,5})>"),
    re.compile(r"(\S+\.\w{2,5}) \([^()\n]{1,40}\)"),
    re.compile(r"<([^<>\n]{1,40})>"),
)
_IOS_OMITTED: Final = re.compile(r"([\w ]{3,30}) (?:omitted|weggelassen|omitid[oa]|omise?)")
_EDITED: Final = re.compile(r"(?:\u200e<[^<>\n]{5,60}>|<This message was edited>)$")
ORDERS: Final = {"dmy": (0, 1, 2), "mdy": (1, 0, 2), "ymd": (2, 1, 0)}


def whatsapp(source: files.Source, *, date_order: str = "") -> files.Found:
    """Read WhatsApp's export without or with media, of Android and iOS.

    Args:
        source: a file for each chat.
        date_order: one of ORDERS. Default: the only one that fits all dates of the file.

    Raises:
        ImportRefused: several orders fit, or none.
    """
    for name in source.texts:
        order = ORDERS[date_order or _find_order(source, name)]
        title = PurePosixPath(name).stem.strip(files.MARKS).strip()
        thread = "" if len(source.texts) == 1 else title
        for number, message in _messages(source, name):
            place = str(number) if len(source.texts) == 1 else f"{name}:{number}"
            yield _whatsapp_message(place, message, thread, order)


def is_whatsapp(line: str) -> bool:
    """Return whether a line begins a message of WhatsApp."""
    return _MESSAGE.match(line.lstrip(files.MARKS).translate(_SPACES)) is not None


def _messages(source: files.Source, name: str) -> Iterator[tuple[int, str]]:
    """Yield the messages with their first lines' numbers; lines before the first as they are."""
    begun, parts = 0, list[str]()
    for number, line in source.lines(name):
        if is_whatsapp(line) or not begun:
            if parts:
                yield begun, "\n".join(parts)
            begun, parts = number, []
        parts.append(line)
    if parts:
        yield begun, "\n".join(parts)


def _find_order(source: files.Source, name: str) -> str:
    orders, has_dates = list(ORDERS), False
    for number, line in source.lines(name):
        found = _MESSAGE.match(line.lstrip(files.MARKS).translate(_SPACES))
        if found is None:
            continue
        has_dates = True
        # A year of two digits is the last number, unless the option says otherwise.
        fitting = [
            order
            for order in orders
            if _time(found, ORDERS[order]) and (order != "ymd" or len(found[1]) == 4)
        ]
        if not fitting:
            raise ImportRefused(
                f"{name}:{number}: {found[1]}/{found[2]}/{found[3]} is no date in the order of the"
                f" dates before ({' / '.join(orders)}): correct it, or choose the order of dates."
            )
        orders = fitting
    if not has_dates:
        raise ImportRefused(f"{name} has no line that begins with a date as WhatsApp's exports do.")
    if len(orders) > 1:
        raise ImportRefused(
            f"{name}: its dates can be read as {' / '.join(orders)} (d: day, m: month): choose"
            " the order of dates."
        )
    return orders[0]


def _time(found: re.Match[str], order: tuple[int, int, int]) -> datetime | None:
    """Return the time of a message; None: the order does not fit."""
    parts = found[1], found[2], found[3]
    day, month, year = (parts[place] for place in order)
    if len(year) not in (2, 4) or len(day) > 2:
        return None
    hour = int(found["hour"])
    if half := found["before"] or found["after"]:
        hour = hour % 12 + (12 if half.lower() in _AFTERNOON else 0)
    try:
        return datetime(  # noqa: DTZ001 (the export has no zone)
            *(int(year) + (2000 if len(year) == 2 else 0), int(month), int(day)),
            *(hour, int(found["minute"]), int(found["second"] or 0)),
        )
    except ValueError:
        return None


def _whatsapp_message(
    place: str, message: str, thread: str, order: tuple[int, int, int]
) -> files.Row | files.Problem:
    message = message.lstrip(files.MARKS)
    # The spaces of the text stay as they are.
    first, _, _ = message.partition("\n")
    found = _MESSAGE.match(first.translate(_SPACES))
    if found is None:
        return files.Problem(place, "it does not begin with a date and time")
    time = _time(found, order)
    if time is None:
        stated = f"{found[1]}/{found[2]}/{found[3]} {found['hour']}:{found['minute']}"
        return files.Problem(place, f"{stated} is no time")
    said = _AUTHOR.fullmatch(message[found.start("said") :].lstrip(files.MARKS))
    if said is None:
        return files.Problem(place, "a message of WhatsApp itself")
    author, text = said[1] or said[3], said[2] or ""
    is_marked = text.startswith("\u200e")
    text = _EDITED.sub("", text.strip(files.MARKS)).rstrip(" ") or text.strip(files.MARKS)
    media: tuple[str, ...] = ()
    patterns = (*_MEDIA, _IOS_OMITTED) if is_marked else _MEDIA
    head, _, caption = text.partition("\n")
    if name := next((match[1] for pattern in patterns if (match := pattern.fullmatch(head))), ""):
        text, media = caption, (name.strip(files.MARKS),)
    elif is_marked:
        return files.Problem(place, "a message of WhatsApp itself")
    author = (
        author.translate(_SPACES)
        .strip(files.MARKS + " ")
        .removeprefix("~")
        .strip(files.MARKS + " ")
    )
    return files.Row(place, text, thread=thread, author=author, time=time, media=media)


# --- Telegram ---------------------------------------------------------------------------------


def telegram(source: files.Source) -> files.Found:
    """Read Telegram's export: JSON of one chat or of all, or the pages of one chat as HTML."""
    for name in sorted(source.texts, key=lambda name: (len(name), name)):  # messages10 after 2
        if name.endswith(".html"):
            yield from _telegram_page(source, name)
            continue
        document = source.document(name)
        listed = document.get("chats", {"list": [document]}) if isinstance(document, dict) else {}
        chats = listed.get("list") if isinstance(listed, dict) else None
        for chat in chats if isinstance(chats, list) else ({},):
            messages = chat.get("messages") if isinstance(chat, dict) else None
            if not isinstance(messages, list):
                raise ImportRefused(f"{name} is no export of Telegram: export it as JSON.")
            for number, message in enumerate(messages, 1):
                yield _telegram_message(number, message, chat)


def _telegram_message(
    number: int, message: Any, chat: Mapping[str, Any]
) -> files.Row | files.Problem:
    chat_id = f"telegram:{chat.get('id', text_of(chat, 'name'))}"
    place = f"{text_of(chat, 'name') or chat_id} item {number}"
    if text_of(message, "type") != "message":
        return files.Problem(place, "a message of Telegram itself")
    text = _telegram_text(message.get("text"))
    if forwarded := text_of(message, "forwarded_from"):
        text = f"Forwarded from {forwarded}:\n{text}"
    file = text_of(message, "file_name") or PurePosixPath(text_of(message, "file")).name
    kind = text_of(message, "media_type").replace("_", " ")
    # Without the files, `file` has a remark in parentheses.
    is_unnamed = file.startswith("(") or "photo" in message
    media = (kind or "photo") if is_unnamed else (file or kind)
    return files.Row(
        place,
        text,
        thread=chat_id,
        external_id=f"{chat_id}/{message.get('id')}",
        author=text_of(message, "from") or text_of(message, "from_id"),
        author_id=text_of(message, "from_id"),
        time=utc_time(message.get("date_unixtime") or message.get("date")),
        media=(media,) if media else (),
    )


def _telegram_text(value: Any) -> str:
    """Return a text, or a list of texts and entities, as one text."""
    if isinstance(value, str):
        return value
    parts = []
    for part in value if isinstance(value, list) else ():
        text = part if isinstance(part, str) else text_of(part, "text")
        link = text_of(part, "href")
        parts.append(f"{text} ({link})" if link else text)
    return "".join(parts)


_WITHOUT_END: Final = frozenset({"br", "img", "input", "link", "meta"})
# Classes of elements with a part of a message, and of those that are none.
_PARTS: Final = ("from_name", "text", "title")
_NO_PARTS: Final = ("date", "reply_to", "userpic", "status", "description")
# More is of no message of Telegram, and would take long.
_MAX_DEPTH: Final = 20
_MAX_CHARACTERS: Final = 30_000
_MEDIA_CLASS: Final = re.compile(r"media_(?!wrap)(\w+)|(photo|sticker|animated|video_file)_wrap")


class _TelegramPage(HTMLParser):
    """The messages of a page of Telegram's HTML, and the title of its chat."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[dict[str, str]] = []
        self.title: dict[str, str] = {}
        self._open: list[list[str]] = []
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in _WITHOUT_END:
            if tag == "br":
                self._add("\n")
            return
        classes = values.get("class", "").split()
        self._open.append(classes)
        if "message" in classes:
            kind = "service" if "service" in classes else ""
            message = {"id": values.get("id", "").removeprefix("message"), "kind": kind}
            if "joined" in classes and self.messages:
                message["from_name"] = self.messages[-1].get("from_name", "")
            self.messages.append(message)
        elif self.messages and "date" in classes and not self._is_forwarded():
            self.messages[-1]["date"] = values.get("title", "")
        elif self.messages and (
            found := next(filter(None, map(_MEDIA_CLASS.match, classes)), None)
        ):
            self.messages[-1]["media"] = (found[1] or found[2]).replace("_", " ")
        self._link = values.get("href", "") if tag == "a" else self._link

    def handle_endtag(self, tag: str) -> None:
        if tag in _WITHOUT_END or not self._open:
            return
        if tag == "a" and self._link.startswith("http"):
            self._add(f" ({self._link})")
        self._link = "" if tag == "a" else self._link
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if data.split("://")[-1].strip("/") == self._link.split("://")[-1].strip("/"):
            self._link = ""  # the text is the link
        self._add(re.sub(r"[ \t\r\n]+", " ", data))

    def _is_forwarded(self) -> bool:
        return any("forwarded" in classes for classes in self._open[-_MAX_DEPTH:])

    def _add(self, text: str) -> None:
        known = (name for classes in reversed(self._open[-_MAX_DEPTH:]) for name in classes)
        part = next((name for name in known if name in (*_PARTS, *_NO_PARTS)), "")
        if part in _PARTS:
            part = "forwarded" if part == "from_name" and self._is_forwarded() else part
            target = self.messages[-1] if self.messages else self.title
            if len(before := target.get(part, "")) < _MAX_CHARACTERS:
                target[part] = before + text


def _telegram_page(source: files.Source, name: str) -> files.Found:
    page = _TelegramPage()
    for number, line in source.lines(name):
        if len(line) + len(page.rawdata) > _MAX_CHARACTERS:  # of a tag that has not ended
            raise ImportRefused(f"{name}:{number} is too long: export the chat again.")
        page.feed(f"{line}\n")
    chat_id = f"telegram:{page.title.get('text', '').strip() or source.title}"
    for message in page.messages:
        if message["id"].startswith("-"):  # a date between messages
            continue
        place = f"{name} {message['id']}"
        if message["kind"] == "service":
            yield files.Problem(place, "a message of Telegram itself")
            continue
        text = re.sub(r" *\n *", "\n", message.get("text", "")).strip(" \n")
        if forwarded := message.get("forwarded", "").strip():
            text = f"Forwarded from {forwarded}:\n{text}"
        media = message.get("title", "").strip() or message.get("media", "")
        yield files.Row(
            place,
            text,
            thread=chat_id,
            external_id=f"{chat_id}/{message['id']}",
            author=message.get("from_name", "").strip(),
            time=_page_time(message.get("date", "")),
            media=(media,) if media else (),
        )


def _page_time(text: str) -> datetime | None:
    """Return a time such as "28.12.2025 21:15:07 UTC+01:00", or without a zone; else None."""
    day, _, rest = text.replace(" UTC", "").partition(" ")
    return utc_time("-".join(reversed(day.split("."))) + f"T{rest}")
