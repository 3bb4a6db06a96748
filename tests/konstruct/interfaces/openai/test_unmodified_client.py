"""OpenAI's own Python client, unmodified, against the production server with a worker."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI, pydantic_function_tool
from pydantic import BaseModel

from konstruct.orchestrator.agents import update_agent
from konstruct.orchestrator.models import ToolCall
from memory.models import Message
from tenants import jobs
from tenants.context import tenant_scope
from tenants.models import Job, Tenant
from tests.konstruct.api.live import WORKER, running, serving
from tests.konstruct.conftest import Program
from tests.konstruct.running import eventually
from tests.servers.llm import Answer, LLMServer, streamed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def llm() -> Iterator[LLMServer]:
    with LLMServer() as server:
        yield server


class Workers(contextlib.ExitStack):
    """A worker that can be killed."""

    def __init__(self, environment: Mapping[str, str], log: Path) -> None:
        super().__init__()
        self._environment, self._log = environment, log

    def start(self) -> None:
        self._process = self.enter_context(running(WORKER, self._environment, self._log))

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(60)


@pytest.fixture(scope="module")
def served(
    environment_of_processes: dict[str, str],
    llm: LLMServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[str, Workers]]:
    log = tmp_path_factory.mktemp("served") / "log"
    environment = {**environment_of_processes, "LLM_POOL_URL": f"{llm.url}/v1"}
    with serving(environment, log) as url, Workers(environment, log) as workers:
        workers.start()
        yield url, workers


@pytest.fixture
def url(served: tuple[str, Workers]) -> str:
    return served[0]


@pytest.fixture
def workers(served: tuple[str, Workers]) -> Workers:
    return served[1]


@pytest.fixture
def program(
    transactional_db: None, tenant_a: Tenant, llm: LLMServer, make_program: Callable[..., Program]
) -> Iterator[Program]:
    llm.forget()
    llm.default = Answer({"choices": [{"message": {"content": "Noted."}}]})
    yield make_program(tenant_a)
    # The worker must not run while the tables are emptied.
    swept_until(lambda: not Job.objects.exists())


ClientOf = Callable[..., OpenAI]


@pytest.fixture
def client_of(url: str) -> Iterator[ClientOf]:
    """Create a client with a program's key. It is closed after the test."""
    with contextlib.ExitStack() as opened:

        def make(program: Program, **options: Any) -> OpenAI:
            made = OpenAI(api_key=program.key, base_url=f"{url}/v1", timeout=120, **options)
            return opened.enter_context(made)

        yield make


def ask(client: OpenAI, *contents: str, **parameters: Any) -> Any:
    roles: Any = ("user", "assistant")
    messages: list[Any] = [
        {"role": roles[n % 2], "content": text} for n, text in enumerate(contents)
    ]
    parameters = {"model": "ada", "user": "maria", **parameters}
    return client.chat.completions.create(messages=messages, **parameters)


def transcript(program: Program) -> list[tuple[str, str]]:
    with tenant_scope(program.tenant.id):
        return list(Message.objects.order_by("created_at", "number").values_list("role", "content"))


def test_message_is_remembered(client_of: ClientOf, program: Program, llm: LLMServer) -> None:
    client = client_of(program)
    assert [model.id for model in client.models.list()] == ["ada"]
    assert client.models.retrieve("ada").owned_by == "konstruct"
    first = ask(client, "My sister lives in Porto.")
    assert first.choices[0].message.content == "Noted."
    assert first.choices[0].finish_reason == "stop"
    ask(client, "My sister lives in Porto.", "Noted.", "Where does she live?")
    assert turns_sent(llm) == ["My sister lives in Porto.", "Noted.", "Where does she live?"]
    assert transcript(program) == [
        ("user", "My sister lives in Porto."),
        ("assistant", "Noted."),
        ("user", "Where does she live?"),
        ("assistant", "Noted."),
    ]


def turns_sent(llm: LLMServer) -> list[str]:
    """Return the texts of the last prompt without system messages."""
    prompt = llm.requests[-1].body["messages"]
    return [message["content"] for message in prompt if message["role"] != "system"]


