"""Coding agents: files of Anthropic's memory tool, and hooks of Claude Code."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connections

from konstruct.api.models import KeyScope
from konstruct.orchestrator.identities.erasure_requests import request_erasure
from konstruct.privacy.erasure.erasing import carry_out
from memory.facts import files, service
from memory.models import MemoryEntry, Message
from tenants.audit.access_log import Actor
from tenants.context import tenant_scope
from tests import database
from tests.konstruct.conftest import Program

TOOL = "/api/v1/memory-tool/"
HOOKS = "/api/v1/claude-code/hooks/"
HOOK = {
    "session_id": "abc123",
    "transcript_path": "/home/maria/.claude/projects/shop/abc123.jsonl",
    "cwd": "/home/maria/shop",
    "permission_mode": "default",
}


def call(program: Program, command: str, *, user_id: str = "shop", **values: Any) -> Any:
    """Run a command; return the response."""
    body = {"agent": "ada", "user_id": user_id, "input": {"command": command, **values}}
    return program.post(TOOL, body)


def run(program: Program, command: str, **values: Any) -> str:
    """Run a command that succeeds; return its answer."""
    response = call(program, command, **values)
    result = response.json()
    assert response.status_code == 200, response.text
    assert not result["is_error"], result
    return str(result["content"])


def fails(program: Program, command: str, **values: Any) -> str:
    """Run a command that fails; return the error that the language model gets."""
    response = call(program, command, **values)
    assert response.status_code == 200, response.text
    assert response.json()["is_error"]
    return str(response.json()["content"])


def create(program: Program, path: str, text: str = "tea\nmilk\n") -> None:
    run(program, "create", path=path, file_text=text)


def test_a_file_is_created_viewed_edited_and_renamed(program_a: Program) -> None:
    path = "/memories/notes.txt"
    answer = run(program_a, "create", path=path, file_text="one\ntwo\nthree")
    assert answer == "File created successfully at: /memories/notes.txt"
    assert run(program_a, "view", path=path) == (
        "Here's the content of /memories/notes.txt with line numbers:\n"
        "     1\tone\n     2\ttwo\n     3\tthree"
    )
    assert run(program_a, "view", path=path, view_range=[2, -1]).endswith(
        "numbers:\n     2\ttwo\n     3\tthree"
    )
    assert run(program_a, "str_replace", path=path, old_str="two", new_str="2") == (
        "The memory file has been edited. Here is the snippet showing the change (with line"
        " numbers):\n     1\tone\n     2\t2\n     3\tthree"
    )
    answer = run(program_a, "insert", path=path, insert_line=0, insert_text="zero\n")
    assert answer == "The file /memories/notes.txt has been edited."
    answer = run(program_a, "rename", old_path=path, new_path="/memories/old/numbers.txt")
    assert answer == "Successfully renamed /memories/notes.txt to /memories/old/numbers.txt"
    assert run(program_a, "view", path="/memories/old/numbers.txt").endswith(
        "     1\tzero\n     2\tone\n     3\t2\n     4\tthree\n     5\t"
    )


def test_directories_are_listed_two_levels_deep(program_a: Program) -> None:
    assert run(program_a, "view", path="/memories").endswith("node_modules:\n0B\t/memories")
    for path in ("a.txt", "b/c.txt", "b/d/e.txt", ".git/x", "node_modules/y"):
        create(program_a, f"/memories/{path}", "x" * 512)
    assert run(program_a, "view", path="/memories") == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden"
        " items and node_modules:\n"
        "1.5K\t/memories\n512B\t/memories/a.txt\n1.0K\t/memories/b/\n512B\t/memories/b/c.txt\n"
        "512B\t/memories/b/d/"
    )
    assert run(program_a, "delete", path="/memories/b") == "Successfully deleted /memories/b"
    assert "/memories/b" not in run(program_a, "view", path="/memories")


def test_errors_are_those_of_the_tool(program_a: Program) -> None:
    path, other = "/memories/a.txt", "/memories/b.txt"
    create(program_a, path, "tea\nmilk\ntea")
    create(program_a, other)
    assert fails(program_a, "view", path="/memories/x") == (
        "The path /memories/x does not exist. Please provide a valid path."
    )
    error = fails(program_a, "create", path=path, file_text="x")
    assert error == "Error: File /memories/a.txt already exists"
    assert fails(program_a, "create", path=f"{path}/below", file_text="x").endswith("exists")
    assert fails(program_a, "str_replace", path=path, old_str="beer", new_str="x") == (
        "No replacement was performed, old_str `beer` did not appear verbatim in /memories/a.txt."
    )
    assert fails(program_a, "str_replace", path=path, old_str="tea", new_str="x") == (
        "No replacement was performed. Multiple occurrences of old_str `tea` in lines: 1, 3."
        " Please ensure it is unique"
    )
    assert fails(program_a, "str_replace", path="/memories/x", old_str="a", new_str="b") == (
        "Error: The path /memories/x does not exist. Please provide a valid path."
    )
    assert fails(program_a, "insert", path=path, insert_line=4, insert_text="x") == (
        "Error: Invalid `insert_line` parameter: 4. It should be within the range of lines of the"
        " file: [0, 3]"
    )
    assert fails(program_a, "insert", path="/memories/x", insert_line=0, insert_text="x") == (
        "Error: The path /memories/x does not exist"
    )
    for command in ("delete", "rename"):
        values = {"path": "/memories/x"} if command == "delete" else {}
        values = values or {"old_path": "/memories/x", "new_path": "/memories/y"}
        error = fails(program_a, command, **values)
        assert error == "Error: The path /memories/x does not exist"
    assert fails(program_a, "rename", old_path=path, new_path=other) == (
        "Error: The destination /memories/b.txt already exists"
    )
    assert "Cannot delete" in fails(program_a, "delete", path="/memories/")
    assert "Cannot rename" in fails(program_a, "rename", old_path=path, new_path=f"{path}/a")


def test_a_directory_is_renamed_as_a_whole_or_not(
    program_a: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b" * 200):
        create(program_a, f"/memories/old/{name}")
    error = fails(program_a, "rename", old_path="/memories/old", new_path="/memories/" + "n" * 50)
    assert error == "Error: The path is too long"
    assert "/memories/old/a" in run(program_a, "view", path="/memories")
    with monkeypatch.context() as patch:  # a thousand long files would take minutes
        patch.delattr(service, "embed")
        run(program_a, "rename", old_path="/memories/old", new_path="/memories/new")
    listing = run(program_a, "view", path="/memories")
    assert "/memories/new/a" in listing
    assert "/memories/old" not in listing


@pytest.mark.parametrize(
    "path",
    [
        "/memories/../secrets.txt", "/memories/a/../../b", "/memories/%2e%2e/b", "/memories/./b",
        "/memories/..\\b", "/memories//b", "/memoriesb", "/etc/passwd", "memories/a", "",
        "/memories/a\u202eb", "/memories/a\nb", "/memories/" + "a" * 250,
    ],
)  # fmt: skip
def test_hostile_paths_are_refused(program_a: Program, path: str) -> None:
    for command, values in (
        ("create", {"path": path, "file_text": "x"}),
        ("view", {"path": path}),
        ("delete", {"path": path}),
        ("rename", {"old_path": path, "new_path": "/memories/b"}),
    ):
        assert fails(program_a, command, **values).startswith("Error: ")
    with tenant_scope(program_a.tenant.id):
        assert not MemoryEntry.objects.exists()


@pytest.mark.parametrize(
    "values",
    [
        {"command": "move", "path": "/memories/a"},
        {"command": "create", "path": "/memories/a"},
        {"command": "view", "path": "/memories/a", "file_text": "x"},
        {"command": "view", "path": 7},
        {"command": "view", "path": "/memories/a", "view_range": [1]},
        {"command": "view", "path": "/memories/a", "view_range": ["1", 2]},
        {"command": "view", "path": "/memories/\ud800"},
        {"command": "run", "path": "/memories/a"},
        {"command": "_lock"},
        {"command": ["view"], "path": "/memories"},
        {"command": "create", "path": "/memories/b", "file_text": "x" * 40_000},
        {"command": "str_replace", "path": "/memories/a", "old_str": ""},
    ],
)
def test_wrong_commands_are_errors_that_the_model_sees(
    program_a: Program, values: dict[str, Any]
) -> None:
    create(program_a, "/memories/a", "tea")
    fails(program_a, **values)
    nul = call(program_a, "create", path="/memories/b", file_text="a\0b")
    assert nul.status_code == 400
    assert run(program_a, "view", path="/memories/a").endswith("     1\ttea")


def test_sizes_are_limited(
    program_a: Program, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.MAX_MESSAGE_CHARACTERS = 12
    create(program_a, "/memories/a", "123456789")
    error = fails(program_a, "insert", path="/memories/a", insert_line=1, insert_text="1234")
    assert error == "Error: /memories/a would have more than 12 characters"
    error = fails(program_a, "create", path="/memories/b", file_text=" \n")
    assert error == "Error: /memories/b would be empty; give text, or delete it"
    monkeypatch.setattr(files, "MAX_FILES", 1)
    error = fails(program_a, "create", path="/memories/b", file_text="x")
    assert error == "Error: There are 1 files; delete some first"


def test_each_change_is_a_version_and_a_deletion_is_undone(program_a: Program) -> None:
    create(program_a, "/memories/a", "I like tea")
    run(program_a, "str_replace", path="/memories/a", old_str="tea", new_str="milk")
    with tenant_scope(program_a.tenant.id):
        fact = MemoryEntry.objects.entries().get()
    assert (fact.external_id, fact.user_id) == ("/memories/a", "shop")
    versions = program_a.get(f"/api/v1/facts/{fact.pk}/history/").json()["results"]
    assert [version["content"] for version in versions] == ["I like milk", "I like tea"]
    run(program_a, "delete", path="/memories/a")
    assert program_a.post(f"/api/v1/facts/{fact.pk}/restore/", {}).status_code == 200
    assert "I like milk" in run(program_a, "view", path="/memories/a")
    run(program_a, "delete", path="/memories/a")
    create(program_a, "/memories/a", "Anew")
    assert run(program_a, "view", path="/memories/a").endswith("     1\tAnew")


def test_projects_tenants_and_bound_keys_are_apart(program_a: Program, program_b: Program) -> None:
    create(program_a, "/memories/a", "secret of shop")
    for other in (call(program_a, "view", user_id="blog", path="/memories/a"),
                  call(program_b, "view", path="/memories/a")):  # fmt: skip
        assert other.json()["is_error"]
    bound = program_a.with_key(user_id="blog", scopes=KeyScope.values)
    assert call(bound, "view", path="/memories/a").status_code == 403
    own = bound.post(TOOL, {"agent": "ada", "input": {"command": "view", "path": "/memories"}})
    assert "secret" not in own.text
    assert own.status_code == 200
    for scope in (KeyScope.READ, KeyScope.WRITE):
        narrow = program_a.with_key(scopes=[scope])
        assert call(narrow, "view", path="/memories/a").status_code == 403
        assert call(narrow, "delete", path="/memories/a").status_code == 403
    assert "secret of shop" in run(program_a, "view", path="/memories/a")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_parallel_edits_are_both_kept(program_a: Program) -> None:
    create(program_a, "/memories/a", "x")

    def insert(number: int) -> str:
        try:
            text = f"line {number}"
            return run(program_a, "insert", path="/memories/a", insert_line=0, insert_text=text)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(insert, range(2)))
    content = run(program_a, "view", path="/memories/a")
    assert "line 0" in content
    assert "line 1" in content


def send(program: Program, name: str, *, user_id: str = "shop", **fields: Any) -> Any:
    """Send a hook as Claude Code does."""
    address = f"{HOOKS}?agent=ada&user_id={user_id}"
    return program.post(address, {**HOOK, "hook_event_name": name, **fields})


def test_prompts_and_replies_of_a_session_are_stored(program_a: Program) -> None:
    responses = [
        send(program_a, "SessionStart", source="startup"),
        send(program_a, "UserPromptSubmit", prompt="Add a basket"),
        send(program_a, "PreToolUse", tool_name="Bash", tool_input={"command": "ls"}),
        send(program_a, "Stop", stop_hook_active=False, last_assistant_message="Done."),
        send(program_a, "UserPromptSubmit", prompt="  "),
        send(program_a, "Stop", stop_hook_active=True, last_assistant_message=None),
        send(program_a, "UserPromptSubmit", prompt="x" * 40_000),
        send(program_a, "SessionEnd", reason="other"),
    ]
    # Nothing is added to a prompt.
    assert [(response.status_code, response.content) for response in responses] == [(204, b"")] * 8
    with tenant_scope(program_a.tenant.id):
        rows = Message.objects.order_by("number").values_list("role", "content", "thread_id")
        assert [(role, text[:20], thread) for role, text, thread in rows] == [
            ("user", "Add a basket", "abc123"), ("assistant", "Done.", "abc123"),
            ("user", "x" * 20, "abc123"),
        ]  # fmt: skip


def test_hooks_of_others_are_refused(program_a: Program, program_b: Program) -> None:
    bound = program_a.with_key(user_id="blog", scopes=[KeyScope.WRITE])
    prompt = {"prompt": "Add a basket"}
    assert send(bound, "UserPromptSubmit", **prompt).status_code == 403
    own = bound.post(f"{HOOKS}?agent=ada", {**HOOK, "hook_event_name": "Stop", **prompt})
    assert own.status_code == 204
    reader = program_a.with_key(scopes=[KeyScope.READ])
    assert send(reader, "UserPromptSubmit", **prompt).status_code == 403
    assert send(program_b, "UserPromptSubmit", **prompt).status_code == 204
    for fields in ({"session_id": 7}, {"session_id": "a\0b"}, {"prompt": ["x"]}):
        assert send(program_a, "UserPromptSubmit", **fields).status_code == 400
    with tenant_scope(program_a.tenant.id):
        assert not Message.objects.exists()


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_an_erasure_leaves_neither_files_nor_prompts(program_a: Program) -> None:
    create(program_a, "/memories/a", "canary")
    run(program_a, "str_replace", path="/memories/a", old_str="canary", new_str="canary 2")
    create(program_a, "/memories/b", "canary 3")
    run(program_a, "delete", path="/memories/b")
    send(program_a, "UserPromptSubmit", prompt="canary 4")
    with database.as_owner(), tenant_scope(program_a.tenant.id):
        carry_out(request_erasure("shop", by=Actor.operator("olga")))
        assert not MemoryEntry.objects.filter(user_id="shop").exists()
        assert not Message.objects.exists()
    assert "canary" not in run(program_a, "view", path="/memories")
