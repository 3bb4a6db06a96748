"""Functions that create, change and find agents, with their versions."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, Final
from uuid import UUID

from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import IntegrityError
from django.db.models import Q

from konstruct.orchestrator import exceptions, usage
from konstruct.orchestrator.models import Agent, AgentVersion, SavedQuestion
from konstruct.orchestrator.models.agents import UUID_TEXT, AgentQuerySet
from memory.arguments import is_unicode
from memory.models.facts import SYSTEM, Author
from tenants import context, jobs, transaction
from tenants.audit.changes import row_state

# Of Postgres' integer.
MAX_INTEGER: Final = 2**31 - 1
# Names of agents in an error.
MAX_NAMES: Final = 20
# A changed agent is asked its saved questions again. The key is the id of the agent.
QUESTIONS: Final = jobs.JobKind(
    name="questions",
    # Given by name: the task asks agents, which needs this module.
    do="konstruct.orchestrator.dry_runs.ask_questions",
    queue="extractions",
    max_attempts=5,
    first_backoff=60.0,
    max_backoff=6 * 3600.0,
)
BEFORE_VERSIONS: Final = "The agent before its first change that was kept."


def create_agent(
    *, tenant_id: UUID, name: str, author: Author = SYSTEM, note: str = "", **fields: Any
) -> Agent:
    """Create an agent, with its first version.

    Args:
        tenant_id: the tenant.
        name: the name.
        author: the author of the version.
        note: a note of the author for the version.
        fields: further fields of `Agent`.

    Raises:
        AgentInvalid: a field is invalid, or the name is taken.
        QuotaExceeded: the tenant's storage is full.
    """
    with context.tenant_scope(tenant_id):
        usage.require_storage()
        agent = Agent(tenant_id=tenant_id, name=name, **fields)
        with _validation(agent):
            agent.save(force_insert=True)
            _add_version(agent.pk, 1, settings_of(agent), {}, author=author, note=note)
    return agent


def update_agent(
    agent: Agent,
    *,
    author: Author = SYSTEM,
    note: str = "",
    restores: int | None = None,
    **fields: Any,
) -> Agent:
    """Change an agent of the current tenant, and store its settings as a version.

    There is no version if no value changes. A recall preset clears the agent's own thresholds.

    Args:
        agent: the agent. The values are set on it.
        author: the author of the version.
        note: a note of the author for the version.
        restores: the number of the version that is restored.
        fields: the new values, by the names of fields of `Agent`.

    Raises:
        AgentInvalid: a field is invalid, or the name is taken.
        QuotaExceeded: the tenant's storage is full, and more than `is_active` changes.
    """
    fields = _set_fields(agent, fields)
    if not fields:
        return agent
    with _validation(agent):
        stored = Agent.objects.select_for_update().get(pk=agent.pk)
        before = settings_of(stored)
        agent.save(update_fields=list(fields))
        values = settings_of(agent)
        after = {**before, **{name: values[name] for name in fields}}
        if after != before:
            if after != {**before, "is_active": after["is_active"]}:
                usage.require_storage()  # an agent can be made inactive nevertheless
            last = AgentVersion.objects.filter(agent_id=agent.pk).order_by("-number").first()
            number = 1 if last is None else last.number
            if last is None:
                _add_version(agent.pk, 1, before, {}, author=SYSTEM, note=BEFORE_VERSIONS)
            _add_version(
                agent.pk, number + 1, after, before, author=author, note=note, restores=restores
            )
            if SavedQuestion.objects.filter(agent_id=agent.pk).exists():
                QUESTIONS.enqueue_again(agent.pk)
    return agent


def load_agent_for_tenant(tenant_id: UUID | str, agent_id: UUID | str) -> Agent:
    """Return an agent of a tenant, with the number of its version, also if it is inactive.

    The pipeline loads the agent of each message by it.

    Raises:
        AgentNotFound: the tenant has no such agent.
    """
    with context.tenant_scope(tenant_id):
        agent = Agent.objects.with_version().filter(pk=agent_id).first()
    if agent is None:
        raise exceptions.AgentNotFound(f"Agent {agent_id} does not exist any more.")
    return agent


def draft_of(agent: Agent, **fields: Any) -> Agent:
    """Return an unsaved copy of an agent with other values.

    Args:
        agent: the agent, which is not changed.
        fields: the other values, as for `update_agent`.

    Raises:
        AgentInvalid: a field is invalid.
    """
    draft = copy(agent)
    _set_fields(draft, fields)
    with _validation(draft):
        return draft


def restore_agent(agent: Agent, number: int, *, author: Author, note: str = "") -> Agent:
    """Set the settings of an agent to those of one of its versions, and store a new version.

    Settings that did not exist yet at the time of the version are not changed.

    Raises:
        RowNotFound: the agent has no version with this number.
        AgentInvalid: a setting is not valid any more, or the name is taken.
    """
    versions = AgentVersion.objects.filter(agent_id=agent.pk, number=min(number, MAX_INTEGER))
    version = versions.first()
    if version is None:
        raise exceptions.RowNotFound(f"{agent.name} has no version {number}.")
    current = settings_of(agent)
    fields = {name: version.settings[name] for name in current if name in version.settings}
    return update_agent(agent, author=author, note=note, restores=number, **fields)


def settings_of(agent: Agent) -> dict[str, Any]:
    """Return the settings of an agent that its versions store, as JSON."""
    shown = row_state(agent).fields
    return {name: value for name, value in shown.items() if name not in ("id", "created_at")}


def _set_fields(agent: Agent, fields: dict[str, Any]) -> dict[str, Any]:
    """Set the values on the agent; return all values that were set, with the implied ones."""
    if "recall_preset" in fields:
        fields = {"recall_open_at": None, "recall_keep_at": None, **fields}
    for name, value in fields.items():
        setattr(agent, name, value)
    return fields


def _add_version(
    agent_id: UUID,
    number: int,
    settings: Mapping[str, Any],
    previous: Mapping[str, Any],
    *,
    author: Author,
    note: str,
    restores: int | None = None,
) -> None:
    AgentVersion.objects.create(
        agent_id=agent_id,
        number=number,
        settings=settings,
        changed=sorted(name for name in previous if previous[name] != settings[name]),
        restores=restores,
        note=note,
        author=author.address,
        author_name=author.name,
    )


@contextmanager
def _validation(agent: Agent) -> Iterator[None]:
    """Validate the agent, and run the block in a transaction. Raises AgentInvalid."""
    try:
        agent.full_clean()
        with transaction.atomic():
            yield
    except ValidationError as error:
        if "\0" not in agent.name:  # Postgres refuses a query with NUL
            _refuse_taken_name(agent, error)
        is_contradictory = error.message_dict.keys() == {NON_FIELD_ERRORS}
        kind = exceptions.AgentContradictory if is_contradictory else exceptions.AgentInvalid
        raise kind.of(error) from error
    except IntegrityError as error:  # the name was taken after the validation
        _refuse_taken_name(agent, error)
        raise


def _refuse_taken_name(agent: Agent, error: Exception) -> None:
    if Agent.objects.filter(name=agent.name).exclude(pk=agent.pk).exists():
        raise exceptions.AgentNameTaken(
            f"This tenant has an agent of that name already: {agent.name!r}."
        ) from error


def find_agent(
    name_or_id: str, *, active: bool = False, among: AgentQuerySet | None = None
) -> Agent:
    """Return the agent of the current tenant with this name or id.

    Args:
        name_or_id: the name or id.
        active: whether the agent must be active.
        among: agents, one of which it must be; None: all.

    Raises:
        AgentNotFound: there is none. The message names agents that there are.
    """
    agents = Agent.objects.all() if among is None else among
    agents = agents.filter(is_active=True) if active else agents
    is_storable = is_unicode(name_or_id) and "\0" not in name_or_id
    agent = agents.named(name_or_id).first() if is_storable else None
    if agent is None:
        wanted = "active agent" if active else "agent"
        raise exceptions.AgentNotFound(
            f"No {wanted} has the name or id {name_or_id!r}. Agents are made in the tenant's admin "
            f"or by POST /api/v1/agents/. The agents are: {agent_names(agents) or 'none yet'}."
        )
    return agent


def agent_names(agents: AgentQuerySet) -> str:
    """Return the names of agents for an error or a hint. Inactive ones come last, and say it."""
    listed = agents.order_by("-is_active", "name").values_list("name", "is_active")[:MAX_NAMES]
    return ", ".join(f"{name!r}{'' if is_active else ' (inactive)'}" for name, is_active in listed)


def find_agents(names_or_ids: Iterable[str]) -> dict[str, Agent]:
    """Return the agents of the current tenant with these names or ids, by the given name or id.

    One query. Names and ids without an agent are left out.
    """
    names_or_ids = set(names_or_ids)
    ids = {text: UUID(text) for text in names_or_ids if UUID_TEXT.fullmatch(text)}
    names = names_or_ids - ids.keys()
    agents: dict[UUID | str, Agent] = {}
    for agent in Agent.objects.filter(Q(name__in=names) | Q(pk__in=ids.values())):
        agents[agent.pk] = agents[agent.name] = agent
    found = {text: agents.get(ids.get(text, text)) for text in names_or_ids}
    return {text: agent for text, agent in found.items() if agent is not None}
