"""The heading of a list is its title in the menu."""

from collections.abc import Callable

from django.test import Client

from tests.konstruct.conftest import Program


def test_a_list_is_called_as_in_the_menu(
    program_a: Program, browser: Callable[..., Client], operator: Client
) -> None:
    client = browser(program_a.tenant)
    for address, title, german in (
        ("auth/user", "Team", "Team"),
        ("auth/group", "Roles", "Rollen"),
        ("memory/recallevent", "Recalls", "Abrufe"),
        ("orchestrator/notification", "Sent notifications", "Gesendete Benachrichtigungen"),
    ):
        assert f"<bdi>{title}</bdi>" in client.get(f"/admin/{address}/").text
        page = client.get(f"/admin/{address}/", headers={"Accept-Language": "de"}).text
        assert f"<bdi>{german}</bdi>" in page
    assert "<bdi>Operators</bdi>" in operator.get("/admin/auth/user/").text
