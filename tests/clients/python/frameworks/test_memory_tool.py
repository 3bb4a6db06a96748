"""The memory tool of Anthropic's SDK on Konstruct, by its tool runner and by HTTP."""

from typing import Any

import pytest
from konstruct_client import Client

from memory.models import MemoryEntry
from memory.models.facts import FactState
from tenants.context import tenant_scope
from tests.clients.python.conftest import bound_key
from tests.konstruct.conftest import Program
from tests.servers.llm import Answer, LLMServer

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]

NOTES, STYLE = "/memories/notes.md", "/memories/style.md"
# The calls of the language model, and how the result of each begins.
CALLS: list[tuple[dict[str, Any], str]] = [
    ({"command": "create", "path": NOTES, "file_text": "Use tabs.\n"}, "File created successfully"),
    (
        {"command": "str_replace", "path": NOTES, "old_str": "tabs", "new_str": "spaces"},
        "The memory file has been edited.",
    ),
    (
        {"command": "insert", "path": NOTES, "insert_line": 0, "insert_text": "# Style\n"},
        f"The file {NOTES} has been edited.",
    ),
    (
        {"command": "view", "path": NOTES},
        f"Here's the content of {NOTES} with line numbers:\n     1\t# Style\n     2\tUse spaces.",
    ),
    ({"command": "rename", "old_path": NOTES, "new_path": STYLE}, "Successfully renamed"),
    ({"command": "view", "path": NOTES}, f"The path {NOTES} does not exist."),
    ({"command": "create", "path": NOTES, "file_text": "Old."}, "File created successfully"),
    ({"command": "delete", "path": NOTES}, f"Successfully deleted {NOTES}"),
    ({"command": "create", "path": "/etc/passwd", "file_text": "x"}, "Error: "),
]


def message(stop_reason: str, *content: dict[str, Any]) -> Answer:
    """Return an answer of Anthropic's API."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    return Answer(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": list(content),
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": usage,
        }
    )


def test_the_tool_runner_runs_the_six_commands_on_files_of_a_project(
    url: str, program_a: Program
) -> None:
    from anthropic import Anthropic
    from konstruct_client.anthropic import KonstructMemoryTool

    with LLMServer() as server, Client(url, bound_key(program_a, "shop")) as konstruct:
        server.answers = [
            message(
                "tool_use",
                {"type": "tool_use", "id": f"toolu_{n}", "name": "memory", "input": given},
            )
            for n, (given, _) in enumerate(CALLS)
        ]
        server.default = message("end_turn", {"type": "text", "text": "Done."})
        runner = Anthropic(base_url=server.url, api_key="unused").beta.messages.tool_runner(
            model="claude",
            max_tokens=100,
            tools=[KonstructMemoryTool(konstruct, agent="ada", user_id="shop")],
            messages=[{"role": "user", "content": "Remember that we use spaces."}],
        )
        assert runner.until_done().content[0].text == "Done."
    assert server.requests[0].body["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    results = [request.body["messages"][-1]["content"][0] for request in server.requests[1:]]
    for (given, begins), result in zip(CALLS, results, strict=True):
        assert result["type"] == "tool_result", given
        assert text_of(result["content"]).startswith(begins), given
    assert [n for n, result in enumerate(results) if result.get("is_error")] == [5, 8]
    with tenant_scope(program_a.tenant.id):
        files = MemoryEntry.objects.entries().filter(external_id__startswith="/memories/")
        stored = files.filter(user_id="shop", state=FactState.ACTIVE)
        assert list(stored.values_list("external_id", "content")) == [
            (STYLE, "# Style\nUse spaces.\n")
        ]


def text_of(content: Any) -> str:
    """Return the text of a result."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content)
