"""Slack on loopback: a Web API that validates requests, and stores posts.

It checks bearer tokens, required and known arguments, and limits. It can refuse requests, be busy,
lose its answers, or be down. It also signs events like Slack.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from itertools import count
from typing import Any
from urllib.parse import parse_qsl

from tests.servers.loopback import LoopbackServer

SIGNING_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
CLIENT_ID, CLIENT_SECRET = "1234.5678", "client secret"
MAX_TEXT_CHARACTERS = 40_000
POSTED = {"channel", "text", "thread_ts", "blocks", "metadata", "unfurl_links", "unfurl_media"}
READ = {"channel", "cursor", "include_all_metadata", "limit", "oldest", "latest", "inclusive"}
# By method: required arguments, and optional ones.
ARGUMENTS: dict[str, tuple[set[str], set[str]]] = {
    "auth.test": (set(), set()),
    "auth.revoke": (set(), {"test"}),
    "chat.postMessage": ({"channel", "text"}, POSTED),
    "chat.update": ({"channel", "ts", "text"}, {"blocks", "metadata"}),
    "conversations.replies": ({"channel", "ts"}, READ),
    "conversations.history": ({"channel"}, READ),
    "users.info": ({"user"}, set()),
    "views.open": ({"trigger_id", "view"}, set()),
    "oauth.v2.access": ({"code"}, {"redirect_uri"}),
}


@dataclass
class Workspace:
    """A workspace with the app's bot."""

    id: str
    name: str
    token: str
    bot: str = "UBOT"
    users: dict[str, str] = field(default_factory=dict)
    archived: set[str] = field(default_factory=set)
    revoked: bool = False
    posts: list[dict[str, Any]] = field(default_factory=list)
    forms: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Call:
    """A request to the API."""

    method: str
    arguments: Mapping[str, Any]
    workspace: str = ""


@dataclass(frozen=True)
class Trouble:
    """A fault instead of the usual answer: an HTTP status, or an error of Slack.

    `done`: the request is carried out, and only the answer is lost.
    """

    status: int = 200
    error: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    done: bool = False


