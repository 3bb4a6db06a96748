"""A deleted tenant in its grace period: every channel is closed, and no job is lost."""

from django.test import Client

from konstruct.channels.models import Arrival
from konstruct.orchestrator import tasks as tasks
from konstruct.orchestrator.replies import REPLIES
from memory.models import Message
from tenants.context import tenant_scope
from tenants.models import Job
from tenants.schemas import provisioning
from tests.jobs import claimable, work
from tests.konstruct.conftest import MESSAGES, Post, Program
from tests.servers.slack import mention

WAYS = {
    MESSAGES: {"agent": "ada", "user_id": "maria", "content": "Hi"},
    "/v1/chat/completions": {
        "model": "ada",
        "user": "maria",
        "messages": [{"role": "user", "content": "Hi"}],
    },
    "/mem0/v3/memories/add/": {"messages": "I drink tea.", "user_id": "maria"},
    "/mcp": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
}


def statuses(program: Program, *, host: str) -> dict[str, int]:
    at_host = Program(program.tenant, program.agent, program.key, host)
    return {path: at_host.post(path, body).status_code for path, body in WAYS.items()}


def test_a_deleted_tenant_is_refused_everywhere_and_loses_no_job(
    connected: Program, program_b: Program, post: Post
) -> None:
    tenant = connected.tenant
    sent = connected.send("What waits?")
    assert sent.status_code == 202
    with tenant_scope(tenant.id):
        waiting = set(Job.objects.values_list("kind", "key"))
        messages = Message.objects.count()
    provisioning.request_deletion(tenant)

    for host in ("localhost", "tenant-a.localhost"):
        assert set(statuses(connected, host=host).values()) == {403}
    client = Client(headers={"Host": "tenant-a.localhost"})
    assert client.get("/admin/login/").status_code == 403
    assert post(mention("T1", "Hello")).status_code == 200  # Slack would repeat an error
    assert program_b.send().status_code == 202

    assert len(claimable(REPLIES)) == 1
    work("reply")
    with tenant_scope(tenant.id):
        assert set(Job.objects.values_list("kind", "key")) == waiting
        assert (Message.objects.count(), Arrival.objects.count()) == (messages, 0)

    provisioning.restore_tenant(tenant)
    work("reply")
    with tenant_scope(tenant.id):
        reply = Message.objects.get(in_reply_to=sent.json()["id"])
        assert (reply.role, reply.content) == ("assistant", "Noted.")
        assert not Job.objects.filter(kind="reply").exists()
    assert connected.send("And now?").status_code == 202
