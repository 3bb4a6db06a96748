"""The declaration of personal data in each table, on its model.

Erasure, export, merge, retention and `verify_memory` read these declarations. A model without one
fails `manage.py check`; a table that only Postgres knows stops an erasure, and fails a test.
Tables without a model of ours (of Django, of LangGraph) are declared on `KonstructConfig`.

Conditions and statements are SQL, with these parameters:

========== ================================================ =====================================
use        parameters                                       meaning
========== ================================================ =====================================
erasure    tenant, users, agent, scopes, threads,           all ids of the person; the one agent
           sessions, names                                  or NULL; numbers of their scopes;
                                                            expressions for texts that name them
export     user, threads, model                             one user's id or NULL
merge      from, to, by, and see `Merge`                    the old and the new id of the user
retention  agent, before, users                             an agent, and the oldest time to keep
========== ================================================ =====================================
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from graphlib import TopologicalSorter
from typing import Any, Final

from django.apps import apps

# Rows of one user, or of all users if no user is given.
OF_USER: Final = "(%(user)s::text IS NULL OR user_id = %(user)s)"
OF_MESSAGES_OF_USER: Final = f"message_id IN (SELECT id FROM memory_message WHERE {OF_USER})"  # noqa: S608
# Rows that may hold data of any person.
OF_EVERY_PERSON: Final = "tenant_id = %(tenant)s"
PUBLIC: Final = "public"

_COLUMN: Final = re.compile(r"[a-z_]+")
_TABLES: Final = """
    SELECT relname FROM pg_class
    WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace ORDER BY relname
"""
# Columns with a name that is usual for a user's id.
_USER_COLUMNS: Final = """
    SELECT relname, attname FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relkind IN ('r', 'p') AND relnamespace = %s::regnamespace
      AND attnum > 0 AND NOT attisdropped
      AND atttypid IN ('text'::regtype, 'varchar'::regtype, 'jsonb'::regtype, 'uuid'::regtype)
      AND attname ~ '(^|_)(user|person)(_id)?$|^own_id$'
    ORDER BY relname, attname
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """How rows are written into an archive and read from one."""

    kind: str
    """The name of these rows in an archive."""
    position: int
    """Place among the kinds. The digest of an archive depends on it: a new kind is the last."""
    key: tuple[str, ...] = ("id",)
    """Columns by which a row is recognised when it is imported again."""
    order: str = ""
    """ORDER BY of the export; the key if empty. Equal memories must give equal digests."""
    without: tuple[str, ...] = ()
    """Columns that are not exported, beside tenant_id: numbers that an insert gives."""
    where: str = ""
    """Which rows; if empty, those that `subject` or `message` assign to the user."""
    select: str = ""
    """A statement that gives one JSON object a row, instead of the columns of the table."""
    insert: tuple[str, ...] = ()
    """Statements that insert %(rows)s (a JSON array), instead of the columns of the table."""
    is_mutable: bool = False
    """People or workers change such rows: only the key must be the same when it is imported."""
    with_new_messages: bool = False
    """Rows are imported only together with a message that is new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """How rows move from one user's id to another's, beyond setting `subject`.

    If there are statements, no others are run. A statement for messages has the parameters agent,
    ids, numbers, from_scope and to_scope; one for an agent has the same without ids and numbers;
    one for a user runs once at the end.
    """

    for_messages: str = ""
    for_agent: str = ""
    for_user: tuple[str, ...] = ()
    unchanged: str = ""
    """Why rows keep the old id."""


class OnErasure(Enum):
    """The effect of an erasure on the rows of a person."""

    DELETE = "delete"
    KEEP = "keep"
    """Records of who did what stay: they name a person by the pseudonym of the person's row."""
    LAST = "last"
    """The row of the person is deleted when the erasure is done."""
    RECEIPT = "receipt"
    """Requests to erase stay as receipts, with keyed digests instead of ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalData:
    """The personal data in a table, and how erasure, export, merge and retention treat it."""

    subject: str = ""
    """Column (or SQL expression) that holds a user's id."""
    other_subjects: tuple[str, ...] = ()
    """More columns that hold a user's id."""
    agent: str = ""
    """Column that holds an agent's id. Without one, an erasure by one agent keeps the rows."""
    message: str = ""
    """Column that holds a message's id: the row is removed together with the message."""
    where: str = ""
    """Which rows are a person's, where `subject` does not say so."""
    derived: str = ""
    """Which rows rest on the messages %(ids)s alone, and are removed together with them."""
    also: str = ""
    """Which rows are a person's besides those that `subject` says."""
    before: tuple[str, ...] = ()
    """Tables that `where` reads, which are therefore deleted from later. Foreign keys are known."""
    key: str = ""
    """Column with ids of which the receipt has a digest; none if they are made of content."""
    on_erasure: OnErasure = OnErasure.DELETE
    export: Export | None = None
    merge: Merge = field(default_factory=Merge)
    retention: str = ""
    """Which rows of an agent are removed as too old, beside those of messages."""
    schema: str = ""
    """`PUBLIC` for a table or view there, empty for one in the tenant's schema."""

    @property
    def subjects(self) -> tuple[str, ...]:
        """All columns and expressions with a user's id."""
        return tuple(filter(None, (self.subject, *self.other_subjects)))

    @property
    def of_person(self) -> str:
        """The condition for rows of a person; empty if only their messages lead to the rows."""
        if self.where:
            return self.where
        conditions = []
        if self.subject:
            users = " OR ".join(f"{subject} = ANY(%(users)s)" for subject in self.subjects)
            agent = f" OR {self.agent} = %(agent)s" if self.agent else ""
            conditions.append(f"({users}) AND (%(agent)s::uuid IS NULL{agent})")
        if self.also:
            conditions.append(self.also)
        return f"tenant_id = %(tenant)s AND ({' OR '.join(conditions)})" if conditions else ""


