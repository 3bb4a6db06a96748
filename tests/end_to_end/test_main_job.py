"""The main job: a message is answered with what the agent remembers."""

from tests.end_to_end.deployment import Deployment, eventually


def test_a_message_is_answered_with_what_was_said_long_ago(deployment: Deployment) -> None:
    tenant = deployment.tenants[0]
    with tenant.client() as client:
        told = client.post(
            "/api/v1/messages/?wait=60",
            json={
                "agent": "ada",
                "user_id": "nora",
                "name": "Nora",
                "thread_id": "spring",
                "content": "I have adopted a beagle called Rex.",
            },
        )
        assert (told.status_code, told.json()["reply"]["content"]) == (200, "Noted.")
        for number in range(10):
            tenant.wait_for(tenant.send(f"Small talk, part {number}.", user_id="nora"))
        eventually(tenant.is_settled, "not everything is embedded")
        asked = client.post(
            "/api/v1/messages/?wait=60",
            json={"agent": "ada", "user_id": "nora", "content": "What is my beagle called?"},
        )
    assert asked.json()["status"] == "answered"
    prompt = deployment.llm.requests[-1].body["messages"]
    assert prompt[1]["content"].startswith("Relevant context from past conversations:")
    assert "Nora: I have adopted a beagle called Rex." in prompt[1]["content"]
    tenant.assert_whole(users=("nora",))
