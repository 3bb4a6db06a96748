"""Every command of `manage.py help` is documented, or refused with the command to use instead."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import get_commands

import manage
from manage import REFUSED

PAGE = (Path(settings.BASE_DIR) / "docs" / "commands.md").read_text()
OFFERED = get_commands()


def documented(heading: str) -> list[str]:
    """Return the commands in the first column of a section's table."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def test_every_command_has_one_row() -> None:
    rows = documented("Konstruct") + documented("Django") + documented("Refused")
    assert sorted(rows) == sorted(OFFERED)


def test_each_table_has_its_own() -> None:
    commands = {name for name, app in OFFERED.items() if app.startswith(("konstruct", "tenants"))}
    assert sorted(documented("Refused")) == sorted(REFUSED)
    assert sorted(documented("Konstruct")) == sorted(commands)


def test_commands_of_django_tenants_are_replaced_or_refused() -> None:
    assert {name for name, app in OFFERED.items() if app == "django_tenants"} <= REFUSED.keys()


@pytest.mark.parametrize("name", REFUSED)
def test_refused_command_prints_the_right_command_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["manage.py", name, "--username", "x", "--schema=a"])
    with pytest.raises(SystemExit) as ended:
        manage.main()
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"CommandError: {name} is refused: ")
    named = set(re.findall(r"manage\.py (\w+)", line))
    assert named <= OFFERED.keys() - REFUSED.keys()
    assert named or "make test" in line or "operators' admin" in line
