"""Who speaks, and in which conversation, by a request for a chat completion."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from rest_framework.request import Request

from konstruct.api.auth.caller import Caller
from konstruct.api.http.errors.problems import Refusal
from konstruct.interfaces.openai.errors import refused
from konstruct.interfaces.openai.requests import ChatRequest

# In the order in which they count. Headers are set by the program that calls; a body may be passed
# on from somebody else. The last one of each list is often no more than a hash.
USER_HEADERS: Final = ("X-OpenWebUI-User-Id", "X-SM-User-Id")
USER_PARAMETERS: Final = ("metadata.user_id", "user", "safety_identifier")
THREAD_HEADERS: Final = ("X-OpenWebUI-Chat-Id", "X-SM-Conversation-Id")
THREAD_PARAMETERS: Final = (
    "metadata.thread_id",
    "metadata.conversation_id",
    "metadata.chat_id",
    "prompt_cache_key",
)


def user_of(request: Request, chat: ChatRequest, caller: Caller) -> str:
    """Return the user who speaks: whom the request names, else whom the key is bound to.

    Raises OutsideOfKey if they are not the same, and Refusal if there is neither.
    """
    named = next(_named(request, chat.body, USER_HEADERS, USER_PARAMETERS), caller.user_id)
    if named is None:
        why = (
            "Say who speaks, since an agent remembers each user apart: send `user`, or one of the "
            f"headers {' and '.join(USER_HEADERS)}, or use a key that is bound to a user "
            "(manage.py create_api_key --user)."
        )
        raise Refusal(refused("user", why, code="user_required"))
    return caller.user(named)


def thread_of(request: Request, chat: ChatRequest, user_id: str) -> str:
    """Return the conversation: the one that is named, else the user's one without a name."""
    return next(_named(request, chat.body, THREAD_HEADERS, THREAD_PARAMETERS), user_id)


def _named(
    request: Request,
    body: Mapping[str, Any],
    headers: tuple[str, ...],
    parameters: tuple[str, ...],
) -> Iterator[str]:
    """Yield what is named in these places. What is empty names nothing."""
    for header in headers:
        if given := request.headers.get(header, ""):
            yield _decoded(header, given)
    metadata = body.get("metadata")
    if not isinstance(metadata, Mapping | None):
        raise Refusal(refused("metadata", "This is an object."))
    flat = {**body, **{f"metadata.{name}": each for name, each in (metadata or {}).items()}}
    for parameter in parameters:
        value = flat.get(parameter)
        if value is None or value == "":
            continue
        if not isinstance(value, str):
            raise Refusal(refused(parameter, "This is text."))
        yield value


def _decoded(header: str, given: str) -> str:
    """The text of a header, which is UTF-8: two ids must not become one."""
    try:
        return given.encode("latin-1").decode()
    except UnicodeError:
        raise Refusal(refused(header, f"{header} is to be UTF-8.")) from None