def test_a_stream_is_read_by_both_clients(url: str, client_of: ClientOf, program: Program) -> None:
    deltas = [
        chunk.choices[0].delta.content for chunk in ask(client_of(program), "Hi", stream=True)
    ]
    assert "".join(filter(None, deltas)) == "Noted."

    async def read() -> str:
        async with AsyncOpenAI(api_key=program.key, base_url=f"{url}/v1") as client:
            stream = await client.chat.completions.create(
                model="ada",
                messages=[{"role": "user", "content": "Hi again"}],
                stream=True,
                extra_headers={"X-OpenWebUI-User-Id": "paul", "X-OpenWebUI-Chat-Id": "c1"},
            )
            return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    assert asyncio.run(read()) == "Noted."
    with tenant_scope(program.tenant.id):
        assert Message.objects.filter(user_id="paul", thread_id="c1", role="user").count() == 1


@pytest.mark.long
def test_instructions_and_sampling_are_followed_and_the_rest_is_named(
    client_of: ClientOf, program: Program, llm: LLMServer
) -> None:
    with tenant_scope(program.tenant.id):
        update_agent(program.agent, max_completion_tokens=50)
    client = client_of(program)
    sampling: Any = {"temperature": 0.3, "top_p": 0.5, "seed": 7, "stop": ["END"]}
    instructions: Any = {"role": "developer", "content": "Answer in French."}
    for number, stream in enumerate((False, True)):
        turn: Any = {"role": "user", "content": f"Hello {number}"}
        answer = {"message": {"content": "Bon"}, "finish_reason": "length"}
        cut = streamed("B", "on", reason="length") if stream else Answer({"choices": [answer]})
        llm.answers = [cut]
        completion: Any = client.chat.completions.create(
            model="ada",
            user="maria",
            messages=[instructions, turn],
            max_completion_tokens=500,
            store=True,
            stream=stream,
            **sampling,
        )
        if stream:
            *chunks, last = completion
            assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Bon"
            reported = [hasattr(chunk, "konstruct") for chunk in chunks]
            assert (reported[0], any(reported[1:])) == (True, False)
            completion = last
        assert completion.choices[0].finish_reason == "length"
        assert [parameter["param"] for parameter in completion.konstruct["ignored"]] == ["store"]
        assert completion.konstruct["adjusted"][0]["value"] == 50
        body = llm.requests[-1].body
        assert {**sampling, "max_completion_tokens": 50}.items() <= body.items()
        texts = [message["content"] for message in body["messages"] if message["role"] == "system"]
        assert texts[1].endswith("Answer in French.")
    again: Any = {"role": "user", "content": "Hello again"}
    with client.chat.completions.stream(
        model="ada", user="maria", messages=[again], store=True
    ) as streaming:
        whole_answer: Any = streaming.get_final_completion()
    assert [parameter["param"] for parameter in whole_answer.konstruct["ignored"]] == ["store"]
    with pytest.raises(openai.BadRequestError) as hot:
        ask(client, "Hi", temperature=3)
    assert (hot.value.param, hot.value.code) == ("temperature", "invalid_value")


@pytest.mark.long
def test_first_token_is_streamed_without_delay(
    client_of: ClientOf, program: Program, llm: LLMServer
) -> None:
    reported = {"prompt_tokens": 9, "completion_tokens": 2}
    llm.answers = [streamed("At", " last.", wait=True, usage=reported)]
    options = {"stream_options": {"include_usage": True}}
    with ask(client_of(program), "Hi", stream=True, **options) as stream:
        chunks = iter(stream)
        deltas = (chunk.choices[0].delta.content for chunk in chunks if chunk.choices)
        assert next(filter(None, deltas)) == "At"
        assert transcript(program) == [("user", "Hi")]
        llm.release()
        *rest, last = chunks
        assert "".join(chunk.choices[0].delta.content or "" for chunk in rest) == " last."
        assert (last.choices, last.usage.total_tokens) == ([], 11)
    assert llm.requests[-1].body["stream_options"] == options["stream_options"]
    assert transcript(program) == [("user", "Hi"), ("assistant", "At last.")]


