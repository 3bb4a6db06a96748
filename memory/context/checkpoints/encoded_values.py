"""Values of checkpoints as bytes, for graphs that run elsewhere: nothing is decoded."""

from dataclasses import dataclass
from typing import Any

from memory.context.exceptions import CheckpointRefused


@dataclass(frozen=True, slots=True)
class EncodedValue:
    """A value as LangGraph's serializer has written it, from `checked` or from its row."""

    type: str
    data: bytes


def check_encoded_value(type_: str, data: bytes) -> EncodedValue:
    """Check a value before it is stored, as a saver of this process does.

    So a reader builds no object of a class that is not allowed.

    Raises:
        CheckpointRefused: it has an object of a class that is not allowed.
    """
    # Imported here: LangGraph takes half a second and 40 MB of each process.
    from memory.context.checkpoints.serializer import allowed_classes, check_stored_value

    if type_ == "empty":
        raise CheckpointRefused("a checkpoint's value has the encoding 'empty', and no value")
    check_stored_value(type_, data, allowed_classes())
    return EncodedValue(type_, data)


class EncodedSerializer:
    """Replaces LangGraph's serializer: takes and returns `Encoded` values."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Return encoding and bytes.

        Raises:
            CheckpointRefused: it must be decoded, because a LangGraph before 1.0 has saved it.
        """
        if not isinstance(obj, EncodedValue):
            raise CheckpointRefused(
                "this checkpoint was saved by an older LangGraph: run its graph once with a"
                " checkpointer of this deployment's own"
            )
        return obj.type, obj.data

    def loads_typed(self, data: tuple[str, bytes]) -> EncodedValue:
        """Return the value as it is stored."""
        return EncodedValue(data[0], bytes(data[1] or b""))