def rows_of_user(**fields: Any) -> PersonalData:
    """Return the declaration of a table with the columns id, agent_id and user_id.

    Args:
        fields: further fields of `PersonalData`, or other values.
    """
    return PersonalData(**{"subject": "user_id", "agent": "agent_id", "key": "id", **fields})


@dataclass(frozen=True, slots=True)
class NoPersonalData:
    """The reason why a table has no personal data."""

    reason: str
    export: Export | None = None
    columns: tuple[str, ...] = ()
    """Columns that only look as if they held a user's id."""


Declaration = PersonalData | NoPersonalData


def declarations() -> dict[str, Declaration]:
    """Return the declaration of every table, by the table's name."""
    declared = {
        model._meta.db_table: declaration
        for model in apps.get_models(include_auto_created=True)
        if isinstance(declaration := getattr(model, "personal_data", None), Declaration)
    }
    for config in apps.get_app_configs():
        declared |= getattr(config, "tables_without_models", {})
    return declared


def personal_tables() -> dict[str, PersonalData]:
    """Return the tables with personal data, in an order in which rows can be deleted.

    A table comes before those that its foreign keys refer to.
    """
    personal = {
        table: declaration
        for table, declaration in declarations().items()
        if isinstance(declaration, PersonalData)
    }
    referenced = {table: set(declaration.before) for table, declaration in personal.items()}
    for model in apps.get_models():
        table = model._meta.db_table
        if table in personal:
            referenced[table].update(
                foreign_key.remote_field.model._meta.db_table
                for foreign_key in model._meta.concrete_fields
                if foreign_key.remote_field
            )
    # TopologicalSorter returns the referenced tables first, the reverse of the order of deletion.
    graph = {table: (names & personal.keys()) - {table} for table, names in referenced.items()}
    order = list(TopologicalSorter(graph).static_order())
    return {table: personal[table] for table in reversed(order)}


def exports() -> dict[str, tuple[Declaration, Export]]:
    """Return the declarations of exports by table name, in the order of archives."""
    exported = {
        table: (declaration, declaration.export)
        for table, declaration in declarations().items()
        if declaration.export is not None
    }
    return dict(sorted(exported.items(), key=lambda item: item[1][1].position))


def models_without_declaration() -> list[str]:
    """Return the labels of models without a declaration, and of those with unknown columns."""
    declared = declarations()
    wrong = []
    for model in apps.get_models(include_auto_created=True):
        declaration = declared.get(model._meta.db_table)
        columns = {field.column for field in model._meta.concrete_fields}
        named: tuple[str, ...] = ()
        if isinstance(declaration, PersonalData):
            named = (*declaration.subjects, declaration.agent, declaration.message, declaration.key)
        unknown = {name for name in named if _COLUMN.fullmatch(name)} - columns
        if declaration is None or unknown:
            wrong.append(model._meta.label)
    return sorted(wrong)


def tables_of(cursor: Any, schema: str) -> list[str]:
    """Return the names of a schema's tables, from the catalogue of Postgres."""
    cursor.execute(_TABLES, [schema])
    return [name for (name,) in cursor.fetchall()]


def undeclared_names(cursor: Any, schema: str) -> list[str]:
    """Return the tables, and columns named like a user's id, that no declaration mentions."""
    declared: Mapping[str, Declaration] = declarations()
    unknown = [table for table in tables_of(cursor, schema) if table not in declared]
    cursor.execute(_USER_COLUMNS, [schema])
    for table, column in cursor.fetchall():
        of = declared.get(table)
        named = of.subjects if isinstance(of, PersonalData) else of.columns if of else (column,)
        if column not in named:
            unknown.append(f"{table}.{column}")
    return unknown