@pytest.mark.long
def test_interrupted_answer_is_an_error_and_is_returned_once_later(
    client_of: ClientOf, program: Program, llm: LLMServer
) -> None:
    llm.answers = [streamed("At", "", wait=True, whole=False)]
    client = client_of(program)
    with ask(client, "Hi", stream=True) as stream:
        deltas = (chunk.choices[0].delta.content for chunk in stream)
        assert next(filter(None, deltas)) == "At"
        llm.release()
        with pytest.raises(openai.APIError) as broken:
            list(deltas)
    assert broken.value.code == "reply_interrupted"
    swept_until(lambda: transcript(program) == [("user", "Hi"), ("assistant", "Noted.")])


def swept_until(is_so: Callable[[], bool]) -> None:
    """Wait for the condition while sweeps run, as beat enqueues them."""

    def swept() -> bool:
        jobs.sweep()
        return is_so()

    eventually(swept)


@pytest.mark.long
def test_a_killed_worker_ends_the_stream_and_the_reply_is_recorded_once(
    client_of: ClientOf, program: Program, llm: LLMServer, workers: Workers
) -> None:
    llm.answers = [streamed("At", " last.", wait=True)]
    with ask(client_of(program), "Hi", stream=True) as stream:
        deltas = (chunk.choices[0].delta.content for chunk in stream)
        assert next(filter(None, deltas)) == "At"
        workers.kill()
        llm.release()
        workers.start()
        with ThreadPoolExecutor(1) as beside:
            rest = beside.submit(list, deltas)
            swept_until(rest.done)
        with pytest.raises(openai.APIError) as broken:
            rest.result()
    assert broken.value.code == "reply_interrupted"
    swept_until(lambda: transcript(program) == [("user", "Hi"), ("assistant", "Noted.")])
    assert len(llm.requests) == 2


@pytest.mark.long
def test_the_clients_own_tools_are_called_by_it(
    client_of: ClientOf, program: Program, llm: LLMServer
) -> None:
    call = {"id": "c0", "function": {"name": "weather", "arguments": '{"place": "Porto"}'}}
    delta = {"tool_calls": [{"index": 0, **call}]}
    llm.answers = [
        streamed("Let me look.", delta),
        Answer({"choices": [{"message": {"content": None, "tool_calls": [call]}}]}),
        streamed('{"sky": ', '"blue"}'),
    ]
    client, tools = client_of(program), [pydantic_function_tool(Place, name="weather")]
    messages: list[Any] = [{"role": "user", "content": "How is the weather?"}]
    common: Any = {"model": "ada", "user": "maria", "messages": messages, "tools": tools}
    for _ in range(2):
        completion = read_whole(client, stream=len(messages) == 1, **common)
        message = completion.choices[0].message
        assert completion.choices[0].finish_reason == "tool_calls"
        (tool_call,) = message.tool_calls
        assert json.loads(tool_call.function.arguments) == {"place": "Porto"}
        messages += [
            message.model_dump(exclude_none=True, exclude={"parsed"}),
            {"role": "tool", "tool_call_id": tool_call.id, "content": "22 degrees"},
        ]
    with client.chat.completions.stream(**common, response_format=Sky) as stream:
        (choice,) = stream.get_final_completion().choices
    assert choice.message.parsed == Sky(sky="blue")
    assert transcript(program) == [
        ("user", "How is the weather?"),
        ("assistant", '{"sky": "blue"}'),
    ]
    with tenant_scope(program.tenant.id):
        calls = ToolCall.objects.order_by("round").values_list("name", "result")
        assert list(calls) == [("weather", "22 degrees")] * 2


class Place(BaseModel):
    place: str


class Sky(BaseModel):
    sky: str


def read_whole(client: OpenAI, *, stream: bool, **parameters: Any) -> Any:
    if not stream:
        return client.chat.completions.create(**parameters)
    with client.chat.completions.stream(**parameters) as events:
        deltas = [event.delta for event in events if event.type == "content.delta"]
        assert "".join(deltas) == "Let me look."
        return events.get_final_completion()
