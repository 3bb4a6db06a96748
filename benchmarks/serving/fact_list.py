"""Compare the list of facts of the API with a plain view of Django REST framework.

    python -m benchmarks.serving.fact_list [--requests 100]

Ours: `GET /facts/?limit=50` through all middleware, with an API key, its limits and the access log.
Plain: a `ListAPIView` with a `ModelSerializer` over the same 50 rows, called without a route, a key
or middleware. Both run in this process, alternating: the ratio counts.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from uuid import UUID

from benchmarks.tools.throwaway import set_up, throwaway_tenant

PAGE = 50
STORED = 2 * PAGE
WARM_UP = 10


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100, help="requests of each kind")
    count = parser.parse_args().requests
    set_up()
    with throwaway_tenant() as tenant_id:
        views = {"ours": our_view(tenant_id), "plain": plain_view(tenant_id)}
        milliseconds: dict[str, list[tuple[float, float]]] = {name: [] for name in views}
        for number in range(WARM_UP + count):
            for name, view in views.items():
                start, cpu = time.perf_counter(), time.process_time()
                view()
                if number >= WARM_UP:
                    measured = (time.perf_counter() - start, time.process_time() - cpu)
                    milliseconds[name].append((measured[0] * 1000, measured[1] * 1000))
    medians = {
        name: [statistics.median(kind) for kind in zip(*runs, strict=True)]
        for name, runs in milliseconds.items()
    }
    for name, (total, cpu) in medians.items():
        print(f"{name:6} {total:7.1f} ms, CPU {cpu:6.1f} ms")
    ratios = [ours / plain for ours, plain in zip(medians["ours"], medians["plain"], strict=True)]
    print(f"ratio  {ratios[0]:7.2f}     CPU {ratios[1]:6.2f}")


def our_view(tenant_id: UUID) -> Callable[[], None]:
    """Store facts. Return the request of the API as a function."""
    from django.test import Client

    from konstruct.api.auth.keys import issue_key
    from konstruct.orchestrator.agents import create_agent

    create_agent(tenant_id=tenant_id, name="ada", system_prompt="You are Ada.")
    _, key = issue_key(tenant_id=tenant_id, name="benchmark")
    client = Client(headers={"Authorization": f"Bearer {key}", "Host": "localhost"})
    for first in range(0, STORED, PAGE):
        facts = [
            {"content": f"Lives in house {number}.", "user_id": "u", "agent": "ada"}
            for number in range(first, first + PAGE)
        ]
        stored = client.post(
            "/api/v1/facts/batch/", json.dumps({"facts": facts}), content_type="application/json"
        )
        assert stored.status_code < 300, stored.content

    def request() -> None:
        answer = client.get(f"/api/v1/facts/?user_id=u&limit={PAGE}")
        assert len(answer.json()["results"]) == PAGE, answer.content

    return request


def plain_view(tenant_id: UUID) -> Callable[[], None]:
    """Return the plain view's request as a function."""
    from rest_framework import generics, pagination, renderers, serializers
    from rest_framework.test import APIRequestFactory

    from memory.models import MemoryEntry
    from tenants.context import tenant_scope

    class FactSerializer(serializers.ModelSerializer):
        class Meta:
            model = MemoryEntry
            exclude = ("embedding",)

    class FactList(generics.ListAPIView):
        queryset = MemoryEntry.objects.defer("embedding").order_by("-created_at")
        serializer_class = FactSerializer
        pagination_class = pagination.LimitOffsetPagination
        renderer_classes = [renderers.JSONRenderer]
        authentication_classes = ()
        permission_classes = ()
        throttle_classes = ()

    view, requests = FactList.as_view(), APIRequestFactory()

    def request() -> None:
        with tenant_scope(tenant_id):
            answer = view(requests.get(f"/facts/?limit={PAGE}", HTTP_HOST="localhost")).render()
        assert len(json.loads(answer.content)["results"]) == PAGE, answer.content

    return request


if __name__ == "__main__":
    main()
