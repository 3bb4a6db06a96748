"""Every command of `manage.py help` is documented, or refused with the command to use instead."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command, get_commands, load_command_class

from tenants.management.refused_command import RefusedCommand

PAGE = (Path(settings.BASE_DIR) / "docs" / "commands.md").read_text()
OFFERED = get_commands()


def documented(heading: str) -> list[str]:
    """Return the commands in the first column of a section's table."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def refused() -> list[str]:
    return sorted(
        name
        for name, app in OFFERED.items()
        if isinstance(load_command_class(app, name), RefusedCommand)
    )


def test_every_command_has_one_row() -> None:
    rows = documented("Konstruct") + documented("Django") + documented("Refused")
    assert sorted(rows) == sorted(OFFERED)


def test_each_table_has_its_own() -> None:
    commands = {name for name, app in OFFERED.items() if app.startswith(("konstruct", "tenants"))}
    assert sorted(documented("Refused")) == refused()
    assert sorted(documented("Konstruct")) == sorted(commands.difference(refused()))


def test_commands_of_django_tenants_are_replaced_or_refused() -> None:
    assert "django_tenants" not in OFFERED.values()


@pytest.mark.parametrize("name", refused())
def test_refused_command_prints_the_right_command_in_one_line(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CommandError) as error:
        call_command(name)
    line = str(error.value)
    assert line.startswith(f"{name} is refused: ")
    assert error.value.returncode == 2
    assert "\n" not in line
    named = set(re.findall(r"manage\.py (\w+)", line))
    assert named <= OFFERED.keys() - set(refused())
    assert named or "make test" in line or "operators' admin" in line
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["create_tenant_superuser", "clone_tenant", "rename_schema"])
def test_options_of_other_commands_are_refused(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = load_command_class(OFFERED[name], name)
    for typed in (["--username", "x", "--schema=a"], ["a", "b", "--no-input"]):
        with pytest.raises(SystemExit) as ended:
            command.run_from_argv(["manage.py", name, *typed])
        assert ended.value.code == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"CommandError: {name} is refused: ")
