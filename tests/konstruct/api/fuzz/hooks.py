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
    operation_id, body = case.operation.definition.raw.get("operationId"), case.body
    changes = body.get("facts", []) if isinstance(body, dict) else []
    for fields, filters in (
        *((one, FILTERS) for one in (body, *changes)),
        (case.query, json.dumps(FILTERS)),
    ):
        if isinstance(fields, dict):
            real = {"agent": AGENT, "wait": 0.01, "filters": filters, "valid_to": NEVER}
            real["metadata"] = METADATA
            fields.update({name: value for name, value in real.items() if name in fields})
            if fields.pop("valid_from", None) and not fields:
                fields["content"] = "Something else is so now."
    if operation_id == "change_fact" and body and body.keys() <= {"reason"}:
        body["expires_at"] = NEVER
    if operation_id == "change_facts":  # each fact once, with more than a reason
        body["facts"] = [*{one["memory_id"]: one for one in changes}.values()]
        for change in body["facts"]:
            change["expires_at"] = NEVER
    if operation_id == "update_agent" and body:
        # Any agent may be the one that all others need, and others are unknown.
        left_out = ("name", "is_active", "hands_to", "hand_over_on", "time_zone")
        case.body = {"persona": "Brief."} | {
            name: value for name, value in body.items() if name not in left_out
        }
    # Stateful tests use their own objects; other tests do not find deleted ones.
    if meta.phase.name != TestPhase.STATEFUL and case.method != "DELETE":
        parameters = case.path_parameters or {}
        parameters.update({name: IDS[name] for name in parameters if name in IDS})
    return case
