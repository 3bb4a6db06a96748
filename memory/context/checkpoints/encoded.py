"""Values of checkpoints as their bytes, for graphs that run elsewhere: nothing is decoded here."""

from dataclasses import dataclass
from typing import Any

from memory.context.exceptions import CheckpointRefused


@dataclass(frozen=True, slots=True)
class Encoded:
    """A value as LangGraph's serializer has written it."""

    type: str
    data: bytes


class EncodedSerializer:
    """In the place of LangGraph's serializer: takes and gives `Encoded` values.

    A value is looked through before it is kept, as in a saver of this process, so that whoever
    reads it builds nothing of a class that is not allowed.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return encoding and bytes.

        Raises:
            CheckpointRefused: it holds an object of a class that is not allowed, or it would have
                to be decoded, as what a LangGraph before 1.0 has saved.
        """
        # Imported here: LangGraph takes half a second and 40 MB of every process that loads it.
        from memory.context.checkpoints.serializer import allowed_classes, check_stored_value

        if not isinstance(obj, Encoded):
            raise CheckpointRefused(
                "this checkpoint was saved by an older LangGraph: run its graph once with a"
                " checkpointer of this deployment's own"
            )
        if obj.type == "empty":
            raise CheckpointRefused("a checkpoint's value has the encoding 'empty', and no value")
        check_stored_value(obj.type, obj.data, allowed_classes())
        return obj.type, obj.data

    def loads_typed(self, data: tuple[str, bytes]) -> Encoded:
        """Return the value as it is kept."""
        return Encoded(data[0], bytes(data[1] or b""))
