"""From an accepted message to its reply.

1. `accept`: a channel's message is written down and waits in the outbox of replies.
2. `worker.handle`: a worker leases the messages of a thread that are due, oldest first.
3. `snapshot.oldest_ready`: all that the reply depends on is read into one `Snapshot`.
4. `worker.answer`: the lease of the reply begins, and with it an attempt is counted.
5. `respond.respond`: `decide` returns the next step (`decisions` has all of them). Most often
   the language model is asked: `gather_context`, `build_prompt`, `ask`, and, where the agent
   has tools, `tool_rounds`.
6. `write`: writes every decision: `carry_out` escalations, handovers and consent; `conclude` a
   reply (`record_reply`, `append_to_window`, `finish`); `record_failure` where there is none.

A decision that changes who answers leads back to 3, with the same message.
"""

from konstruct.orchestrator.pipeline.worker import handle

__all__ = ["handle"]
