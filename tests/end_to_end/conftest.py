"""One deployment for all end-to-end tests, because its start is slower than each test."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.deployment import Deployment
from tests.servers.llm import Answer, LLMServer
from tests.servers.slack import slack_server


@pytest.fixture(scope="package")
def shared_deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Processes that the tests of this package share."""
    with LLMServer() as llm, slack_server() as slack:
        home = tmp_path_factory.mktemp("deployment") / "home"
        with Deployment(home, llm, slack=slack).running() as deployment:
            yield deployment


@pytest.fixture
def deployment(shared_deployment: Deployment) -> Deployment:
    """The deployment. Its language model answers "Noted.", and no process has an order to die."""
    llm = shared_deployment.llm
    llm.forget()
    llm.default = Answer({"content": "Noted."})
    assert shared_deployment.open_orders() == []
    return shared_deployment
