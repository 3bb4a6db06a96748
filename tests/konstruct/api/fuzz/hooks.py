"""What schemathesis is told of the API that a description cannot say.

KONSTRUCT_FUZZ_IDS: a JSON object of path parameters and of ids that are there.
"""

import json
import os
from typing import Any

import schemathesis
from schemathesis.generation.meta import TestPhase

# Who is there to be asked: made-up names would be refused, and nothing behind them be reached.
AGENT = "ada"
# Which operators and values go together is more than a schema can say.
FILTERS = {"topic": {"in": ["food", "drink"]}}
# So is that no key of an object in an object may be empty.
METADATA = {"topic": "food", "source": {"page": 7}}
# So is which moment must be before which.
NEVER = "2999-12-31T00:00:00Z"
IDS: dict[str, str] = json.loads(os.environ.get("KONSTRUCT_FUZZ_IDS", "{}"))


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Where any valid value would do, give one that is there, and do not wait for replies."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive:
        return case
    for said, filters in ((case.body, FILTERS), (case.query, json.dumps(FILTERS))):
        if isinstance(said, dict):
            real = {"agent": AGENT, "wait": 0.01, "filters": filters, "valid_to": NEVER}
            real["metadata"] = METADATA
            said.update({name: value for name, value in real.items() if name in said})
            if said.pop("valid_from", None) and not said:
                said["content"] = "Something else is so now."
    if case.operation.definition.raw.get("operationId") == "update_agent" and case.body:
        # Any agent may be the one that all others need.
        case.body = {"persona": "Brief."} | {
            name: value for name, value in case.body.items() if name not in ("name", "is_active")
        }
    # Stateful testing follows what it made itself; what is deleted is there for nobody else.
    if meta.phase.name != TestPhase.STATEFUL and case.method != "DELETE":
        parameters = case.path_parameters or {}
        parameters.update({name: IDS[name] for name in parameters if name in IDS})
    return case
