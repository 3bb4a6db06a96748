"""One deployment for all end-to-end tests, because its start is slower than each test."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.deployment import Deployment
from tests.servers.llm import Answer, LLMServer
from tests.servers.otlp import Collector
from tests.servers.slack import slack_server


@pytest.fixture(scope="package")
def collector() -> Iterator[Collector]:
    """The collector that receives the spans of the deployment."""
    with Collector() as running:
        yield running


@pytest.fixture(scope="package")
def shared_deployment(
    tmp_path_factory: pytest.TempPathFactory, collector: Collector
) -> Iterator[Deployment]:
    """Processes that the tests of this package share. Half of the requests are traced. Webhooks may
    reach servers on loopback."""
    with LLMServer() as llm, slack_server() as slack:
        home = tmp_path_factory.mktemp("deployment") / "home"
        deployment = Deployment(home, llm, slack=slack)
        deployment.environment |= {
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
            "OTEL_TRACES_SAMPLER_ARG": "0.5",
            "WEBHOOK_HOSTS": "127.0.0.1",
        }
        with deployment.running():
            yield deployment


@pytest.fixture
def deployment(shared_deployment: Deployment) -> Deployment:
    """The deployment. Its language model answers "Noted.", and no process has an order to die."""
    llm = shared_deployment.llm
    llm.forget()
    llm.default = Answer({"content": "Noted."})
    assert shared_deployment.open_orders() == []
    return shared_deployment
