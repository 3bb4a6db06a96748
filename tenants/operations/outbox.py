"""Migration operations: what waits in a table of a tenant's stands in the outbox too.

A table that has columns of its own for its work (a batch that is locked row by row, a post that is
shown anew) says by a trigger when it is due. The functions stand in the public schema, once for all
tenants, and do no more than their caller may.
"""

from tenants.operations.policies import TableOperation
from tenants.postgresql.expressions import IS_CURRENT_TENANT


def mirror_function_sql(kind: str, *, key: str, sweep: str, waits: str = "true") -> str:
    """Statement that makes a kind's trigger function. `key` and `waits` are of a `row`."""
    return f"""
CREATE FUNCTION public.outbox_of_{kind}() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE row record;
BEGIN
    IF TG_OP = 'DELETE' THEN row := OLD; ELSE row := NEW; END IF;
    IF TG_OP <> 'DELETE' AND ({waits}) THEN
        INSERT INTO public.tenants_outboxentry (tenant_id, kind, key, due_at, sweep_at)
        VALUES (row.tenant_id, '{kind}', {key}, row.due_at, row.{sweep})
        ON CONFLICT (tenant_id, kind, key)
        DO UPDATE SET due_at = EXCLUDED.due_at, sweep_at = EXCLUDED.sweep_at;
    ELSE
        DELETE FROM public.tenants_outboxentry
        WHERE tenant_id = row.tenant_id AND kind = '{kind}' AND key = {key};
    END IF;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION public.outbox_of_{kind}() FROM PUBLIC
"""  # noqa: S608


class MirrorInOutbox(TableOperation):
    """Let a table's rows that wait be entries of the outbox, as the function of the kind says.

    What waits already is among them: nobody writes to the table until the migration is done.
    """

    def __init__(self, table: str, kind: str, columns: list[str]) -> None:
        super().__init__(table)
        self.kind = kind
        self.columns = columns

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        return self.__class__.__name__, [self.table, self.kind, self.columns], {}

    def forwards_sql(self, table: str) -> list[str]:
        return [
            f"CREATE TRIGGER outbox AFTER INSERT OR DELETE OR UPDATE OF {', '.join(self.columns)}"
            f" ON {table} FOR EACH ROW EXECUTE FUNCTION public.outbox_of_{self.kind}()",
            f"UPDATE {table} SET {self.columns[0]} = {self.columns[0]}"  # noqa: S608
            f" WHERE {self.columns[0]} IS NOT NULL",
        ]

    def backwards_sql(self, table: str) -> list[str]:
        return [
            f"DROP TRIGGER outbox ON {table}",
            "DELETE FROM public.tenants_outboxentry"  # noqa: S608
            f" WHERE {IS_CURRENT_TENANT} AND kind = '{self.kind}'",
        ]

    def describe(self) -> str:
        return f"Let what waits in {self.table} stand in the outbox"
