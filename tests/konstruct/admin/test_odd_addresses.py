"""Addresses of the admin that nobody links to."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client

from tests.konstruct.conftest import Program

pytestmark = pytest.mark.django_db

ODD = ("r/1/1/", "r/1/x/", f"r/{'9' * 30}/1/", "r/1/%00/", f"r/2/{quote('ä')}/", "r/1/%ED%A0%80/")


@pytest.fixture(scope="module")
def program_a(standing_program: Program) -> Program:
    return standing_program


@pytest.mark.parametrize("address", ODD)
def test_a_row_has_no_public_page(
    program_a: Program, browser: Callable[..., Client], operator: Client, address: str
) -> None:
    for client in (browser(program_a.tenant), operator):
        assert client.get(f"/admin/{address}").status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    ["conversations/", "memories/", "people/", "people/person/", "window/", "window/clear/",
     "people/person/erase/", "people/person/export/", "memory/message/", "audit/accessevent/"],
)  # fmt: skip
@pytest.mark.parametrize(
    "odd", ["%ED%A0%80", "%FF", "%00", "%E2%80%AE", "x" * 4000, "%F0%9F%A6%8A"]
)
def test_no_parameter_is_a_500(
    program_a: Program, browser: Callable[..., Client], page: str, odd: str
) -> None:
    client = browser(program_a.tenant)
    agent = program_a.agent.pk
    for query in (
        f"user={odd}", f"agent={odd}&user=maria", f"agent={agent}&user={odd}", f"q={odd}",
        f"agent={agent}&user=maria&q={odd}", f"after={odd}", f"why={odd}", f"p={odd}", f"{odd}=1",
    ):  # fmt: skip
        assert client.get(f"/admin/{page}?{query}").status_code < 500
