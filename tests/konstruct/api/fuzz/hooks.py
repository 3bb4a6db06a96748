"""Hooks of schemathesis for rules that the description of the API cannot express.

KONSTRUCT_FUZZ_IDS: a JSON object of path parameters and existing ids.
"""

import json
import os
from typing import Any

import schemathesis
from schemathesis.generation.meta import TestPhase

# An existing agent: an unknown one would be refused before the code behind it.
AGENT = "ada"
# A schema cannot express the valid combinations of operators and values.
FILTERS = {"topic": {"in": ["food", "drink"]}}
# Nor that keys of nested objects are not empty.
METADATA = {"topic": "food", "source": {"page": 7}}
# Nor the order of two times.
NEVER = "2999-12-31T00:00:00Z"
IDS: dict[str, str] = json.loads(os.environ.get("KONSTRUCT_FUZZ_IDS", "{}"))


@schemathesis.hook
def map_case(context: Any, case: Any) -> Any:
    """Use existing values where any valid value is allowed, and do not wait for replies."""
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive:
        return case
    for body, filters in ((case.body, FILTERS), (case.query, json.dumps(FILTERS))):
        if isinstance(body, dict):
            real = {"agent": AGENT, "wait": 0.01, "filters": filters, "valid_to": NEVER}
            real["metadata"] = METADATA
            body.update({name: value for name, value in real.items() if name in body})
            if body.pop("valid_from", None) and not body:
                body["content"] = "Something else is so now."
    if case.operation.definition.raw.get("operationId") == "update_agent" and case.body:
        # Any agent may be the one that all others need.
        case.body = {"persona": "Brief."} | {
            name: value for name, value in case.body.items() if name not in ("name", "is_active")
        }
    # Stateful tests use their own objects; other tests do not find deleted ones.
    if meta.phase.name != TestPhase.STATEFUL and case.method != "DELETE":
        parameters = case.path_parameters or {}
        parameters.update({name: IDS[name] for name in parameters if name in IDS})
    return case
