"""LangGraph: a store whose items are facts. Needs the extra `langgraph`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from konstruct_client import documents, errors
from konstruct_client._extras import extra
from konstruct_client.client import Client

with extra("langgraph"):
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
        tokenize_path,
        validate_op_namespace,
    )

Namespace = tuple[str, ...]
UserOf = Callable[[Namespace], "str | None"]

# Key in a fact's metadata for the data of an item.
PLACE = "store"
MAX_CONTENT_CHARACTERS = 32_768
MAX_RESULTS = 100
_COMPARED = {
    "$eq": operator.eq, "$ne": operator.ne, "$gt": operator.gt, "$gte": operator.ge,
    "$lt": operator.lt, "$lte": operator.le,
}  # fmt: skip


class KonstructStore(BaseStore):
    """Items are facts of an agent, found by namespace and key, by their values, and by meaning.

    A fact's text is what the item's value says, so that agents recall it; a change keeps what was
    before as a version. A value has at most 256 fields. A search by meaning finds the best 100.

    Args:
        agent: name or id of the agent that knows them.
        user_id: whom they are about: a user, or a function that tells the user of a namespace, such
            as `lambda namespace: namespace[1] if len(namespace) > 1 else None`. Items without one
            are about no user: the agent may tell them to all of its users, and no user's erasure
            takes them along.
    """

    def __init__(self, client: Client, *, agent: str, user_id: str | UserOf | None = None) -> None:
        self._facts, self._agent = client.facts, agent
        self._user_id = user_id

    def _user_of(self, namespace: Namespace) -> str | None:
        if not callable(self._user_id):
            return self._user_id
        try:
            return self._user_id(namespace)
        except LookupError as error:
            raise ValueError(f"user_id finds no user in the namespace {namespace!r}") from error

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations: all reads, then the writes, of each key the last.

        Raises:
            InvalidNamespaceError: a label is empty or has a full stop; nothing is done then.
        """
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
        results = [self._read(op) for op in ops]
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        for put in puts.values():
            self._put(put)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do the operations in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            found = next(iter(self._at(op.namespace, op.key)), None)
            return None if found is None else _item(found, Item)
        if isinstance(op, SearchOp):
            return self._search(op)
        if isinstance(op, ListNamespacesOp):
            return self._namespaces(op)
        return None

    def _at(self, namespace: Namespace, key: str) -> Iterable[documents.Fact]:
        filters = {f"{PLACE}.namespace": _joined(namespace), f"{PLACE}.key": key}
        return self._list(namespace, filters)

    def _put(self, op: PutOp) -> None:
        if op.value is None:
            for fact in self._at(op.namespace, op.key):
                with suppress(errors.NotFound):  # another writer was faster
                    self._facts.delete(fact["memory_id"])
            return
        place = {"namespace": _joined(op.namespace), "key": op.key, "value": dict(op.value)}
        item = json.dumps([*op.namespace, op.key])
        self._facts.create(
            _content(op),
            agent=self._agent,
            user_id=self._user_of(op.namespace),
            metadata={PLACE: place},
            # The server keeps one fact for an id, also if two programs put it at once.
            external_id=f"langgraph:{hashlib.sha256(item.encode()).hexdigest()}",
        )

    def _search(self, op: SearchOp) -> list[SearchItem]:
        filters = _below(op.namespace_prefix) | _narrowing(op.filter or {})
        found: Iterable[Any]
        if op.query:
            found = self._facts.search(
                op.query,
                agent=self._agent,
                user_id=self._user_of(op.namespace_prefix) if op.namespace_prefix else None,
                filters=filters,
                limit=MAX_RESULTS if op.filter else min(MAX_RESULTS, op.offset + op.limit),
            )["results"]
        else:
            found = self._list(op.namespace_prefix, filters, limit=200 if op.filter else op.limit)
        matching = (fact for fact in found if _matches(_value(fact), op.filter or {}))
        return [
            _item(each, SearchItem) for each in islice(matching, op.offset, op.offset + op.limit)
        ]

    def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        found: dict[Namespace, None] = {}
        for fact in self._list((), _below(()), limit=200):
            namespace = _namespace(fact)
            conditions = op.match_conditions or ()
            if all(_fits(namespace, each.match_type, each.path) for each in conditions):
                found[namespace[: op.max_depth]] = None
        return sorted(found)[op.offset : op.offset + op.limit]

    def _list(
        self, namespace: Namespace, filters: Mapping[str, Any], limit: int = 50
    ) -> Iterable[documents.Fact]:
        user_id = self._user_of(namespace) if namespace else None
        page = max(1, min(200, limit))
        return self._facts.list(agent=self._agent, user_id=user_id, filters=filters, limit=page)


def _joined(namespace: Namespace) -> str:
    """Labels have no full stop. The last one ends it, so that all below begin with the same."""
    return "".join(f"{label}." for label in namespace)


def _below(prefix: Namespace) -> dict[str, Any]:
    if not prefix:
        return {f"{PLACE}.namespace": {"exists": True}}
    beginning = _joined(prefix)
    return {f"{PLACE}.namespace": {"gte": beginning, "lt": beginning[:-1] + "/"}}


def _narrowing(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a filter that the server applies; the rest is applied here."""
    narrowing = {}
    for name, demand in wanted.items():
        demands = demand if _is_compared(demand) else {"$eq": demand}
        known = {
            operation[1:]: bound
            for operation, bound in demands.items()
            if operation != "$ne" and isinstance(bound, str | int | float)
        }
        if known:
            narrowing[f"{PLACE}.value.{name}"] = known
    return narrowing


def _matches(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(_is_so(value.get(name), demand) for name, demand in wanted.items())


def _is_so(value: Any, demand: Any) -> bool:
    if not _is_compared(demand):
        return bool(value == demand)
    try:
        return all(_COMPARED[operation](value, bound) for operation, bound in demand.items())
    except TypeError:  # without an order between them
        return False


def _is_compared(demand: Any) -> bool:
    return isinstance(demand, dict) and bool(demand) and all(name in _COMPARED for name in demand)


def _fits(namespace: Namespace, match_type: str, path: tuple[str, ...]) -> bool:
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if match_type == "prefix" else namespace[-len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _content(op: PutOp) -> str:
    """Return the fact's text: the text of the value and the item's place, which make it unique."""
    place = f"({_joined(op.namespace)[:-1]}/{op.key})"
    if op.index is False:
        said = ""
    elif op.index:
        texts = (get_text_at_path(op.value, tokenize_path(path)) for path in op.index)
        said = "\n".join(text for found in texts for text in found)
    else:
        said = "\n".join(_leaves(op.value))
    return f"{said[: MAX_CONTENT_CHARACTERS - len(place) - 1]} {place}".strip()


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _leaves(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _leaves(inner)
    elif value is not None:
        yield str(value)


def _namespace(fact: Any) -> Namespace:
    return tuple(fact["metadata"][PLACE]["namespace"].split(".")[:-1])


def _value(fact: Any) -> dict[str, Any]:
    found: dict[str, Any] = fact["metadata"][PLACE]["value"]
    return found


def _item(fact: Any, kind: type[Any]) -> Any:
    scored = {"score": fact.get("score")} if kind is SearchItem else {}
    return kind(
        namespace=_namespace(fact),
        key=fact["metadata"][PLACE]["key"],
        value=_value(fact),
        created_at=fact["created_at"],
        updated_at=fact["updated_at"],
        **scored,
    )
