"""The pipeline: from an accepted message to its reply.

1. `accept`: stores a message of a channel, with a job for its reply.
2. `tenants.jobs.work`: a worker claims the job, one of a thread at a time, and counts an attempt.
3. `respond.handle` and `respond.answer`: do the claimed job.
4. `accept.read_snapshot`: reads all data for the reply into one `Snapshot`.
5. `respond.take_step`: escalates, hands over, decides a tool call, or asks the language model:
   `ask_language_model` recalls (`gather_context`), builds the prompt (`build_prompt`) and sends it
   (`ask_with_tools`). After a change of the thread it is called again, with a new snapshot.
6. `respond.write_reply`: writes the reply (`record_reply`, `append_to_window`, `finish`);
   `respond.record_failure` a failed attempt.
"""

from konstruct.orchestrator.pipeline.respond import handle
