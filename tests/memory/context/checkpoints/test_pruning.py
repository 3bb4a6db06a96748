"""Which checkpoints go when only the newest stay."""

from memory.context.checkpoints.checkpointer import CheckpointRow, superfluous


def rows(namespace: str, *ids: str, root: str | None = None) -> list[CheckpointRow]:
    return [CheckpointRow(namespace, checkpoint_id, root_id=root) for checkpoint_id in ids]


def test_the_newest_of_each_namespace_stay() -> None:
    thread = rows("", "1", "2", "3") + rows("child", "5", "4")

    assert superfluous(thread, 1) == {"": {"1", "2"}, "child": {"4"}}
    assert superfluous(thread, 2) == {"": {"1"}}
    assert superfluous(thread, 3) == {}
    assert superfluous([], 1) == {}


def test_a_subgraphs_call_goes_with_the_root_it_started_from() -> None:
    thread = rows("", "1", "2") + rows("child:a", "3", root="1") + rows("child:b", "4", root="2")

    assert superfluous(thread, 1) == {"": {"1"}, "child:a": {"3"}}


def test_a_subgraphs_call_stays_while_its_root_is_still_to_be_saved() -> None:
    thread = rows("", "1", "2") + rows("child:a", "3", "4", root="5")

    assert superfluous(thread, 1) == {"": {"1"}, "child:a": {"3"}}


def test_a_subgraph_that_outlives_its_calls_keeps_its_newest() -> None:
    thread = rows("", "1", "2") + rows("child", "3", root="1")

    assert superfluous(thread, 1) == {"": {"1"}}


def test_the_parent_that_an_old_format_reads_its_sends_from_stays() -> None:
    thread = [*rows("", "1", "2"), CheckpointRow("", "3", sends_parent_id="2")]

    assert superfluous(thread, 1) == {"": {"1"}}
