"""Addresses of the admin without a link to them."""

from collections.abc import Callable
from itertools import cycle
from urllib.parse import quote

import pytest
from django.test import Client

from tests.konstruct.conftest import Program

pytestmark = pytest.mark.django_db

ODD_ADDRESSES = (
    "r/1/1/",
    "r/1/x/",
    f"r/{'9' * 30}/1/",
    "r/1/%00/",
    f"r/2/{quote('ä')}/",
    "r/1/%ED%A0%80/",
)

ODD_VALUES = ("%ED%A0%80", "%FF", "%00", "%E2%80%AE", "x" * 4000, "%F0%9F%A6%8A")


@pytest.fixture(scope="module")
def program_a(module_program: Program) -> Program:
    return module_program


@pytest.mark.long
@pytest.mark.parametrize("address", ODD_ADDRESSES)
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
def test_no_parameter_is_a_500(
    program_a: Program, browser: Callable[..., Client], page: str
) -> None:
    client = browser(program_a.tenant)
    agent = program_a.agent.pk
    turns = cycle(ODD_VALUES)
    for query in (
        "user={odd}", "agent={odd}&user=maria", f"agent={agent}&user={{odd}}", "q={odd}",
        f"agent={agent}&user=maria&q={{odd}}", "after={odd}", "why={odd}", "p={odd}", "{odd}=1",
    ):  # fmt: skip
        address = f"/admin/{page}?{query.format(odd=next(turns))}"
        assert client.get(address).status_code < 500, address
