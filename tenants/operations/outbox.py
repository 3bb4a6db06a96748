"""Migration operation: what waits in a table of a tenant's stands in the outbox too.

A table that has columns of its own for its work (a batch that is locked row by row, a post that is
shown anew) says by a trigger when it is due. The functions stand in the public schema, once for all
tenants, and do no more than their caller may.
"""

from dataclasses import dataclass
from typing import Final

from tenants.operations.policies import TableOperation
from tenants.postgresql.expressions import IS_CURRENT_TENANT


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What of a table stands in the outbox. Expressions are of one row, called `waiting`."""

    table: str
    columns: tuple[str, ...]
    """Those that say whether and when a row is due."""
    key: str
    sweep_at: str
    waits: str = "true"

    @property
    def keys_sql(self) -> str:
        """The keys of all rows that wait."""
        return f"SELECT {self.key} FROM {self.table} AS waiting WHERE {self.waits}"  # noqa: S608

    @property
    def touch_sql(self) -> str:
        """What tells the outbox again of the rows with these keys."""
        column = self.columns[0]
        return f"UPDATE {self.table} AS waiting SET {column} = {column} WHERE {self.key} = ANY(%s)"  # noqa: S608


MIRRORED: Final = {
    "embedding": Mirrored(
        "memory_pendingembedding", ("due_at",), key="waiting.message_id", sweep_at="waiting.due_at"
    ),
    "delivery": Mirrored(
        "channels_delivery",
        ("due_at", "ring_at", "failed_at"),
        key="waiting.message_id",
        sweep_at="waiting.ring_at",
        waits="waiting.due_at IS NOT NULL AND waiting.failed_at IS NULL",
    ),
    # An arrival's number is read as a UUID.
    "arrival": Mirrored(
        "channels_arrival",
        ("ring_at", "failed_at"),
        key="lpad(to_hex(waiting.id), 32, '0')::uuid",
        sweep_at="waiting.ring_at",
        waits="waiting.failed_at IS NULL",
    ),
}


def mirror_function_sql(kind: str) -> str:
    """Statement that makes the function of a kind's trigger."""
    of = MIRRORED[kind]
    return f"""
CREATE FUNCTION public.outbox_of_{kind}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE waiting record;
BEGIN
    IF TG_OP = 'DELETE' THEN waiting := OLD; ELSE waiting := NEW; END IF;
    IF TG_OP <> 'DELETE' AND ({of.waits}) THEN
        INSERT INTO public.tenants_outboxentry (tenant_id, kind, key, due_at, sweep_at)
        VALUES (waiting.tenant_id, '{kind}', {of.key}, waiting.due_at, {of.sweep_at})
        ON CONFLICT (tenant_id, kind, key)
        DO UPDATE SET due_at = EXCLUDED.due_at, sweep_at = EXCLUDED.sweep_at;
    ELSE
        DELETE FROM public.tenants_outboxentry
        WHERE tenant_id = waiting.tenant_id AND kind = '{kind}' AND key = {of.key};
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION public.outbox_of_{kind}() FROM PUBLIC
"""  # noqa: S608


class MirrorInOutbox(TableOperation):
    """Let what waits in the table of a kind be entries of the outbox, as its function says.

    What waits already is among them: nobody writes to the table until the migration is done.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(MIRRORED[kind].table)
        self.kind = kind

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__name__, [self.kind], {}

    def forwards_sql(self, table: str) -> list[str]:
        of = MIRRORED[self.kind]
        return [
            f"CREATE TRIGGER outbox AFTER INSERT OR DELETE OR UPDATE OF {', '.join(of.columns)}"
            f" ON {table} FOR EACH ROW EXECUTE FUNCTION public.outbox_of_{self.kind}()",
            "INSERT INTO public.tenants_outboxentry (tenant_id, kind, key, due_at, sweep_at)"  # noqa: S608
            f" SELECT tenant_id, '{self.kind}', {of.key}, due_at, {of.sweep_at}"
            f" FROM {table} AS waiting WHERE {of.waits} ON CONFLICT DO NOTHING",
        ]

    def backwards_sql(self, table: str) -> list[str]:
        return [
            f"DROP TRIGGER outbox ON {table}",
            "DELETE FROM public.tenants_outboxentry"  # noqa: S608
            f" WHERE {IS_CURRENT_TENANT} AND kind = '{self.kind}'",
        ]

    def describe(self) -> str:
        return f"Let what waits in {self.table} stand in the outbox"
