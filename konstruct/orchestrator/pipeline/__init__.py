"""The pipeline: from an accepted message to its reply.

1. `accept`: stores a message of a channel, with a job for its reply.
2. `worker.handle`: a worker leases the due messages of a thread, oldest first.
3. `snapshot.oldest_ready`: reads all data for the reply into one `Snapshot`.
4. `worker.answer`: leases the reply, and counts an attempt.
5. `respond.respond`: `decide` returns the next step (`decisions` has all of them). Most often it
   asks the language model: `gather_context`, `build_prompt`, `ask`, and `tool_rounds` if the agent
   has tools.
6. `write`: writes every decision: `carry_out` escalations, handovers and consent; `conclude` a
   reply (`record_reply`, `append_to_window`, `finish`); `record_failure` without a reply.

A decision that changes who answers continues at 3 with the same message.
"""

from konstruct.orchestrator.pipeline.worker import handle

__all__ = ["handle"]