class SlackServer(LoopbackServer):
    """The Web API of some workspaces."""

    def __init__(self) -> None:
        self.workspaces: dict[str, Workspace] = {}
        self.codes: dict[str, str] = {}  # of OAuth: code to workspace
        self.calls: list[Call] = []
        self.troubles: dict[str, list[Trouble]] = {}  # by method, each for one call
        self.down = False
        self.before: Callable[[Call], None] | None = None
        self._numbers = count(1)
        self._lock = threading.RLock()
        super().__init__()

    @property
    def url(self) -> str:
        return f"{super().url}/api/"

    def add(self, workspace: str, **fields: Any) -> Workspace:
        """Install the bot in a workspace."""
        token = f"xoxb-{secrets.token_hex(8)}"
        made = Workspace(workspace, fields.pop("name", f"Team {workspace}"), token, **fields)
        self.workspaces[workspace] = made
        return made

    def trouble(self, method: str, *troubles: Trouble) -> None:
        """Return these faults for the next calls of a method."""
        self.troubles.setdefault(method, []).extend(troubles)

    def posts(self, workspace: str, channel: str = "") -> list[str]:
        """Return the current texts of the bot's posts, oldest first."""
        with self._lock:
            return [
                post["text"]
                for post in self.workspaces[workspace].posts
                if channel in ("", post["channel"])
            ]

    def methods(self) -> list[str]:
        """Return the called methods."""
        return [call.method for call in self.calls]

    def wait_for(self, condition: Callable[[], object], seconds: float = 30) -> None:
        """Return when the condition is true; fail otherwise."""
        deadline = time.monotonic() + seconds
        while not condition():
            posts = {workspace.id: workspace.posts for workspace in self.workspaces.values()}
            assert time.monotonic() < deadline, f"{posts} {self.methods()}"
            time.sleep(0.02)

    # --- Answers ------------------------------------------------------------------------------

    def answer(self, method: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any, Any]:
        """Return status, headers and document of the answer."""
        arguments = _arguments(headers, body)
        if method not in ARGUMENTS:
            return 200, {}, {"ok": False, "error": "unknown_method"}
        if method == "oauth.v2.access":
            return 200, {}, self._access(headers, arguments)
        with self._lock:
            workspace = self._workspace(headers)
            call = Call(method, arguments, workspace.id if workspace else "")
            self.calls.append(call)
            waiting = self.troubles.get(method)
            trouble = waiting.pop(0) if waiting else None
        if self.before is not None:
            self.before(call)
        if trouble is not None and not trouble.done:
            return trouble.status, trouble.headers, _failure(trouble.error or "internal_error")
        with self._lock:
            document = self._do(method, workspace, arguments)
        if trouble is not None:
            return trouble.status, trouble.headers, _failure(trouble.error or "internal_error")
        return 200, {}, document

    def _do(
        self, method: str, workspace: Workspace | None, arguments: dict[str, Any]
    ) -> dict[str, Any]:
        if workspace is None:
            return _failure("invalid_auth")
        required, optional = ARGUMENTS[method]
        wrong = (required - set(arguments)) | (set(arguments) - required - optional)
        if wrong:
            return _failure("invalid_arguments", wrong=sorted(wrong))
        if arguments.get("channel") in workspace.archived and method.startswith("chat."):
            return _failure("is_archived")
        name = "_" + method.replace(".", "_").lower()
        return {"ok": True, **getattr(self, name)(workspace, arguments)}

    def _workspace(self, headers: Mapping[str, str]) -> Workspace | None:
        token = headers.get("Authorization", "").removeprefix("Bearer ")
        found = (workspace for workspace in self.workspaces.values() if workspace.token == token)
        workspace = next(found, None)
        return None if workspace is None or workspace.revoked else workspace

    def _auth_test(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        return {
            "team_id": workspace.id, "team": workspace.name, "user_id": workspace.bot,
            "bot_id": "BBOT",
        }  # fmt: skip

    def _auth_revoke(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        workspace.revoked = True
        return {"revoked": True}

    def _chat_postmessage(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        if wrong := _unfit(arguments):
            return wrong
        ts = fresh_ts()
        workspace.posts.append({**arguments, "ts": ts, "shown": [arguments["text"]]})
        return {"ts": ts, "channel": arguments["channel"]}

    def _chat_update(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        if wrong := _unfit(arguments):
            return wrong
        for post in workspace.posts:
            if (post["channel"], post["ts"]) == (arguments["channel"], arguments["ts"]):
                post["shown"].append(arguments["text"])
                post.update(arguments)
                return {"ts": post["ts"]}
        return _failure("message_not_found")

    def _conversations_replies(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        return self._read(workspace, arguments, thread=arguments["ts"])

    def _conversations_history(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        return self._read(workspace, arguments, thread=None)

    def _read(self, workspace: Workspace, arguments: Any, thread: str | None) -> dict[str, Any]:
        found = [
            {name: post.get(name) for name in ("ts", "text", "metadata")}
            for post in workspace.posts
            if post["channel"] == arguments["channel"]
            and post.get("thread_ts") == thread
            and float(post["ts"]) > float(arguments.get("oldest", 0))
        ]
        if arguments.get("include_all_metadata") not in (True, "1", "true"):
            found = [{**post, "metadata": None} for post in found]
        start, limit = int(arguments.get("cursor") or 0), int(arguments.get("limit", 100))
        more = str(start + limit) if start + limit < len(found) else ""
        return {
            "messages": found[start : start + limit],
            "response_metadata": {"next_cursor": more},
        }

    def _users_info(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        name = workspace.users.get(arguments["user"])
        if name is None:
            return _failure("user_not_found")
        return {"user": {"id": arguments["user"], "profile": {"display_name": name}}}

    def _views_open(self, workspace: Workspace, arguments: Any) -> dict[str, Any]:
        view = arguments["view"]
        form = json.loads(view) if isinstance(view, str) else view
        workspace.forms.append({**form, "id": f"V{next(self._numbers)}"})
        return {"view": workspace.forms[-1]}

    def _access(self, headers: Mapping[str, str], arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(Call("oauth.v2.access", arguments))
        expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
        if headers.get("Authorization") != f"Basic {expected}":
            return _failure("bad_client_secret")
        workspace = self.workspaces.get(self.codes.pop(arguments.get("code", ""), ""))
        if workspace is None:
            return _failure("invalid_code")
        return {
            "ok": True, "access_token": workspace.token, "token_type": "bot",
            "scope": "chat:write,app_mentions:read", "bot_user_id": workspace.bot,
            "team": {"id": workspace.id, "name": workspace.name}, "is_enterprise_install": False,
        }  # fmt: skip

    def answer_post(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.close_connection = True
        if self.down:
            return  # like a broken connection
        method = handler.path.removeprefix("/api/")
        status, headers, document = self.answer(method, dict(handler.headers), body)
        content = json.dumps(document).encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Type", "application/json; charset=utf-8")
        handler.send_header("Content-Length", str(len(content)))
        handler.send_header("Connection", "close")
        handler.end_headers()
        with contextlib.suppress(ConnectionError):  # the client was killed
            handler.wfile.write(content)


def _arguments(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    if "json" in (headers.get("Content-Type") or ""):
        return dict(json.loads(body or b"{}"))
    return dict(parse_qsl(body.decode(), keep_blank_values=True))


def _failure(error: str, **more: Any) -> dict[str, Any]:
    return {"ok": False, "error": error, **more}


def _unfit(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the error of Slack for an invalid post."""
    if not arguments["text"] and not arguments.get("blocks"):
        return _failure("no_text")
    if len(arguments["text"]) > MAX_TEXT_CHARACTERS:
        return _failure("msg_too_long")
    metadata = arguments.get("metadata")
    if metadata is not None and set(metadata) != {"event_type", "event_payload"}:
        return _failure("invalid_metadata_format")
    return None


# --- Events of Slack ------------------------------------------------------------------------------

_event_numbers = count(1)


def signed(body: bytes, *, secret: str = SIGNING_SECRET, at: float | None = None) -> dict[str, str]:
    """Return Slack's headers for a body."""
    timestamp = str(int(time.time() if at is None else at))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:".encode() + body, hashlib.sha256)
    return {
        "X-Slack-Request-Timestamp": timestamp,
        "X-Slack-Signature": f"v0={digest.hexdigest()}",
    }


def event(workspace: str, **fields: Any) -> dict[str, Any]:
    """Return an event in its envelope."""
    return {
        "type": "event_callback",
        "team_id": workspace,
        "api_app_id": "A1",
        "event_id": f"Ev{next(_event_numbers):08}",
        "event_time": int(time.time()),
        "authorizations": [{"team_id": workspace, "user_id": "UBOT", "is_bot": True}],
        "event": fields,
    }


def fresh_ts() -> str:
    """Return the time of a new message, which is also its id."""
    return f"{time.time():.6f}"


def mention(workspace: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return a mention of the bot in a channel."""
    return event(
        workspace,
        **{
            "type": "app_mention", "user": "U1", "channel": "C1", "ts": fresh_ts(),
            "text": f"<@UBOT> {text}", **fields,
        },
    )  # fmt: skip


def message_event(workspace: str, text: str, **fields: Any) -> dict[str, Any]:
    """Return a message in a channel; with `channel_type="im"`, a direct one to the bot."""
    defaults = {"type": "message", "user": "U1", "channel": "C1", "channel_type": "channel"}
    return event(workspace, **{**defaults, "ts": fresh_ts(), "text": text, **fields})


@contextlib.contextmanager
def slack_server() -> Iterator[SlackServer]:
    """Run a server with two workspaces, which have a user with the same id."""
    with SlackServer() as server:
        server.add("T1")
        server.add("T2")
        yield server
