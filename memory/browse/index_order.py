"""SQL that reads along one index, in its order."""

from collections.abc import Mapping


def rows_in_order(
    table: str,
    scope: Mapping[str, str],
    *order: str,
    latest_first: bool = False,
    since: str = "",
    before: str = "",
    conditions: str = "",
) -> str:
    """Return FROM, WHERE and ORDER BY of the rows of a scope, read along the index of its columns.

    For `agent_id = … AND user_id = …` Postgres assumes that each user talks with every agent
    equally often. It chooses an index without one of the two, and reads all messages of a user to
    find that an agent has none. Comparisons of rows, and the order, leave one index.

    Args:
        table: the name of a table.
        scope: values in SQL by column, the first columns of the index.
        order: the following columns of the index.
        latest_first: whether the index is read backwards.
        since: smallest value in SQL of the first column of `order`.
        before: values in SQL of all columns of `order`; rows before them are returned.
        conditions: further conditions, each after an AND.

    Example:
        `SELECT name` + rows_in_order("memory_message", {"user_id": "person.id"}, "created_at")
    """

    def comparison(operator: str, names: tuple[str, ...], values: str) -> str:
        left = ", ".join([*scope, *names])
        right = ", ".join([*scope.values(), *filter(None, [values])])
        return f" AND ({left}) {operator} ({right})" if left else ""

    lower = comparison(">=", order[:1] if since else (), since)
    upper = comparison("<", order, before) if before else comparison("<=", (), "")
    direction = " DESC" if latest_first else ""
    ordering = ", ".join(f"{column}{direction}" for column in (*scope, *order))
    return f" FROM {table} WHERE true{lower}{upper} {conditions} ORDER BY {ordering} "
