"""The main job: a message is answered with the agent's memory."""

import json
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.end_to_end.deployment import PROJECT, Deployment, eventually
from tests.servers.llm import Answer


def test_message_is_answered_from_an_old_conversation(deployment: Deployment) -> None:
    tenant = deployment.tenants[0]
    with tenant.client() as client:
        answer = client.post(
            "/api/v1/messages/?wait=60",
            json={
                "agent": "ada",
                "user_id": "nora",
                "name": "Nora",
                "thread_id": "spring",
                "content": "I have adopted a beagle called Rex.",
            },
        )
        assert (answer.status_code, answer.json()["reply"]["content"]) == (200, "Noted.")
        for number in range(10):
            tenant.wait_for(tenant.send(f"Small talk, part {number}.", user_id="nora"))
        eventually(tenant.is_settled, "not everything is embedded")
        search_answer = client.post(
            "/api/v1/messages/?wait=60",
            json={"agent": "ada", "user_id": "nora", "content": "What is my beagle called?"},
        )
    assert search_answer.json()["status"] == "answered"
    prompt = deployment.llm.requests[-1].body["messages"]
    assert prompt[1]["content"].startswith("Relevant context from past conversations:")
    assert "Nora: I have adopted a beagle called Rex." in prompt[1]["content"]
    tenant.assert_whole(users=("nora",))


def test_a_program_waits_until_its_messages_are_indexed(deployment: Deployment) -> None:
    tenant = deployment.tenants[0]
    deployment.llm.answers = [Answer({"content": "At last."}, wait=True)]
    message = {"agent": "ada", "user_id": "kim", "content": "My parrot is called Kiwi."}
    line = {"role": "assistant", "content": "You sold the piano."}
    with tenant.client() as client:
        sent = client.post("/api/v1/messages/?wait=60&wait_for=indexed", json=message)
        assert (sent.status_code, sent.json()["status"]) == (202, "queued")
        imported = client.post(
            "/api/v1/messages/import/?wait=60",
            json={"agent": "ada", "user_id": "kim", "messages": [line]},
        )
        assert [sent.json()["indexed"], imported.json()["indexed"]] == [True, True]
        query = {"agent": "ada", "user_id": "kim", "query": "parrot piano", "gate": False}
        found = client.post("/api/v1/memories/search/", json=query).json()["results"]
    assert {memory["content"] for memory in found} == {message["content"], line["content"]}
    deployment.llm.release()
    tenant.wait_for(sent.json()["id"])
    tenant.assert_whole(users=())


def test_a_message_sent_many_times_at_once_is_one_message_with_one_reply(
    deployment: Deployment,
) -> None:
    tenant = deployment.tenants[0]

    def send(number: int) -> tuple[int, dict[str, Any]]:
        with tenant.client() as client:
            response = client.post(
                "/api/v1/messages/?wait=60",
                json={"agent": "ada", "user_id": "zoe", "content": "Did you get this?"},
                headers={"Idempotency-Key": "sent-by-a-nervous-client"},
            )
        return response.status_code, response.json()

    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(send, range(8)))
    assert [status for status, _ in answers] == [200] * 8
    # The message may be indexed between two answers.
    assert len({json.dumps({**document, "indexed": None}) for _, document in answers}) == 1
    assert answers[0][1]["reply"]["content"] == "Noted."
    assert len(deployment.llm.requests) == 1
    tenant.assert_whole(users=("zoe",))


def test_concurrent_threads_have_the_same_order_in_window_and_transcript(
    deployment: Deployment,
) -> None:
    tenant = deployment.tenants[0]
    for _ in range(5):
        deployment.llm.forget()
        deployment.llm.answers = [Answer({"content": "Both."}, wait=True)] * 2
        sent = [tenant.send("Now.", user_id="gil", thread_id=f"at once {n}") for n in range(2)]
        deployment.llm.wait_for_requests(2)
        deployment.llm.release()
        for message_id in sent:
            tenant.wait_for(message_id)
    tenant.assert_whole(users=("gil",))


def test_many_may_wait_while_others_are_served(deployment: Deployment) -> None:
    tenant = deployment.tenants[0]
    deployment.llm.answers = [Answer({"content": "At last."}, wait=True)] * 2
    busy = [tenant.send("Think.", user_id="ivy", thread_id=f"wait {number}") for number in range(2)]
    deployment.llm.wait_for_requests(2)

    def wait(number: int) -> str:
        with tenant.client() as client:
            response = client.get(f"/api/v1/messages/{busy[number % 2]}/?wait=60")
        return str(response.json()["status"])

    with ThreadPoolExecutor(12) as threads:
        waiting = [threads.submit(wait, number) for number in range(12)]
        with tenant.client() as client:
            assert client.get("/api/v1/messages/").status_code == 200
            assert client.get("/health/live").status_code == 200
        assert not any(one.done() for one in waiting)
        deployment.llm.release()
        assert [one.result() for one in waiting] == ["answered"] * 12
    tenant.assert_whole(users=("ivy",))


BOT = PROJECT / "docs" / "examples" / "support_bot.py"


def test_a_person_behind_another_program_answers_the_user(deployment: Deployment) -> None:
    tenant = deployment.tenants[0]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/"
    environment = {
        **deployment.environment,
        "KONSTRUCT_URL": deployment.url,
        "KONSTRUCT_KEY": tenant.key,
    }

    def start(*arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, str(BOT), *arguments],
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def lines(process: "subprocess.Popen[str]", until: str) -> list[str]:
        read = []
        while not read or read[-1] != until:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, read
            read.append(line.strip())
        return read

    with start("desk", url) as desk:
        try:
            lines(desk, "waiting for users")
            with start("ask", "ben", "I want to talk to a human") as first:
                assert "person" in first.communicate(timeout=120)[0]
            shown = lines(desk, "answer ben:")
            assert "user: I want to talk to a human" in shown
            with start("ask", "ben", "My parcel is lost.") as second:
                held = "SELECT 1 FROM tenants_job WHERE kind = 'reply' AND held_for = 'person'"
                eventually(lambda: tenant.rows(held), "the message is not held")
                assert desk.stdin is not None
                desk.stdin.write("I have found it.\n")
                desk.stdin.flush()
                lines(desk, "answered")
                said = second.communicate(timeout=120)[0]
            assert said == "Eva: I have found it.\n"
        finally:
            desk.terminate()
