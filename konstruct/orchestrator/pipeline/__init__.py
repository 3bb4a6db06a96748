"""The pipeline: from an accepted message to its reply.

1. `accept`: stores a message of a channel, with a job for its reply.
2. `tenants.jobs.work`: a worker claims the job, one of a thread at a time, and counts an attempt.
3. `respond.handle` and `respond.answer`: do the claimed job.
4. `accept.read_snapshot`: reads all data for the reply into one `Snapshot`.
5. `respond.respond`: `decide` returns the next step, a `write.Decision`. For `AskModel`,
   `ask_language_model` recalls (`gather_context`), builds the prompt (`build_prompt`) and sends it;
   `ask_with_tools` does this for an agent with tools.
6. `write`: writes the decision. `apply_decision` writes escalations, handovers and decisions about
   tool calls; `write_reply` a reply (`record_reply`, `append_to_window`, `finish`);
   `record_failure` a failed attempt.

After a handover, step 5 repeats with a new snapshot of the same message.
"""

from konstruct.orchestrator.pipeline.respond import handle
