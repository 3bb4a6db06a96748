// Written by `make typescript` from docs/openapi.yaml, sha256 7f7b0a1118dd47c0680b910a7dac9bf47e9d7718031ad94ceeea7bde735d36af
export interface paths {
    "/api/v1/agents/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List agents */
        get: operations["list_agents"];
        put?: never;
        /** Create an agent */
        post: operations["create_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an agent */
        get: operations["get_agent"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change an agent
         * @description Only the given fields change. An agent cannot be deleted, because its memory would have no owner. `is_active: false` closes it.
         */
        patch: operations["update_agent"];
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/dry-runs/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a message to an agent in a dry run
         * @description Decides as a channel does, by the rules for people, consent and other agents, and asks the language model with the prompt, the memory and the tools of a reply. Nothing is stored but the meter's count and the access log's entry, and tools are described instead of run. `conversation` continues a dry run for up to a day. `draft` shows what other settings would change. The response comes when the language model has answered; each of both sides may take as long as a reply. Where it gives no answer, `problem` says why.
         */
        post: operations["dry_run_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/questions/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the saved questions of an agent, the newest first */
        get: operations["list_saved_questions"];
        put?: never;
        /**
         * Save a question to an agent
         * @description The agent is asked it now, and again after each change, by dry runs. An agent has at most 20 saved questions: one more is a 409 `too-many-questions`. A question that names a person is erased with the person.
         */
        post: operations["save_question"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/questions/{question_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a saved question */
        get: operations["get_saved_question"];
        put?: never;
        post?: never;
        /** Delete a saved question with its answers */
        delete: operations["delete_saved_question"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/questions/answers/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the answers to the saved questions of an agent, the newest first
         * @description There is one for each question and each version of the agent that was asked. Those of the last 20 versions are kept. An answer is erased with its person and with each message that its prompt had.
         */
        get: operations["list_question_answers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/questions/run/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get whether the saved questions of an agent wait to be asked */
        get: operations["get_question_run"];
        put?: never;
        /**
         * Ask an agent its saved questions again
         * @description A worker asks them by dry runs. The answers replace those of the current version.
         */
        post: operations["ask_saved_questions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/versions/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of an agent, the newest first
         * @description Each change of an agent by the API or the admin is a version with all settings, its author and what has changed. An agent that has not changed since versions are kept has none.
         */
        get: operations["list_agent_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/agents/{agent_id}/versions/{number}/restore/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Return to a version of an agent
         * @description The agent gets the settings of the version, and the result is a new version. Settings that the version does not have, because they are younger, stay.
         */
        post: operations["restore_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/checkpoints/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List checkpoints, newest first
         * @description With their values, as LangGraph's serializer has written them. A page is bounded by what is in it: follow `next`. With `limit` it has exactly so many, or is refused if these have more than 24 MB.
         */
        get: operations["list_checkpoints"];
        put?: never;
        /**
         * Save a checkpoint
         * @description Takes the data that a LangGraph checkpointer saves. Values are encoded by LangGraph's serializer, and refused if they hold an object of a class that is not allowed. The same checkpoint again replaces the first.
         */
        post: operations["save_checkpoint"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/checkpoints/writes/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Save the writes of a task
         * @description Takes the data that a LangGraph checkpointer saves for an incomplete step.
         */
        post: operations["save_checkpoint_writes"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/context/compile/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Compile the context of a prompt
         * @description Returns the session, the facts and the recalled messages for the task, cut to the token budget of the model's tier: the oldest turns and the least relevant memories are dropped first. Nothing is stored, and no language model is called.
         */
        post: operations["compile_context"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List conversations
         * @description Returns one row for each agent, user and thread, ordered by the last message. `since` and `until` compare with the time of the last message.
         */
        get: operations["list_conversations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/items/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the items of a conversation
         * @description What a framework has kept of its runs, the newest first. A page has at most 4,000,000 bytes of JSON, unless a single item is larger.
         */
        get: operations["list_conversation_items"];
        put?: never;
        /**
         * Add items to a conversation
         * @description Items belong to the framework that adds them, and get no reply. Items that have `said` are also written into the transcript, like imported messages.
         */
        post: operations["add_conversation_items"];
        /**
         * Remove all items of a conversation
         * @description They are removed at once and for good. Their texts stay in the transcript until the conversation is erased.
         */
        delete: operations["clear_conversation_items"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/items/{item_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove an item
         * @description It is removed at once. Its text stays in the transcript. Of two requests that remove the same item, one gets a 404.
         */
        delete: operations["remove_conversation_item"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/conversations/transcript/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a conversation
         * @description Returns every message verbatim, oldest first, imported ones included. An unknown conversation is empty.
         */
        get: operations["get_transcript"];
        put?: never;
        post?: never;
        /**
         * Erase a conversation
         * @description Erases all its messages, as `DELETE /api/v1/messages/{message_id}/` erases one. Later messages stay. For an unknown conversation the receipt finds nothing. A graph's session with the same thread id is not cleared.
         */
        delete: operations["erase_conversation"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/erasures/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Request the erasure of a user
         * @description Everything about the user, and about all users linked to them, is removed by a process of the operators: `Location` has the progress and the receipt. It cannot be undone. A key that is bound to a user erases that user only; if others are linked to the user, it takes a key of the whole tenant.
         */
        post: operations["request_erasure"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/erasures/{erasure_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the state of an erasure */
        get: operations["get_erasure"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/escalations/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List escalations, newest first */
        get: operations["list_escalations"];
        put?: never;
        /**
         * Escalate a conversation to a person, or hand it to another agent
         * @description The agent stops answering in the conversation. Without `to_agent`, messages of the user are held with the status `with_person` until a person answers them in the admin. With `to_agent`, that agent answers, as itself and with its own memory, what is sent to the conversation's agent. A conversation that a person, or the same agent, has already stays unchanged (200). A conversation that another agent has is handed on.
         */
        post: operations["open_escalation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/escalations/{escalation_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an escalation */
        get: operations["get_escalation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/escalations/{escalation_id}/assignment/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Assign an escalation to a member of the team
         * @description It moves to their list. Others may answer and resolve it, too.
         */
        put: operations["assign_escalation"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/escalations/{escalation_id}/resolution/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resolve an escalation
         * @description The conversation's own agent answers there again.
         */
        post: operations["resolve_escalation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extraction-runs/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List extraction runs, newest first */
        get: operations["list_extraction_runs"];
        put?: never;
        /**
         * Preview the facts of a conversation
         * @description Asks for the facts of the messages that the next run would process, and returns a run that shows what it would change. No fact changes before the run is applied. The response comes when the language model has answered.
         */
        post: operations["preview_extraction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extraction-runs/{run_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get an extraction run
         * @description Returns each candidate with its outcome and the fact that it led to, or why it was refused, and the answer of the language model as it came.
         */
        get: operations["get_extraction_run"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extraction-runs/{run_id}/apply/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Apply a preview
         * @description Records its facts as a run of the worker does: those that need a review are proposed. A run that is no preview is a 409 `wrong-state`.
         */
        post: operations["apply_extraction_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extraction-runs/{run_id}/comparison/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare a run with another one
         * @description Such as with its replay by another language model.
         */
        get: operations["compare_extraction_runs"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extraction-runs/{run_id}/replay/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the input of a run again
         * @description Such as with another language model: a preview of the same messages, to be compared with the run.
         */
        post: operations["replay_extraction_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extraction-runs/{run_id}/roll-back/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Roll a run back
         * @description Removes the facts and the evidence of the run, and restores what they superseded. A fact with evidence of another run stays, and so does one that a person or a program changed or confirmed. `result.rolled_back` has the counts. A run that was not applied is a 409 `wrong-state`.
         */
        post: operations["roll_back_extraction_run"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extractions/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List conversations with how far they are processed */
        get: operations["list_extractions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/extractions/{extraction_id}/retry/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retry a failed extraction
         * @description The conversation is processed anew from where it is, with all attempts. One that has not failed is a 409 `wrong-state`.
         */
        post: operations["retry_extraction"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List facts, newest first
         * @description Returns the facts that are valid now, or that were valid `at` a given time; with `state` the facts in that state, such as those that are `proposed` and wait for a review.
         */
        get: operations["list_facts"];
        put?: never;
        /**
         * Store a fact
         * @description The same text of the same agent and user is the same fact: it is returned with `created: false`. The other fields of the request are not lost: metadata is added to the stored metadata, and `valid_from`, `valid_to` and `expires_at` take the new values. The old values are kept as a version. Facts with nearly the same meaning are listed in `near_duplicates`.
         */
        post: operations["create_fact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a fact
         * @description Returns the fact with its evidence, as it is, or as it was `at` a given time. An active fact that is not valid any more, or has expired, is a 404. Its history stays. A fact in another state, such as one that is proposed, is returned with that state.
         */
        get: operations["get_fact"];
        put?: never;
        post?: never;
        /**
         * Delete a fact
         * @description The fact and all its versions are deleted for good.
         */
        delete: operations["delete_fact"];
        options?: never;
        head?: never;
        /**
         * Change a fact
         * @description Omitted fields stay. The old values are kept as a version, which was valid until now, or until `valid_from`. To end a fact, set `valid_to` or `expires_at`.
         */
        patch: operations["change_fact"];
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/confirm/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirm a proposed fact
         * @description It becomes active, and supersedes the fact in `replaces`. A key does not confirm what it proposed itself, or what another key of the same person proposed: 409 `own-proposal`. A fact that is not proposed is a 409 `wrong-state`.
         */
        post: operations["confirm_fact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/events/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the events of a fact, newest first
         * @description Returns each change of the fact's state with its author and reason: in the admin, by an API key, by an extraction run.
         */
        get: operations["list_fact_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/history/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the versions of a fact, newest first
         * @description Returns the current version, then the earlier ones. Versions of an expired fact are listed too.
         */
        get: operations["list_fact_versions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/reject/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a proposed fact
         * @description It is not proposed again from the same messages, or from copies of them. A fact that is not proposed is a 409 `wrong-state`.
         */
        post: operations["reject_fact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/replies/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the replies that used a fact, newest first
         * @description Returns the recall events of replies with the fact in their prompt. For a fact about no user, the newest 20,000 recalls are searched.
         */
        get: operations["list_fact_replies"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/restore/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undo a rejection, a retraction or a supersession
         * @description A rejected fact is proposed again; a retracted or superseded one is active again. If its slot has another value by now, that is a 409 `slot-taken`: retract that fact first.
         */
        post: operations["restore_fact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/{memory_id}/retract/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Retract a fact that was wrong
         * @description Agents no longer use it; its history stays. To end a fact that was right, change its `valid_to`. A fact that is neither active nor superseded is a 409 `wrong-state`.
         */
        post: operations["retract_fact"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/batch/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Store several facts
         * @description Up to 100 facts, each as `POST /api/v1/facts/` takes it. All of them are stored, or none. The same request again stores nothing twice, because the same text of the same agent and user is the same fact.
         */
        post: operations["create_facts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/search/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search facts
         * @description Returns the facts that are nearest in meaning to a text, best first.
         */
        post: operations["search_facts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/identities/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List identities, newest first */
        get: operations["list_identities"];
        put?: never;
        /**
         * Create or rename an identity
         * @description A channel does this itself with the first message of a sender. A new identity is a user of its own; link it to make it an existing user.
         */
        post: operations["name_identity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/identities/{identity_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an identity */
        get: operations["get_identity"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/identities/{identity_id}/link/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Link an identity to a user
         * @description From now on the identity's messages are this user's. Its earlier messages follow: a process of the operators moves them within a minute or two.
         */
        put: operations["link_identity"];
        post?: never;
        /**
         * Unlink an identity from its user
         * @description From now on the identity is a user of its own. Moved messages stay with the former user.
         */
        delete: operations["unlink_identity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/memories/search/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Search an agent's memory of a user
         * @description Messages by the recall of the pipeline, and with `include` facts by their similarity to the query, which is embedded once for both. Each list has its own scores: a message's `probability` that it is relevant, a fact's cosine. With `gate` a fact needs a cosine of 0.18, one of the 3 nearest 0.1, as in a prompt.
         */
        post: operations["search_memories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List messages, newest first
         * @description Returns every message that was sent, on any channel, with its reply.
         */
        get: operations["list_messages"];
        put?: never;
        /**
         * Send a message to an agent
         * @description The message is accepted and answered by a worker. Ask at `url` for the reply, or pass `wait` to get it in this response if it comes in time. A message that is held has a 200 at once, without a reply: `waits_for` has the reason and the next step.
         *
         *     With `Accept: text/event-stream` the response is a stream of server-sent events, for at most 180 seconds or `wait`: `accepted` with the message, `text` with `{"text": "…"}` for each piece of the reply as the language model writes it, and last either `message` with the final message and its `reply`, or `error` with a problem. The reply is stored even if the client closes the stream.
         */
        post: operations["send_message"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages/{message_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a message and its reply
         * @description Returns the status of the message. With `wait`, the response comes with the reply, when the message fails or is held (see `waits_for`), or after the given seconds.
         */
        get: operations["get_message"];
        put?: never;
        post?: never;
        /**
         * Erase a message
         * @description Erases the message, whether it was sent, imported or a reply, with its reply, with everything that was remembered of both, and with facts whose metadata name it as `message_id`. A process of the operators does it: `Location` has the progress and the receipt. It cannot be undone. The other messages of the conversation stay. A message whose reply alone is erased has the status `failed`.
         */
        delete: operations["erase_message"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages/{message_id}/exclusions/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List what of a message is excluded from recall, newest first */
        get: operations["list_exclusions"];
        put?: never;
        /**
         * Exclude a message, or words of it, from recall
         * @description Agents no longer recall it. The transcript keeps it, and so do the recent turns. Words that are excluded already stay so: the answer is their exclusion.
         */
        post: operations["exclude_from_recall"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages/{message_id}/exclusions/{exclusion_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove an exclusion, also one that the correction of a fact has made
         * @description Recall can find the message, or its words, again.
         */
        delete: operations["include_again"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages/import/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import history
         * @description Up to 1000 messages in one request. A message needs role and content; the
         *     answer has the id, thread and time of each. An invalid one does not keep the others from being
         *     imported. Nothing is answered; embeddings follow in bulk, and `GET /api/v1/usage/` returns
         *     how many are pending.
         *
         *     Messages are identified by their `external_id`, for each agent and user. A message without one gets
         *     one, made of its time and text. If it has no time either, the id is made of its text, of the texts
         *     before it in the request, and of the last message of the thread. So the same request, sent again,
         *     stores nothing twice, nor does a request with more messages at its end, if nothing else was sent in
         *     the thread meanwhile. An `Idempotency-Key` takes the place of the thread: with a new key the same
         *     texts are new messages, with the same key they are the same.
         */
        post: operations["import_messages"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/recall-events/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List recall events, newest first
         * @description There is one for each reply, written shortly after it.
         */
        get: operations["list_recall_events"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/recall-events/{event_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a recall event
         * @description It has the prompt as it was sent, which keys that are bound to a user may not read.
         */
        get: operations["get_recall_event"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/recall-events/{event_id}/marks/{message_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Mark a recalled memory as relevant, not relevant or unsure
         * @description The mark replaces another one on the same memory. It changes the probabilities that people see, and not what is recalled. Keys that are bound to a user may not mark.
         */
        put: operations["mark_recalled_memory"];
        post?: never;
        /** Remove the mark from a recalled memory */
        delete: operations["remove_recall_mark"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reply-reviews/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List marks on replies, newest first */
        get: operations["list_reply_reviews"];
        put?: never;
        /**
         * Mark a reply as right, wrong or unsure
         * @description A key, or a person, has one mark on each reply: another one replaces it (200). A message that is no reply of an agent is a 404. A mark is erased with its reply.
         */
        post: operations["review_reply"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/search/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search messages, facts and people
         * @description Messages of all people, by words and by meaning; facts by meaning; people by names, ids and linked accounts. Messages without a word of the query, and facts, need a cosine of 0.28. A key that is bound to an agent or a user searches only their part. An agent's own recall, with the context of each conversation, is `search_memories`.
         */
        get: operations["search_everything"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List sessions, last used first
         * @description Sessions are threads of graphs that were compiled with Konstruct's checkpointer. Threads of channels are conversations.
         */
        get: operations["list_sessions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/{thread_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a session with its messages */
        get: operations["get_session"];
        put?: never;
        post?: never;
        /**
         * Clear a session
         * @description Its whole history is deleted for good. Messages in the transcript stay.
         */
        delete: operations["clear_session"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tool-calls/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tool calls
         * @description `state=waiting` lists the calls that need a user's consent. Each has the `question` to ask.
         */
        get: operations["list_tool_calls"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tool-calls/{call_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a tool call */
        get: operations["get_tool_call"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tool-calls/{call_id}/decision/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve or deny a tool call
         * @description Send the user's answer to the call's `question`. A worker executes an approved call once, and the message is answered. The same decision again changes nothing.
         */
        post: operations["decide_tool_call"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Count stored and pending rows */
        get: operations["get_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/days/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get messages, replies by source, reply times, tokens and marks by day
         * @description A day that has ended is counted once: later imports and erasures do not change its numbers until it is counted again in the admin.
         */
        get: operations["get_usage_by_day"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/usage/models/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Sum calls, tokens and money of language models by day, agent, purpose and model */
        get: operations["get_model_usage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List end users
         * @description Every user with a message or a fact, in the order of their ids, with counts of the messages and facts that the key may see. Messages with each agent, and facts, are counted up to 1,000, and up to 10,000 where `user_id` names one user.
         */
        get: operations["list_users"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/users/{user_id}/timeline/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List what happened to a user and by them, the latest first
         * @description Ids that are linked to the user are the same person's. A key that is bound to an agent or a user gets the events of this id and agent alone, without linked accounts and without who read the user's data. A person gets the kinds that their permissions allow to see. `previous` is always null.
         */
        get: operations["list_timeline"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/windows/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read a window
         * @description Returns the turns that the agent gets with the user's next message, oldest first.
         */
        get: operations["get_window"];
        put?: never;
        post?: never;
        /**
         * Clear a window
         * @description The agent starts anew with the user: it gets no earlier turn as a recent one. The transcript stays, and earlier messages can still be recalled.
         */
        delete: operations["clear_window"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description * `enter` - entered
         *     * `propose` - proposed
         *     * `confirm` - confirmed
         *     * `change` - changed
         *     * `supersede` - superseded
         *     * `retract` - retracted
         *     * `reject` - rejected
         *     * `restore` - restored
         * @enum {string}
         */
        ActionEnum: "enter" | "propose" | "confirm" | "change" | "supersede" | "retract" | "reject" | "restore";
        /** @description An agent. */
        Agent: {
            /** Format: uuid */
            readonly id: string;
            /** @description Where it is. */
            readonly url: string;
            /** @description How programs and people call it. Unique in the tenant, and not a UUID. */
            name: string;
            /** @description What it is for and how it works. Opens every prompt. */
            system_prompt?: string;
            /** @description Who it is: “You are Ada, the librarian …” */
            identity?: string;
            /** @description How it speaks: tone, language, manners. */
            persona?: string;
            /** @description Model name for the LLM pool. Blank: LLM_MODEL, or the pool decides by tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /**
             * Accepts instructions of applications
             * @description Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed.
             */
            accepts_client_instructions?: boolean;
            /**
             * Most tokens of an answer
             * @description Tokens that one answer of the language model may have. An application may ask for fewer. Blank: no limit but the model's own.
             */
            max_completion_tokens?: number | null;
            /** @description An inactive agent accepts no messages; its memory stays. */
            is_active?: boolean;
            /**
             * @description How it looks for memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description At most this many memories go into a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out what is probably beside the question, all of it if need be. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how sure recall must be. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer that are beside the question
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more that are beside the question
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: the best memory must have this value of the gate, else none is given. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have this value of the gate. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Turns before and after a memory that are given along with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights: {
                [key: string]: number;
            };
            /** @description What it may do beside answering: remember_fact keeps a fact about the user, who is asked first. */
            tools?: string[];
            /** @description Words or phrases with which a message calls for a person, beside plain requests such as “talk to a human”, which always do. */
            escalate_on?: string[];
            /** @description A person is called when so many replies in a row were given up in a thread. Blank: never. */
            escalate_after_failures?: number | null;
            /** @description Agents to which its language model may hand a conversation, by the tool hand_to_agent. */
            hands_to?: string[];
            /** @description Words or phrases with which a message is for another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. */
            hand_over_on: {
                [key: string]: string;
            };
            /** @description Words or phrases with which a conversation that was handed to it goes back to the agent before. */
            hand_back_on?: string[];
            /** @description Extract facts from conversations when they are quiet, with a language model, or by a few rules if there is none. */
            extracts_facts?: boolean;
            /** @description Model that extracts facts. Blank: the agent's model. */
            extraction_model?: string;
            /** @description A conversation is quiet after so many seconds without a message. */
            extraction_idle_seconds?: number;
            /** @description Messages that one request to the language model covers at most, 1 to 200. A conversation with so many new messages is not waited for. */
            extraction_batch_size?: number;
            /**
             * Most tokens for facts a day
             * @description Tokens that extraction may use for this agent on a day (UTC). Blank: no limit.
             */
            extraction_max_tokens_per_day?: number | null;
            /**
             * Review of facts
             * @description Which extracted facts a person confirms before agents use them.
             *
             *     * `none` - none: use all facts at once
             *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics, low confidence
             *     * `all` - all
             */
            fact_review?: components["schemas"]["FactReviewEnum"];
            /** @description Other rules for single slots, such as {"diet": "all", "hobby": "none"}. */
            fact_review_by_slot: {
                [key: string]: "none" | "doubtful" | "all";
            };
            /**
             * Format: date-time
             * @description When it was made.
             */
            readonly created_at: string;
        };
        /** @description The fields of a new agent. */
        AgentFields: {
            /** @description How programs and people call it. Unique in the tenant, and not a UUID. */
            name: string;
            /** @description What it is for and how it works. Opens every prompt. */
            system_prompt?: string;
            /** @description Who it is: “You are Ada, the librarian …” */
            identity?: string;
            /** @description How it speaks: tone, language, manners. */
            persona?: string;
            /** @description Model name for the LLM pool. Blank: LLM_MODEL, or the pool decides by tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed. */
            accepts_client_instructions?: boolean;
            /** @description Tokens that one answer of the language model may have. An application may ask for fewer. Blank: no limit but the model's own. */
            max_completion_tokens?: number | null;
            /** @description An inactive agent accepts no messages; its memory stays. */
            is_active?: boolean;
            /**
             * @description How it looks for memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description At most this many memories go into a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out what is probably beside the question, all of it if need be. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how sure recall must be. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer that are beside the question
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more that are beside the question
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: the best memory must have this value of the gate, else none is given. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have this value of the gate. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Turns before and after a memory that are given along with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights?: components["schemas"]["RecallWeights"];
            /** @description What it may do beside answering: remember_fact keeps a fact about the user, who is asked first. */
            tools?: components["schemas"]["ToolsEnum"][];
            /** @description Words or phrases with which a message calls for a person, beside plain requests such as “talk to a human”, which always do. */
            escalate_on?: string[];
            /** @description A person is called when so many replies in a row were given up in a thread. Blank: never. */
            escalate_after_failures?: number | null;
            /** @description Agents to which its language model may hand a conversation, by the tool hand_to_agent. Names or ids. */
            hands_to?: string[];
            /** @description Words or phrases with which a message is for another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. A name is taken too. */
            hand_over_on?: {
                [key: string]: string;
            };
            /** @description Words or phrases with which a conversation that was handed to it goes back to the agent before. */
            hand_back_on?: string[];
            /** @description Extract facts from conversations when they are quiet, with a language model, or by a few rules if there is none. */
            extracts_facts?: boolean;
            /** @description Model that extracts facts. Blank: the agent's model. */
            extraction_model?: string;
            /** @description A conversation is quiet after so many seconds without a message. */
            extraction_idle_seconds?: number;
            /** @description Messages that one request to the language model covers at most, 1 to 200. A conversation with so many new messages is not waited for. */
            extraction_batch_size?: number;
            /** @description Tokens that extraction may use for this agent on a day (UTC). Blank: no limit. */
            extraction_max_tokens_per_day?: number | null;
            /**
             * @description Which extracted facts a person confirms before agents use them.
             *
             *     * `none` - none: use all facts at once
             *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics, low confidence
             *     * `all` - all
             */
            fact_review?: components["schemas"]["FactReviewEnum"];
            /** @description Other rules for single slots, such as {"diet": "all", "hobby": "none"}. */
            fact_review_by_slot?: {
                [key: string]: "none" | "doubtful" | "all";
            };
        };
        /** @description An agent that has talked with the user. */
        AgentOfUser: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @description Messages of user and agent, up to the limit of the count. */
            messages: number;
        };
        /** @description A page of a list. */
        AgentPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Agent"][];
        };
        /** @description The settings of an agent after a change. */
        AgentVersion: {
            /** @description 1 for the first version of the agent. */
            number: number;
            /** @description All settings of the agent, by the names of its columns. */
            settings: {
                [key: string]: unknown;
            };
            /** @description Names of the settings that differ from the version before. */
            changed: string[];
            /** @description Number of the version that this one restores. */
            restores: number | null;
            /** @description What the author says of the change. */
            note: string;
            /** @description Kind and id of the author, such as person:7; system: for the platform. */
            author: string;
            /** @description Name of the author at that time. */
            author_name: string;
            /**
             * Format: date-time
             * @description When the agent changed.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        AgentVersionPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["AgentVersion"][];
        };
        /** @description The member of the team who takes care of an escalation. */
        Assignment: {
            /** @description Username of a member of the team who may answer; empty: no one. */
            assigned_to: string;
        };
        /**
         * @description * `person` - person
         *     * `program` - program with an API key
         *     * `operator` - operator's command
         *     * `run` - extraction run
         *     * `system` - the platform
         * @enum {string}
         */
        AuthorKindEnum: "person" | "program" | "operator" | "run" | "system";
        /** @enum {unknown} */
        BlankEnum: "";
        /** @description What probabilities are calibrated by. */
        Calibration: {
            /** @description By the tenant's own marks; false: by public data, until there are enough marks. */
            is_own: boolean;
            /** @description Marks of the tenant's reviewers that say relevant or not relevant. */
            marks: number;
        };
        /** @description The value of a channel, as LangGraph's serializer has written it. */
        ChannelValue: {
            channel: string;
            /** @description Its encoding: msgpack, json, bytes, null … */
            type: string;
            /** @description In base64. */
            value: string;
        };
        /** @description A message of a chat. */
        ChatMessage: {
            role: string;
            content: string;
        };
        /** @description A checkpoint, with its values and what was written since. */
        Checkpoint: {
            thread_id: string;
            checkpoint_ns: string;
            checkpoint_id: string;
            parent_checkpoint_id: string | null;
            checkpoint: {
                [key: string]: unknown;
            };
            values: components["schemas"]["ChannelValue"][];
            metadata: {
                [key: string]: unknown;
            };
            pending_writes: components["schemas"]["PendingWrite"][];
        };
        /** @description A page of a list. */
        CheckpointPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Checkpoint"][];
        };
        /** @description A checkpoint without its values. */
        CheckpointState: {
            /** @description LangGraph's format. */
            v: number;
            /** @description Ids grow with time. */
            id: string;
            /** Format: date-time */
            ts: string;
            channel_versions: {
                [key: string]: string | number;
            };
            versions_seen: {
                [key: string]: {
                    [key: string]: string | number;
                };
            };
            updated_channels?: string[] | null;
        };
        /** @description The accepted candidates of two runs, by subject, slot and value. */
        Comparison: {
            /** @description Candidates of both runs, as the first has them. */
            both: {
                [key: string]: unknown;
            }[];
            /** @description Candidates of this run alone. */
            only_first: {
                [key: string]: unknown;
            }[];
            /** @description Candidates of the other run alone. */
            only_second: {
                [key: string]: unknown;
            }[];
            /** @description Pairs of candidates with the same subject and slot, and different values. */
            changed: {
                [key: string]: unknown;
            }[][];
        };
        /** @description A task, and the agent and user of its memories. */
        Compile: {
            /** @description Name or id of an agent: its prompt, its recall, its facts. */
            agent: string;
            /** @description The current question: text, or an object with a `description` and further data of yours. Facts and conversations are searched with the text or the description; without one nothing is searched. Each further field is a line of the task in the prompt. */
            task: string | ({
                description?: string;
            } & {
                [key: string]: unknown;
            });
            /** @description The user. Without it, no user's facts and messages are included. */
            user_id?: string;
            /** @description A LangGraph thread, whose turns are the session. Default, and for a thread without a history: the user's recent turns with the agent. */
            thread_id?: string;
            /** @description The turns before the task, oldest first, if you have them yourself. */
            messages?: components["schemas"]["GivenTurn"][];
            /** @description In the place of the agent's. */
            system_prompt?: string;
            /**
             * @description fast: 8,000 tokens, reasoning: 32,000. Default: the agent's.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
        };
        /** @description The sections that fit into one prompt, and the prompt. */
        Compiled: {
            system_prompt: string;
            /** @description The newest turns of the session. */
            messages: components["schemas"]["ChatMessage"][];
            /** @description Facts and recalled turns, an item a line. */
            context: string;
            task: string;
            token_usage: components["schemas"]["TokenUsage"];
            model_tier: string;
            /** @description Tokens that the whole prompt may have. */
            budget: number;
            left_out: components["schemas"]["LeftOut"];
            /** @description Of each item of the context, in order. */
            sources: components["schemas"]["Source"][];
            /** @description Ready for a chat model. */
            prompt: components["schemas"]["ChatMessage"][];
        };
        /** @description An agent's conversation with a user in one thread. */
        Conversation: {
            /**
             * Format: uri
             * @description Its transcript.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            thread_id: string;
            /** @description Turns of both. */
            messages: number;
            /**
             * Format: date-time
             * @description When it began.
             */
            first_at: string;
            /**
             * Format: date-time
             * @description The time of the last message.
             */
            last_at: string;
            /**
             * @description Who spoke last.
             *
             *     * `user` - User
             *     * `assistant` - Assistant
             */
            last_role: components["schemas"]["RoleEnum"];
            /** @description The first 200 characters of the last message. */
            last_content: string;
        };
        /** @description A page of a list. */
        ConversationPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Conversation"][];
        };
        /** @description The user's decision. */
        Decision: {
            /** @description true executes the call, false denies it. */
            approve: boolean;
        };
        /** @description Settings of a draft of an agent; the others are the agent's. */
        DraftFields: {
            /** @description What it is for and how it works. Opens every prompt. */
            system_prompt?: string;
            /** @description Who it is: “You are Ada, the librarian …” */
            identity?: string;
            /** @description How it speaks: tone, language, manners. */
            persona?: string;
            /** @description Model name for the LLM pool. Blank: LLM_MODEL, or the pool decides by tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Tokens that one answer of the language model may have. An application may ask for fewer. Blank: no limit but the model's own. */
            max_completion_tokens?: number | null;
            /**
             * @description How it looks for memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description At most this many memories go into a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out what is probably beside the question, all of it if need be. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how sure recall must be. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer that are beside the question
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more that are beside the question
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: the best memory must have this value of the gate, else none is given. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have this value of the gate. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Turns before and after a memory that are given along with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights?: components["schemas"]["RecallWeights"];
            /** @description What it may do beside answering: remember_fact keeps a fact about the user, who is asked first. */
            tools?: components["schemas"]["ToolsEnum"][];
            /** @description Words or phrases with which a message calls for a person, beside plain requests such as “talk to a human”, which always do. */
            escalate_on?: string[];
            /** @description Agents to which its language model may hand a conversation, by the tool hand_to_agent. Names or ids. */
            hands_to?: string[];
            /** @description Words or phrases with which a message is for another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. A name is taken too. */
            hand_over_on?: {
                [key: string]: string;
            };
            /** @description Words or phrases with which a conversation that was handed to it goes back to the agent before. */
            hand_back_on?: string[];
        };
        /** @description What would come of a message. */
        DryReply: {
            /** @description The reply. Empty: there would be none, or none yet. */
            reply: string;
            /** @description Name of the agent that answers. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            /** @description What would be decided, and why. */
            steps: string[];
            /** @description Why the language model gave no usable answer. Empty: there was no problem. */
            problem: string;
            /**
             * Format: date-time
             * @description When the message was sent.
             */
            asked_at: string;
            /**
             * Format: date-time
             * @description When the reply was there.
             */
            answered_at: string;
            /** @description null: no language model would be asked. */
            recall: components["schemas"]["DryTrace"] | null;
        };
        /** @description The replies of an agent and of a draft of it. */
        DryRun: {
            /** @description Send it with the next message, within a day. null: the conversation has 20 messages, or is too long for more. */
            conversation: string | null;
            /** @description The person who writes. */
            user_id: string | null;
            /** @description Names of the settings in which the draft differs from the agent. */
            changes: string[];
            /** @description Of the agent as it is. */
            live: components["schemas"]["DryReply"];
            /** @description Of the draft. null: there is none that differs. */
            draft: components["schemas"]["DryReply"] | null;
        };
        /** @description What was recalled for a reply, and the prompt, as in a recall event. */
        DryTrace: {
            /** @description What was found, best first, with the score of every channel, the calibrated `probability`, and as `mark` the reviewer's mark, if there is one. */
            hits: {
                [key: string]: unknown;
            }[];
            /** @description The best of what was left out, and why; otherwise as in `hits`. */
            cut: {
                [key: string]: unknown;
            }[];
            /** @description The facts that were weighed, and why. */
            facts: {
                [key: string]: unknown;
            }[];
            /** @description What the language model was given, as given. */
            injected: string[];
            /** @description The prompt as it was sent, with the tokens of each section; null if not kept. */
            prompt: {
                [key: string]: unknown;
            } | null;
            /** @description The query. */
            query: string;
            /** @description Nothing was worth giving. */
            abstained: boolean;
            embedding_model: string;
            /**
             * Format: double
             * @description Time that the recall took.
             */
            milliseconds: number;
        };
        /** @description A request, and in the end its receipt. */
        Erasure: {
            /** Format: uri */
            url: string;
            /** Format: uuid */
            id: string;
            /** @description The user. Once it is done, a keyed digest in its place: `erased:…`. */
            user_id: string;
            /** @description All ids of the person, which go together: the one that was named, and those that are linked to it. Once it is done, their digests. */
            user_ids: string[];
            /**
             * Format: uuid
             * @description Null: all agents forget.
             */
            agent_id: string | null;
            /** @description The one conversation that is erased, or of which a message is. Null: the user is forgotten. */
            thread_id?: string | null;
            /**
             * Format: uuid
             * @description The one message that is erased.
             */
            message_id?: string | null;
            reason: string;
            requested_by: string;
            /** Format: date-time */
            created_at: string;
            /**
             * @description done: the receipt says what was removed, and what goes only later.
             *
             *     * `requested` - requested
             *     * `running` - running
             *     * `done` - done
             */
            state: components["schemas"]["ErasureStateEnum"];
            /** @description While it is running. */
            progress: components["schemas"]["ErasureProgress"] | null;
            /** @description Why it could not be finished yet, or empty. */
            problem: string;
            /** Format: date-time */
            done_at: string | null;
            /** @description How much was removed of what, with digests of the ids, and without texts. `found` is false where nothing was kept of the user. `storage` says which files were rewritten, and when the others lose the removed values. */
            receipt: unknown;
        };
        /** @description How far an erasure is. */
        ErasureProgress: {
            /** @description What is being done. */
            step: string;
            /** @description So many messages are removed. */
            messages_removed: number;
            /** @description Of so many that were found until now. */
            messages: number;
        };
        /**
         * @description * `requested` - requested
         *     * `running` - running
         *     * `done` - done
         * @enum {string}
         */
        ErasureStateEnum: "requested" | "running" | "done";
        /** @description A thread in which a person or another agent answers, or has answered. */
        Escalation: {
            /** Format: uuid */
            readonly id: string;
            /** Format: uri */
            url: string;
            /**
             * @description open: a person or `to_agent` answers, and not the thread's own agent.
             *
             *     * `open` - open
             *     * `resolved` - resolved
             */
            state: components["schemas"]["EscalationStateEnum"];
            /** @description The agent's name. */
            agent: string;
            /**
             * Agent
             * Format: uuid
             * @description The agent whose memory this is.
             */
            agent_id: string;
            /**
             * User
             * @description The user as the channel knows them, such as a Slack user id.
             */
            user_id: string;
            /**
             * Thread
             * @description The conversation, as the channel knows it.
             */
            thread_id: string;
            /** @description Where it takes place: rest, slack … */
            channel: string;
            /**
             * Message
             * Format: uuid
             * @description The message that asked for it: its reply says that a person will answer.
             */
            message_id?: string | null;
            /** @description The name of the agent that answers instead; empty where a person does. */
            to_agent: string;
            /**
             * To agent
             * Format: uuid
             * @description The agent that answers instead; empty where a person answers.
             */
            to_agent_id?: string | null;
            /**
             * From agent
             * Format: uuid
             * @description The agent that answered before, to which a handover can be handed back.
             */
            from_agent_id?: string | null;
            /**
             * @description Who opened it.
             *
             *     * `user` - the user asked for it
             *     * `rule` - a rule of the agent's
             *     * `agent` - an agent's language model
             *     * `program` - a program
             *     * `person` - a person in the admin
             */
            opened_by: components["schemas"]["OpenedByEnum"];
            /** @description Their name, if it was a program or person. */
            opened_by_name?: string;
            /** @description Why, in words. */
            reason: string;
            /**
             * Format: date-time
             * @description Since when.
             */
            opened_at: string;
            /** @description Username of the colleague who takes care of it; empty: unassigned. */
            assigned_to?: string;
            /**
             * Format: date-time
             * @description Until when; empty while it is open.
             */
            resolved_at?: string | null;
            /** @description Who resolved it. */
            resolved_by?: string;
            /** @description Note on the outcome, for the record. */
            note?: string;
            /**
             * @description How it ended; empty while it is open.
             *
             *     * `` - open, or resolved before outcomes were kept
             *     * `resolved` - resolved: the thread's own agent answers again
             *     * `handed_on` - handed on to an agent
             *     * `handed_back` - handed back to the agent before
             *     * `to_person` - a person was asked for
             */
            outcome: components["schemas"]["OutcomeEnum"] | components["schemas"]["BlankEnum"];
        };
        /** @description A page of a list. */
        EscalationPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Escalation"][];
        };
        /**
         * @description * `open` - open
         *     * `resolved` - resolved
         * @enum {string}
         */
        EscalationStateEnum: "open" | "resolved";
        /** @description The words of a message that a fact rests on. */
        Evidence: {
            /**
             * Format: uuid
             * @description The message.
             */
            message_id: string;
            /**
             * Format: uri
             * @description The message's address.
             */
            url: string;
            /** @description First character of the quote in the message. */
            start: number;
            /** @description Position after the last character of the quote. */
            end: number;
            /** @description The words of the message, verbatim. */
            quote: string;
            /**
             * Format: uuid
             * @description The extraction run that found it.
             */
            run_id: string | null;
        };
        /** @description A message, or words of it, that recall leaves out. */
        Exclusion: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uuid
             * @description The message.
             */
            message_id: string;
            /** @description First character of the words; null: the whole message. */
            start: number | null;
            /** @description Position after the last character of the words. */
            end: number | null;
            /**
             * Format: uuid
             * @description The corrected fact that excluded it, or its old version; null: it was excluded by itself.
             */
            memory_id: string | null;
            /** @description The author's reason. */
            reason: string;
            author_kind: components["schemas"]["AuthorKindEnum"];
            /** @description Name of the author. */
            author_name: string;
            /**
             * Format: date-time
             * @description When it was excluded.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        ExclusionPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Exclusion"][];
        };
        /** @description How far the facts of a conversation are extracted. */
        Extraction: {
            /** Format: uuid */
            id: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            /** @description The conversation. */
            thread_id: string;
            /**
             * @description queued: messages wait, or are waited for; failed: no further attempt is made; processed: no message waits.
             *
             *     * `queued` - queued
             *     * `failed` - failed
             *     * `processed` - processed
             */
            state: components["schemas"]["ExtractionStateEnum"];
            /** @description `number` of the last message that was processed. 0: none yet. */
            last_number: number;
            /**
             * Format: date-time
             * @description When the last run ended.
             */
            processed_at: string | null;
            /** @description Attempts since the last success. */
            attempts: number;
            /** @description Why the last attempt failed, or what is waited for. */
            last_error: string;
            /**
             * Format: date-time
             * @description When the next attempt is due. null: nothing waits.
             */
            due_at: string | null;
        };
        /** @description A page of a list. */
        ExtractionPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Extraction"][];
        };
        /** @description A run, without its candidates. */
        ExtractionRun: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description Where it is in full.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            /** @description The conversation. */
            thread_id: string;
            /**
             * @description A preview changes no facts.
             *
             *     * `running` - running
             *     * `preview` - preview
             *     * `applied` - applied
             *     * `failed` - failed
             *     * `rolled_back` - rolled back
             */
            state: components["schemas"]["RunStateEnum"];
            /** @description The messages that were processed, in their order. */
            message_ids: string[];
            /**
             * Format: uuid
             * @description The run of which this one repeats the input.
             */
            replay_of: string | null;
            /** @description Who asked for it. Empty: the platform. */
            requested_by: string;
            /** @description The language model. Empty: the rules. */
            model: string;
            /** @description Address of the language model. */
            endpoint: string;
            /** @description json_schema, json_object or text: what the endpoint supports. */
            response_format: string;
            /** @description SHA-256 of the instructions. */
            prompt_digest: string;
            /** @description Tokens sent. */
            prompt_tokens: number;
            /** @description Tokens received. */
            completion_tokens: number;
            /**
             * Format: decimal
             * @description By LLM_PRICE_….
             */
            cost: string;
            /** @description Counts: proposed, active, confirmed, superseded, and refused by reason. */
            result: {
                [key: string]: unknown;
            };
            /** @description Why it failed. */
            error: string;
            /**
             * Format: date-time
             * @description When it began.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ended.
             */
            ended_at: string | null;
        };
        /** @description A run with its candidates and the answer of the language model. */
        ExtractionRunInFull: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description Where it is in full.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            /** @description The conversation. */
            thread_id: string;
            /**
             * @description A preview changes no facts.
             *
             *     * `running` - running
             *     * `preview` - preview
             *     * `applied` - applied
             *     * `failed` - failed
             *     * `rolled_back` - rolled back
             */
            state: components["schemas"]["RunStateEnum"];
            /** @description The messages that were processed, in their order. */
            message_ids: string[];
            /**
             * Format: uuid
             * @description The run of which this one repeats the input.
             */
            replay_of: string | null;
            /** @description Who asked for it. Empty: the platform. */
            requested_by: string;
            /** @description The language model. Empty: the rules. */
            model: string;
            /** @description Address of the language model. */
            endpoint: string;
            /** @description json_schema, json_object or text: what the endpoint supports. */
            response_format: string;
            /** @description SHA-256 of the instructions. */
            prompt_digest: string;
            /** @description Tokens sent. */
            prompt_tokens: number;
            /** @description Tokens received. */
            completion_tokens: number;
            /**
             * Format: decimal
             * @description By LLM_PRICE_….
             */
            cost: string;
            /** @description Counts: proposed, active, confirmed, superseded, and refused by reason. */
            result: {
                [key: string]: unknown;
            };
            /** @description Why it failed. */
            error: string;
            /**
             * Format: date-time
             * @description When it began.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ended.
             */
            ended_at: string | null;
            /** @description Each candidate with its outcome and the fact that it led to. */
            candidates: {
                [key: string]: unknown;
            }[];
            /** @description The answer of the model, verbatim. */
            output: string;
        };
        /** @description A page of a list. */
        ExtractionRunPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["ExtractionRun"][];
        };
        /**
         * @description * `queued` - queued
         *     * `failed` - failed
         *     * `processed` - processed
         * @enum {string}
         */
        ExtractionStateEnum: "queued" | "failed" | "processed";
        /** @description A fact, or an earlier version. */
        Fact: {
            /**
             * Format: uuid
             * @description The fact's id, through all changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description Who knows it; null: all agents. */
            agent: string | null;
            /** Format: uuid */
            agent_id: string | null;
            /** @description The user whom it is about, or null. */
            user_id: string | null;
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was stored first.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When this version was written.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Since when it is so.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description Until when it was so.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description From then on it is not found any more.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description This version's id; the newest has the fact's.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description Whom or what the fact is about, by name. */
            subject: string;
            /** @description The attribute of the subject, in snake_case, such as home_city. Empty: none. */
            slot: string;
            /** @description The value of the slot, such as Oslo. */
            value: string;
            /** @description Whether several values of the slot can be valid at once. */
            is_multi_valued: boolean;
            /**
             * @description Whether it was stated in a message, concluded, or entered.
             *
             *     * `observed` - stated in a message
             *     * `inferred` - concluded from messages
             *     * `entered` - entered by a person or a program
             */
            kind: components["schemas"]["FactKindEnum"];
            /** @description Who stated it, by name. */
            asserter: string;
            /**
             * @description Only active facts are given to agents.
             *
             *     * `proposed` - proposed
             *     * `active` - active
             *     * `superseded` - superseded
             *     * `retracted` - retracted
             *     * `rejected` - rejected
             */
            state: components["schemas"]["FactStateEnum"];
            /**
             * @description How exactly “valid from” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_from_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * @description How exactly “valid until” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_to_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * Format: date-time
             * @description When the earliest message of its evidence was sent. Empty: when it was stored.
             */
            learned_at: string | null;
            /**
             * Format: date-time
             * @description When it was retracted.
             */
            retracted_at: string | null;
            /**
             * Format: uuid
             * @description The fact that this one supersedes, or would supersede if it is confirmed.
             */
            replaces: string | null;
            /**
             * Format: double
             * @description Confidence of the language model, 0 to 1.
             */
            confidence: number | null;
            /** @description Why a person is to review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
        };
        /** @description A change of a fact, and its author. */
        FactEvent: {
            /** Format: uuid */
            id: string;
            /**
             * @description The change.
             *
             *     * `enter` - entered
             *     * `propose` - proposed
             *     * `confirm` - confirmed
             *     * `change` - changed
             *     * `supersede` - superseded
             *     * `retract` - retracted
             *     * `reject` - rejected
             *     * `restore` - restored
             */
            action: components["schemas"]["ActionEnum"];
            /**
             * @description The kind of the author.
             *
             *     * `person` - person
             *     * `program` - program with an API key
             *     * `operator` - operator's command
             *     * `run` - extraction run
             *     * `system` - the platform
             */
            author_kind: components["schemas"]["AuthorKindEnum"];
            /** @description Id of the person, the API key or the extraction run; may be empty. */
            author_id: string;
            /** @description Name of the author; may be empty. */
            author_name: string;
            /** @description The author's reason; may be empty. */
            reason: string;
            /**
             * Format: uuid
             * @description The fact that superseded this one, or was superseded.
             */
            other_id: string | null;
            /**
             * Format: date-time
             * @description When it happened.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        FactEventPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["FactEvent"][];
        };
        /** @description A fact, or an earlier version, with its evidence. */
        FactInFull: {
            /**
             * Format: uuid
             * @description The fact's id, through all changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description Who knows it; null: all agents. */
            agent: string | null;
            /** Format: uuid */
            agent_id: string | null;
            /** @description The user whom it is about, or null. */
            user_id: string | null;
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was stored first.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When this version was written.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Since when it is so.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description Until when it was so.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description From then on it is not found any more.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description This version's id; the newest has the fact's.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description Whom or what the fact is about, by name. */
            subject: string;
            /** @description The attribute of the subject, in snake_case, such as home_city. Empty: none. */
            slot: string;
            /** @description The value of the slot, such as Oslo. */
            value: string;
            /** @description Whether several values of the slot can be valid at once. */
            is_multi_valued: boolean;
            /**
             * @description Whether it was stated in a message, concluded, or entered.
             *
             *     * `observed` - stated in a message
             *     * `inferred` - concluded from messages
             *     * `entered` - entered by a person or a program
             */
            kind: components["schemas"]["FactKindEnum"];
            /** @description Who stated it, by name. */
            asserter: string;
            /**
             * @description Only active facts are given to agents.
             *
             *     * `proposed` - proposed
             *     * `active` - active
             *     * `superseded` - superseded
             *     * `retracted` - retracted
             *     * `rejected` - rejected
             */
            state: components["schemas"]["FactStateEnum"];
            /**
             * @description How exactly “valid from” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_from_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * @description How exactly “valid until” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_to_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * Format: date-time
             * @description When the earliest message of its evidence was sent. Empty: when it was stored.
             */
            learned_at: string | null;
            /**
             * Format: date-time
             * @description When it was retracted.
             */
            retracted_at: string | null;
            /**
             * Format: uuid
             * @description The fact that this one supersedes, or would supersede if it is confirmed.
             */
            replaces: string | null;
            /**
             * Format: double
             * @description Confidence of the language model, 0 to 1.
             */
            confidence: number | null;
            /** @description Why a person is to review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
            /** @description What the fact rests on; empty for a fact that a person or a program entered. */
            evidence: components["schemas"]["Evidence"][];
        };
        /**
         * @description * `observed` - stated in a message
         *     * `inferred` - concluded from messages
         *     * `entered` - entered by a person or a program
         * @enum {string}
         */
        FactKindEnum: "observed" | "inferred" | "entered";
        /** @description A page of a list. */
        FactPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Fact"][];
        };
        /**
         * @description * `none` - none: use all facts at once
         *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics, low confidence
         *     * `all` - all
         * @enum {string}
         */
        FactReviewEnum: "none" | "doubtful" | "all";
        /** @description A search of facts. */
        FactSearch: {
            /**
             * Format: date-time
             * @description As it was at that moment (ISO 8601 with a time zone).
             */
            at?: string;
            /** @description Only what this agent knows: its own facts, and all agents'. */
            agent?: string;
            /** @description Only facts about this user, and about no user. */
            user_id?: string;
            /** @description The question, in any words. */
            query: string;
            /** @description Only facts about no user. Default: false. */
            shared_only?: boolean;
            /** @description What the metadata must be: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must hold. */
            filters?: {
                [key: string]: unknown;
            };
            /** @description At most this many results. Default: 10. */
            limit?: number;
            /**
             * Format: double
             * @description Least cosine similarity. Default: the nearest, however far.
             */
            threshold?: number;
        };
        /** @description The facts of a search, best first. */
        FactSearchResult: {
            results: components["schemas"]["FoundFact"][];
        };
        /**
         * @description * `proposed` - proposed
         *     * `active` - active
         *     * `superseded` - superseded
         *     * `retracted` - retracted
         *     * `rejected` - rejected
         * @enum {string}
         */
        FactStateEnum: "proposed" | "active" | "superseded" | "retracted" | "rejected";
        /** @description Why there is no reply, or not yet. */
        Failure: {
            /** @description The code of the last error, for programs: llm_unavailable, llm_timeout, llm_refused, llm_reply_invalid, time_limit, worker_lost, internal_error, closed … */
            code: string;
            /** @description The same in a sentence, for people. */
            detail: string;
            /** @description The number of attempts, with the current one. */
            attempts: number;
            /**
             * Format: date-time
             * @description The time of the next attempt; null if there is none.
             */
            next_attempt_at: string | null;
        };
        /** @description What is wrong with one field, header or query parameter. */
        FieldError: {
            /** @description The name of the field; `body` for the whole body. */
            field: string;
            /** @description What is wrong, and what would be right. */
            detail: string;
            /** @description The value that was sent, if it is short. */
            value?: unknown;
        };
        /** @description A fact that a search has found. */
        FoundFact: {
            /**
             * Format: uuid
             * @description The fact's id, through all changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description Who knows it; null: all agents. */
            agent: string | null;
            /** Format: uuid */
            agent_id: string | null;
            /** @description The user whom it is about, or null. */
            user_id: string | null;
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was stored first.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When this version was written.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Since when it is so.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description Until when it was so.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description From then on it is not found any more.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description This version's id; the newest has the fact's.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description Whom or what the fact is about, by name. */
            subject: string;
            /** @description The attribute of the subject, in snake_case, such as home_city. Empty: none. */
            slot: string;
            /** @description The value of the slot, such as Oslo. */
            value: string;
            /** @description Whether several values of the slot can be valid at once. */
            is_multi_valued: boolean;
            /**
             * @description Whether it was stated in a message, concluded, or entered.
             *
             *     * `observed` - stated in a message
             *     * `inferred` - concluded from messages
             *     * `entered` - entered by a person or a program
             */
            kind: components["schemas"]["FactKindEnum"];
            /** @description Who stated it, by name. */
            asserter: string;
            /**
             * @description Only active facts are given to agents.
             *
             *     * `proposed` - proposed
             *     * `active` - active
             *     * `superseded` - superseded
             *     * `retracted` - retracted
             *     * `rejected` - rejected
             */
            state: components["schemas"]["FactStateEnum"];
            /**
             * @description How exactly “valid from” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_from_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * @description How exactly “valid until” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_to_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * Format: date-time
             * @description When the earliest message of its evidence was sent. Empty: when it was stored.
             */
            learned_at: string | null;
            /**
             * Format: date-time
             * @description When it was retracted.
             */
            retracted_at: string | null;
            /**
             * Format: uuid
             * @description The fact that this one supersedes, or would supersede if it is confirmed.
             */
            replaces: string | null;
            /**
             * Format: double
             * @description Confidence of the language model, 0 to 1.
             */
            confidence: number | null;
            /** @description Why a person is to review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
            /**
             * Format: double
             * @description Cosine similarity to the query, -1 to 1.
             */
            score: number;
        };
        /** @description A turn of a conversation. */
        GivenTurn: {
            role: components["schemas"]["GivenTurnRoleEnum"];
            /** @description The text. */
            content: string;
        };
        /**
         * @description * `user` - user
         *     * `assistant` - assistant
         * @enum {string}
         */
        GivenTurnRoleEnum: "user" | "assistant";
        /** @description The id of a sender in a channel, and the user that its messages belong to. */
        Identity: {
            /** Format: uuid */
            readonly id: string;
            /** Format: uri */
            url: string;
            /** @description slack … */
            channel: string;
            /**
             * @description Where in the channel, if it has such.
             * @default
             */
            workspace: string;
            /**
             * Id
             * @description As the channel knows them there.
             */
            native_id: string;
            /** @description What the channel calls them. */
            name?: string;
            /**
             * Own user id
             * @description The user whom they are by themselves; no other identity has the same.
             */
            own_id: string;
            /**
             * User
             * @description The user as whom they speak.
             */
            user_id: string;
            /**
             * Format: date-time
             * @description When they were heard first.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Since when they speak as somebody else.
             */
            linked_at?: string | null;
            /** @description Who linked them. */
            linked_by?: string;
        };
        /** @description A page of a list. */
        IdentityPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Identity"][];
        };
        /** @description A part of a history. Each message is validated separately: see `results`. */
        Import: {
            /** @description Name or id of the agent of messages that name none. Default: the one that the key is bound to, or the only active one. */
            agent?: string;
            /** @description The user of messages that name none. Default: the one that the key is bound to. */
            user_id?: string;
            /** @description The conversation of messages that name none. Default: one thread per user, named as the user. */
            thread_id?: string;
            /** @description Each has role and content, and what else is known of it. Anything else is answered as invalid. */
            messages: {
                /** @description Its id where it comes from; unique for one agent and user. A message that was imported with this id before is not changed. Default: made of the message, so that the same one has the same id; see the operation. */
                external_id?: string;
                /** @description Name or id of the agent. Default: the request's `agent`. */
                agent?: string;
                /** @description Who spoke with the agent. Default: the request's `user_id`. */
                user_id?: string;
                /** @description The conversation. Default: the request's `thread_id`, else one thread per user, named as the user. */
                thread_id?: string;
                /** @enum {string} */
                role: "user" | "assistant";
                /** @description The text; not blank. */
                content: string;
                /**
                 * Format: date-time
                 * @description Its time: ISO 8601 with a time zone. Default: now, in the order of the request.
                 */
                created_at?: string;
                /** @description The speaker's display name, if known. */
                name?: string;
                /** @description A JSON object that lists and searches can be narrowed by, by the rules of facts' metadata; at most 8,192 bytes. */
                metadata?: {
                    [key: string]: unknown;
                };
            }[];
        };
        /** @description The results for all messages, in the order of the request. */
        ImportResult: {
            created: number;
            exists: number;
            invalid: number;
            results: components["schemas"]["LineResult"][];
        };
        /**
         * @description * `messages` - messages
         *     * `facts` - facts
         * @enum {string}
         */
        IncludeEnum: "messages" | "facts";
        /** @description An item, as it was added. */
        Item: {
            /** Format: uuid */
            readonly id: string;
            readonly item: {
                [key: string]: unknown;
            };
            /**
             * Format: uuid
             * @description Its message in the transcript. Null: it is not remembered.
             */
            message_id: string | null;
            /**
             * Format: date-time
             * @description When it was added.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        ItemPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Item"][];
        };
        /** @description The numbers of turns and memories that did not fit. */
        LeftOut: {
            /** @description Turns of the session, the oldest. */
            messages: number;
            /** @description Memories, the least relevant. */
            memories: number;
            /** @description What of the task was cut or left out: `description`, and names of its data. */
            task: string[];
        };
        /** @description An error of one field of a message. */
        LineError: {
            /** @description Empty: the message as a whole. */
            field: string;
            detail: string;
        };
        /** @description The result for one message. */
        LineResult: {
            /** @description Its place in the request, from 0. */
            index: number;
            /**
             * @description created; exists: the external_id was imported before, and stays as it was; invalid: see error.
             *
             *     * `created` - created
             *     * `exists` - exists
             *     * `invalid` - invalid
             */
            status: components["schemas"]["LineResultStatusEnum"];
            /** @description As it was sent, or as it was given one. */
            external_id: string | null;
            /**
             * Format: uuid
             * @description Null if it is invalid.
             */
            message_id: string | null;
            /**
             * Format: uuid
             * @description Null if it is invalid.
             */
            agent_id: string | null;
            /** @description Null if it is invalid. */
            user_id: string | null;
            /** @description Null if it is invalid. */
            thread_id: string | null;
            /**
             * Format: date-time
             * @description The time of the message. Null if it is invalid.
             */
            created_at: string | null;
            /** @description Why it is invalid; empty if it is valid. */
            error: string;
            /** @description The same field by field. */
            errors: components["schemas"]["LineError"][];
        };
        /**
         * @description * `created` - created
         *     * `exists` - exists
         *     * `invalid` - invalid
         * @enum {string}
         */
        LineResultStatusEnum: "created" | "exists" | "invalid";
        /** @description The user of an identity. */
        Link: {
            /** @description The user that the identity belongs to from now on. */
            user_id: string;
        };
        /**
         * @description * `right` - right
         *     * `wrong` - wrong
         *     * `unsure` - unsure
         * @enum {string}
         */
        MarkEnum: "right" | "wrong" | "unsure";
        /** @description One message that was remembered. */
        Memory: {
            /** Format: uuid */
            message_id: string;
            /** @description Its id, if it was imported. */
            external_id: string | null;
            thread_id: string;
            /** @description user or assistant. */
            role: string;
            /** @description The speaker's display name, or empty. */
            name: string;
            content: string;
            /**
             * Format: date-time
             * @description The time of the message.
             */
            created_at: string;
            /** @description As it was sent with the message, or empty. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: double
             * @description Of the ranking; comparable within this answer only.
             */
            score: number;
            /**
             * Format: double
             * @description That it is relevant, calibrated. See `calibration`.
             */
            probability: number;
            /**
             * Format: double
             * @description What the agent's thresholds are compared with; with explain.
             */
            gate_value?: number;
            /** @description The score of each channel before its weight; with explain. */
            channels?: {
                [key: string]: number;
            };
        };
        /** @description A message, its status and its reply. */
        Message: {
            /** Format: uuid */
            id: string;
            /**
             * @description with_person: a person answers in this thread. awaiting_consent: a tool call of the agent's waits for the user. with_program: the program that asked for a completion has to send results of its tools. `waits_for` has the details of these.
             *
             *     * `queued` - queued
             *     * `answered` - answered
             *     * `failed` - failed
             *     * `with_person` - with_person
             *     * `awaiting_consent` - awaiting_consent
             *     * `with_program` - with_program
             */
            status: components["schemas"]["MessageStatusEnum"];
            /**
             * Format: uri
             * @description Where to ask again.
             */
            url: string;
            /** @description The name of the agent that it was sent to. Another one may answer, see `answered_by`. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            thread_id: string;
            /** @description The way it came in: rest, slack … */
            channel: string;
            /** @description The speaker's display name, or empty. */
            name: string;
            content: string;
            /** @description As it was sent, or empty. */
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was accepted.
             */
            created_at: string;
            /** @description Null until the status is `answered`. */
            reply: components["schemas"]["Reply"] | null;
            /** @description The person or program that must act while the message is held; else null. The message is answered afterwards: ask again at `url`. */
            waits_for: components["schemas"]["WaitsFor"] | null;
            /** @description Who answered: the name of an agent or of a person; empty until then. */
            answered_by: string;
            /**
             * Format: uuid
             * @description The agent that answered: another than `agent_id` where the thread was handed over. Null: a person, or a reply from before this was kept.
             */
            answered_by_id: string | null;
            /** @description The last error, while the reply is retried and when it has failed. */
            error: components["schemas"]["Failure"] | null;
        };
        /** @description A page of a list. */
        MessagePage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Message"][];
        };
        /**
         * @description * `queued` - queued
         *     * `answered` - answered
         *     * `failed` - failed
         *     * `with_person` - with_person
         *     * `awaiting_consent` - awaiting_consent
         *     * `with_program` - with_program
         * @enum {string}
         */
        MessageStatusEnum: "queued" | "answered" | "failed" | "with_person" | "awaiting_consent" | "with_program";
        /**
         * @description * `hybrid` - hybrid
         *     * `vector` - vector
         * @enum {string}
         */
        ModeEnum: "hybrid" | "vector";
        /** @description The language model of a preview. */
        Model: {
            /** @description Name of the language model. Default: the agent's `extraction_model`. */
            model?: string;
        };
        /**
         * @description * `fast` - Fast
         *     * `reasoning` - Reasoning
         * @enum {string}
         */
        ModelTierEnum: "fast" | "reasoning";
        /** @description Usage of language models, newest day first. */
        ModelUsage: {
            results: components["schemas"]["ModelUsageRow"][];
            /** @description Whether these are all rows. False: there are more than 1,000; ask for a shorter time. */
            is_complete: boolean;
        };
        /** @description The calls of one day, agent, purpose and model. */
        ModelUsageRow: {
            /**
             * Format: date
             * @description The day (UTC).
             */
            day: string;
            /** @description The agent's name. null: no agent. */
            agent: string | null;
            /** Format: uuid */
            agent_id: string | null;
            /** @description What the calls were for, such as extraction. */
            purpose: string;
            /** @description The language model. */
            model: string;
            /** @description All calls. */
            calls: number;
            /** @description Calls that failed. */
            failed: number;
            /** @description Calls of processes that ended before the answer came. */
            unknown: number;
            /** @description Tokens sent. */
            prompt_tokens: number;
            /** @description Tokens received. */
            completion_tokens: number;
            /**
             * Format: decimal
             * @description By the prices at the time of the calls.
             */
            cost: string;
        };
        /** @description A fact that says nearly the same. */
        NearFact: {
            /** Format: uuid */
            memory_id: string;
            content: string;
            /**
             * Format: double
             * @description Cosine similarity.
             */
            score: number;
        };
        /** @description The value of a channel, as LangGraph's serializer writes it. */
        NewChannelValue: {
            channel: string;
            /** @description Its encoding: msgpack, json, bytes, null … */
            type: string;
            /** @description In base64. */
            value: string;
        };
        /** @description A checkpoint to be saved. */
        NewCheckpoint: {
            /** @description The graph's thread. */
            thread_id: string;
            /** @description Of a subgraph; empty: the graph. */
            checkpoint_ns?: string;
            parent_checkpoint_id?: string | null;
            checkpoint: components["schemas"]["CheckpointState"];
            /** @description Of the channels that have changed since the parent. */
            values: components["schemas"]["NewChannelValue"][];
            /** @description What lists can be filtered by. */
            metadata: {
                [key: string]: unknown;
            };
        };
        /** @description A message to an agent. */
        NewDryRun: {
            /** @description The message. */
            content: string;
            /** @description The person who writes, with their memory. Default: the conversation's, or a person without memories. */
            user_id?: string | null;
            /** @description Settings of a draft, which gets the same messages. */
            draft?: components["schemas"]["DraftFields"];
            /** @description `conversation` of the last answer, to continue it. Default: a new conversation. */
            conversation?: string;
        };
        /** @description The user to be erased. */
        NewErasure: {
            /** @description The user, exactly. Ids that are linked to this one are the same person's. */
            user_id: string;
            /** @description Name or id of the one agent that forgets; all of them without it. */
            agent?: string;
            /** @description Sessions of graphs that are the user's, beside those of their conversations. One of a thread in which others spoke, or that names another user, is refused. */
            threads?: string[];
            /** @description Why; it stays on the receipt. */
            reason?: string;
        };
        /** @description The thread in which a person, or another agent, is to answer. */
        NewEscalation: {
            /** @description Name or id of the agent that the thread's messages are sent to. */
            agent: string;
            /** @description The user. */
            user_id: string;
            /** @description The conversation; it must have a message of the user. */
            thread_id: string;
            /** @description Why, for the record. */
            reason: string;
            /** @description Name or id of the active agent that is to answer instead. Default: a person. */
            to_agent?: string;
        };
        /** @description What of a message is excluded, and why. */
        NewExclusion: {
            /** @description Why, for the fact's events. */
            reason?: string;
            /** @description First character of the words. Default, with `end`: the whole message. */
            start?: number;
            /** @description Position after the last character of the words. */
            end?: number;
        };
        /** @description A fact to be kept. */
        NewFact: {
            /** @description The fact, in words: “Maria is allergic to walnuts.” */
            content: string;
            /** @description A JSON object that searches can filter by. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Since when it is so. Default: now.
             */
            valid_from?: string;
            /**
             * Format: date-time
             * @description Until when it is so; null while it is.
             */
            valid_to?: string | null;
            /**
             * Format: date-time
             * @description From then on it is not found any more.
             */
            expires_at?: string | null;
            /** @description Name or id of the agent that knows it. Default: all agents do; for a key that is bound to an agent, that one. */
            agent?: string;
            /** @description The user whom it is about. Default: no user; for a key that is bound to a user, that one. */
            user_id?: string;
        };
        /** @description Facts to be stored together. */
        NewFacts: {
            /** @description The facts. All of them are stored, or none. */
            facts: components["schemas"]["NewFact"][];
        };
        /** @description The id of a sender in a channel. */
        NewIdentity: {
            /** @description slack … */
            channel: string;
            /** @description The workspace in the channel, if the channel has workspaces. */
            workspace?: string;
            /** @description The sender's id in the channel. */
            native_id: string;
            /** @description The sender's display name in the channel. */
            name?: string;
        };
        /** @description An item, and what of it is to be remembered. */
        NewItem: {
            /** @description Any JSON object. It is returned unchanged. */
            item: {
                [key: string]: unknown;
            };
            /** @description What the item says, for the transcript. Without it the item is not remembered, and neither is a text that the transcript cannot hold, such as one that is too long. */
            said?: components["schemas"]["Spoken"];
        };
        /** @description Items that are added to a conversation, in their order. */
        NewItems: {
            /** @description Name or id of the agent. */
            agent: string;
            /** @description The user. */
            user_id: string;
            /** @description The conversation. */
            thread_id: string;
            items: components["schemas"]["NewItem"][];
        };
        /** @description A question to save. */
        NewQuestion: {
            /** @description The message. */
            content: string;
            /** @description The person who asks, with their memory. null: a person without memories. */
            user_id?: string | null;
            /** @description Words or phrases that the answer should have, all of them. */
            expected?: string[];
        };
        /** @description A mark on a reply. */
        NewReplyReview: {
            /**
             * Format: uuid
             * @description Id of the message that is the reply.
             */
            reply_id: string;
            /**
             * @description right, wrong or unsure.
             *
             *     * `right` - right
             *     * `wrong` - wrong
             *     * `unsure` - unsure
             */
            mark: components["schemas"]["MarkEnum"];
            /** @description The reviewer's note. */
            note?: string;
        };
        /** @description The conversation to preview the facts of. */
        NewRun: {
            /** @description Name of the language model. Default: the agent's `extraction_model`. */
            model?: string;
            /** @description Name or id of the agent. */
            agent: string;
            /** @description The user. */
            user_id: string;
            /** @description The conversation. */
            thread_id: string;
        };
        /** @description What a task has written, to be kept with a checkpoint. */
        NewWrites: {
            /** @description The graph's thread. */
            thread_id: string;
            /** @description Of a subgraph; empty: the graph. */
            checkpoint_ns?: string;
            checkpoint_id: string;
            task_id: string;
            task_path?: string;
            writes: components["schemas"]["NewChannelValue"][];
        };
        /** @description An open escalation: a person answers in the conversation. */
        OpenEscalation: {
            /** Format: uuid */
            id: string;
            /** @description Why. */
            reason: string;
            /**
             * Format: date-time
             * @description Since when.
             */
            opened_at: string;
            /**
             * Format: uri
             * @description The escalation, which can be answered and resolved.
             */
            url: string;
        };
        /**
         * @description * `user` - the user asked for it
         *     * `rule` - a rule of the agent's
         *     * `agent` - an agent's language model
         *     * `program` - a program
         *     * `person` - a person in the admin
         * @enum {string}
         */
        OpenedByEnum: "user" | "rule" | "agent" | "program" | "person";
        /**
         * @description * `` - open, or resolved before outcomes were kept
         *     * `resolved` - resolved: the thread's own agent answers again
         *     * `handed_on` - handed on to an agent
         *     * `handed_back` - handed back to the agent before
         *     * `to_person` - a person was asked for
         * @enum {string}
         */
        OutcomeEnum: "resolved" | "handed_on" | "handed_back" | "to_person";
        /** @description The fields of an agent that change; the others stay. */
        PatchedAgentChanges: {
            /** @description How programs and people call it. Unique in the tenant, and not a UUID. */
            name?: string;
            /** @description What it is for and how it works. Opens every prompt. */
            system_prompt?: string;
            /** @description Who it is: “You are Ada, the librarian …” */
            identity?: string;
            /** @description How it speaks: tone, language, manners. */
            persona?: string;
            /** @description Model name for the LLM pool. Blank: LLM_MODEL, or the pool decides by tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed. */
            accepts_client_instructions?: boolean;
            /** @description Tokens that one answer of the language model may have. An application may ask for fewer. Blank: no limit but the model's own. */
            max_completion_tokens?: number | null;
            /** @description An inactive agent accepts no messages; its memory stays. */
            is_active?: boolean;
            /**
             * @description How it looks for memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description At most this many memories go into a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out what is probably beside the question, all of it if need be. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how sure recall must be. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer that are beside the question
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more that are beside the question
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: the best memory must have this value of the gate, else none is given. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have this value of the gate. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Turns before and after a memory that are given along with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights?: components["schemas"]["RecallWeights"];
            /** @description What it may do beside answering: remember_fact keeps a fact about the user, who is asked first. */
            tools?: components["schemas"]["ToolsEnum"][];
            /** @description Words or phrases with which a message calls for a person, beside plain requests such as “talk to a human”, which always do. */
            escalate_on?: string[];
            /** @description A person is called when so many replies in a row were given up in a thread. Blank: never. */
            escalate_after_failures?: number | null;
            /** @description Agents to which its language model may hand a conversation, by the tool hand_to_agent. Names or ids. */
            hands_to?: string[];
            /** @description Words or phrases with which a message is for another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. A name is taken too. */
            hand_over_on?: {
                [key: string]: string;
            };
            /** @description Words or phrases with which a conversation that was handed to it goes back to the agent before. */
            hand_back_on?: string[];
            /** @description Extract facts from conversations when they are quiet, with a language model, or by a few rules if there is none. */
            extracts_facts?: boolean;
            /** @description Model that extracts facts. Blank: the agent's model. */
            extraction_model?: string;
            /** @description A conversation is quiet after so many seconds without a message. */
            extraction_idle_seconds?: number;
            /** @description Messages that one request to the language model covers at most, 1 to 200. A conversation with so many new messages is not waited for. */
            extraction_batch_size?: number;
            /** @description Tokens that extraction may use for this agent on a day (UTC). Blank: no limit. */
            extraction_max_tokens_per_day?: number | null;
            /**
             * @description Which extracted facts a person confirms before agents use them.
             *
             *     * `none` - none: use all facts at once
             *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics, low confidence
             *     * `all` - all
             */
            fact_review?: components["schemas"]["FactReviewEnum"];
            /** @description Other rules for single slots, such as {"diet": "all", "hobby": "none"}. */
            fact_review_by_slot?: {
                [key: string]: "none" | "doubtful" | "all";
            };
        };
        /** @description The fields of a fact that change. The former values are kept as a version. */
        PatchedFactChange: {
            /** @description The fact, in words. */
            content?: string;
            /** @description A JSON object that searches can filter by. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Since when the change is so: after the old version's, not in the future. Default: now.
             */
            valid_from?: string;
            /**
             * Format: date-time
             * @description Until when it is so; null while it is.
             */
            valid_to?: string | null;
            /**
             * Format: date-time
             * @description From then on it is not found any more.
             */
            expires_at?: string | null;
            /** @description Why, for the fact's events. */
            reason?: string;
            /** @description The value of the fact's slot, such as Oslo. Default: as it is, if the content still has it. */
            value?: string;
        };
        /** @description What a task has written since a checkpoint. */
        PendingWrite: {
            channel: string;
            /** @description Its encoding: msgpack, json, bytes, null … */
            type: string;
            /** @description In base64. */
            value: string;
            task_id: string;
        };
        /**
         * @description * `` - moment
         *     * `day` - day
         *     * `month` - month
         *     * `year` - year
         * @enum {string}
         */
        PrecisionEnum: "day" | "month" | "year";
        /**
         * @description * `precise` - precise
         *     * `balanced` - balanced
         *     * `thorough` - thorough
         * @enum {string}
         */
        PresetEnum: "precise" | "balanced" | "thorough";
        /** @description A problem document (RFC 9457). */
        Problem: {
            /** @description The kind of problem: stable, for programs. */
            type: string;
            /** @description The HTTP status in words. */
            title: string;
            /** @description The HTTP status. */
            status: number;
            /** @description What went wrong, for people. */
            detail: string;
            /** @description The path of the request. */
            instance: string;
            /** @description Names the request in our logs. */
            request_id: string;
            errors?: components["schemas"]["FieldError"][];
        };
        /** @description What a version of an agent answers to a saved question. */
        QuestionAnswer: {
            /** Format: uuid */
            readonly id: string;
            /** Format: uuid */
            question_id: string;
            /** @description Number of the agent's version. 0: before its first version. */
            version: number;
            /**
             * Person
             * @description The person who asked. Empty: nobody.
             */
            user_id?: string | null;
            /**
             * Answer
             * @description The answer; may be empty.
             */
            content?: string;
            /** @description What was decided, and why. */
            steps?: string[];
            /** @description Why there is no answer. */
            problem?: string;
            /** @description Whether it has all expected words. Empty: none are expected. */
            is_expected?: boolean | null;
            /** @description Recalled messages and facts in the prompt. */
            source_count?: number;
            /** @description The messages that the prompt had: recalled ones and recent turns. */
            message_ids?: string[];
            /**
             * Format: date-time
             * @description When it was answered.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        QuestionAnswerPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["QuestionAnswer"][];
        };
        /** @description Whether the saved questions of an agent wait to be asked. */
        QuestionRun: {
            /**
             * @description queued: a worker asks them; failed: no further attempt is made; answered: the current version has answered the questions.
             *
             *     * `answered` - answered
             *     * `queued` - queued
             *     * `failed` - failed
             */
            state: components["schemas"]["QuestionRunStateEnum"];
            /** @description Number of the agent's current version. 0: before its first version. */
            version: number;
            /** @description Attempts since the last success. */
            attempts: number;
            /** @description Why the last attempt failed. */
            last_error: string;
        };
        /**
         * @description * `answered` - answered
         *     * `queued` - queued
         *     * `failed` - failed
         * @enum {string}
         */
        QuestionRunStateEnum: "answered" | "queued" | "failed";
        /** @description A quota of this tenant, and what is used of it. */
        Quota: {
            quota: components["schemas"]["QuotaEnum"];
            /**
             * Format: double
             * @description What is used. null: it is not measured, or not yet.
             */
            used: number | null;
            /**
             * Format: double
             * @description From here on the team is warned. null: never.
             */
            soft_limit: number | null;
            /**
             * Format: double
             * @description Nothing is used beyond it. null: unlimited.
             */
            hard_limit: number | null;
            /**
             * Format: date-time
             * @description When it begins anew. null: never, or each second.
             */
            resets_at: string | null;
        };
        /**
         * @description * `messages` - messages
         *     * `memories` - memories
         *     * `storage_bytes` - storage_bytes
         *     * `tokens` - tokens
         *     * `cost` - cost
         *     * `api_keys` - api_keys
         *     * `requests_per_second` - requests_per_second
         * @enum {string}
         */
        QuotaEnum: "messages" | "memories" | "storage_bytes" | "tokens" | "cost" | "api_keys" | "requests_per_second";
        /** @description The reason of a change, for the fact's events. */
        Reason: {
            /** @description Why, for the fact's events. */
            reason?: string;
        };
        /** @description What was recalled for one reply, in numbers. */
        RecallEvent: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description Where it is in full.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            /**
             * Format: uuid
             * @description The message that was answered.
             */
            message_id: string | null;
            /**
             * Format: uuid
             * @description The reply that was written with these memories.
             */
            reply_id: string | null;
            /** @description The query. */
            query: string;
            /** @description Nothing was worth giving. */
            abstained: boolean;
            embedding_model: string;
            /**
             * Format: double
             * @description Time that the recall took.
             */
            milliseconds: number;
            /**
             * Format: date-time
             * @description When it was written down.
             */
            created_at: string;
            /** @description How many memories were found. */
            hit_count: number;
            /** @description How many of the best were left out. */
            cut_count: number;
            /** @description How many the language model was given. */
            injected_count: number;
        };
        /** @description What was recalled for one reply, and why. */
        RecallEventInFull: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description Where it is in full.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            /**
             * Format: uuid
             * @description The message that was answered.
             */
            message_id: string | null;
            /**
             * Format: uuid
             * @description The reply that was written with these memories.
             */
            reply_id: string | null;
            /** @description The query. */
            query: string;
            /** @description Nothing was worth giving. */
            abstained: boolean;
            embedding_model: string;
            /**
             * Format: double
             * @description Time that the recall took.
             */
            milliseconds: number;
            /**
             * Format: date-time
             * @description When it was written down.
             */
            created_at: string;
            /** @description What was found, best first, with the score of every channel, the calibrated `probability`, and as `mark` the reviewer's mark, if there is one. */
            hits: {
                [key: string]: unknown;
            }[];
            /** @description The best of what was left out, and why; otherwise as in `hits`. */
            cut: {
                [key: string]: unknown;
            }[];
            /** @description The facts that were weighed, and why. */
            facts: {
                [key: string]: unknown;
            }[];
            /** @description What the language model was given, as given. */
            injected: string[];
            /** @description The prompt as it was sent, with the tokens of each section; null if not kept. */
            prompt: {
                [key: string]: unknown;
            } | null;
            /** @description Of the probabilities. */
            readonly calibration: components["schemas"]["Calibration"];
        };
        /** @description A page of a list. */
        RecallEventPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["RecallEvent"][];
        };
        /** @description A reviewer's mark on a recalled memory. */
        RecallMark: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uuid
             * @description The reply that the memory was recalled for.
             */
            readonly reply_id: string;
            /**
             * Format: uuid
             * @description The memory.
             */
            readonly message_id: string;
            /**
             * @description The reviewer's opinion.
             *
             *     * `relevant` - Relevant
             *     * `not_relevant` - Not relevant
             *     * `unsure` - Unsure
             */
            relevance: components["schemas"]["RelevanceEnum"];
            /**
             * Format: double
             * @description Probability that the memory is relevant by the product's own calibration.
             */
            probability: number;
            /**
             * @description The kind of the author.
             *
             *     * `person` - person
             *     * `program` - program with an API key
             *     * `operator` - operator's command
             *     * `run` - extraction run
             *     * `system` - the platform
             */
            author_kind: components["schemas"]["AuthorKindEnum"];
            /** @description Id of the person or the API key. */
            author_id?: string;
            /** @description Name of the author. */
            author_name?: string;
            /**
             * Format: date-time
             * @description When it was marked.
             */
            created_at: string;
        };
        /** @description A reviewer's mark. */
        RecallMarkFields: {
            /**
             * @description Whether the memory was relevant to the question.
             *
             *     * `relevant` - Relevant
             *     * `not_relevant` - Not relevant
             *     * `unsure` - Unsure
             */
            relevance: components["schemas"]["RelevanceEnum"];
        };
        /**
         * @description * `hybrid` - hybrid: meaning and words
         *     * `vector` - vector: cosine similarity alone
         * @enum {string}
         */
        RecallModeEnum: "hybrid" | "vector";
        /**
         * @description * `precise` - precise: fewer memories, fewer that are beside the question
         *     * `balanced` - balanced
         *     * `thorough` - thorough: more memories, more that are beside the question
         * @enum {string}
         */
        RecallPresetEnum: "precise" | "balanced" | "thorough";
        /** @description Weights of the ranking that differ from the measured ones. */
        RecallWeights: {
            /** Format: double */
            lexical?: number;
            /** Format: double */
            session?: number;
            /** Format: double */
            previous?: number;
            /** Format: double */
            following?: number;
            /** Format: double */
            length?: number;
            /** Format: double */
            subject?: number;
            /** Format: double */
            time?: number;
            /** Format: double */
            fact?: number;
        };
        /**
         * @description * `relevant` - Relevant
         *     * `not_relevant` - Not relevant
         *     * `unsure` - Unsure
         * @enum {string}
         */
        RelevanceEnum: "relevant" | "not_relevant" | "unsure";
        /** @description A reply. */
        Reply: {
            /** Format: uuid */
            id: string;
            content: string;
            /** Format: date-time */
            created_at: string;
            /** @description Why the language model ended the reply: stop, length (cut at the limit of tokens) or content_filter. Empty: no language model wrote it. */
            finish_reason: string;
        };
        /** @description A reviewer's mark on a reply. */
        ReplyReview: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uuid
             * @description The message that is the reply.
             */
            reply_id: string;
            /**
             * @description The mark.
             *
             *     * `right` - right
             *     * `wrong` - wrong
             *     * `unsure` - unsure
             */
            mark: components["schemas"]["MarkEnum"];
            /** @description The reviewer's note; may be empty. */
            note?: string;
            /** @description The agent's name. */
            agent: string;
            /**
             * Agent
             * Format: uuid
             * @description The agent whose memory this is.
             */
            agent_id: string;
            /**
             * User
             * @description The user as the channel knows them, such as a Slack user id.
             */
            user_id: string;
            /** @description person, or program with an API key. */
            reviewer_kind: string;
            /** @description Id of the person, or of the API key. */
            reviewer_id: string;
            /** @description Their name at that time. */
            reviewer_name: string;
            /**
             * Format: date-time
             * @description When the mark was set.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        ReplyReviewPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["ReplyReview"][];
        };
        /** @description How an escalation ends. */
        Resolution: {
            /** @description true: the agent answers the held messages. false: they are closed, because a person has handled them. */
            let_agent_answer: boolean;
            /** @description The result, for the record. */
            note?: string;
        };
        /** @description The note of the return to a version. */
        Restoration: {
            /** @description What the author says of the change. */
            note?: string;
        };
        /**
         * @description * `user` - User
         *     * `assistant` - Assistant
         * @enum {string}
         */
        RoleEnum: "user" | "assistant";
        /**
         * @description * `running` - running
         *     * `preview` - preview
         *     * `applied` - applied
         *     * `failed` - failed
         *     * `rolled_back` - rolled back
         * @enum {string}
         */
        RunStateEnum: "running" | "preview" | "applied" | "failed" | "rolled_back";
        /** @description A saved question. */
        SavedQuestion: {
            /** Format: uuid */
            readonly id: string;
            /** @description Where it is. */
            readonly url: string;
            /**
             * Agent
             * Format: uuid
             * @description The agent that is asked.
             */
            agent_id: string;
            /**
             * Question
             * @description The message.
             */
            content: string;
            /**
             * Person
             * @description The person who asks. Empty: nobody.
             */
            user_id?: string | null;
            /** @description Words or phrases that the answer should have, all of them. */
            expected?: string[];
            /**
             * Format: date-time
             * @description When it was saved.
             */
            created_at: string;
        };
        /** @description A page of a list. */
        SavedQuestionPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["SavedQuestion"][];
        };
        /** @description A question to an agent's memory of one user. */
        Search: {
            /** @description Name or id of an agent of this tenant. */
            agent: string;
            /** @description Whose memories; those of others are never looked at. */
            user_id: string;
            /** @description The question, in any words. */
            query: string;
            /** @description At most this many results. Default: the agent's policy. */
            top_k?: number;
            /** @description Leave out what is probably beside the question, all of it if need be. Default: true. */
            gate?: boolean;
            /**
             * @description hybrid uses every sign, vector the cosine alone. Default: the agent's policy.
             *
             *     * `hybrid` - hybrid
             *     * `vector` - vector
             */
            mode?: components["schemas"]["ModeEnum"];
            /**
             * @description With the gate: how sure recall must be. Default: the agent's thresholds.
             *
             *     * `precise` - precise
             *     * `balanced` - balanced
             *     * `thorough` - thorough
             */
            preset?: components["schemas"]["PresetEnum"];
            /** @description Add the score of each channel to each result. Default: false. */
            explain?: boolean;
            /** @description What is searched: messages, facts, or both. Default: ["messages"]. */
            include?: components["schemas"]["IncludeEnum"][];
            /** @description What the metadata must be: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must hold. Other messages are ignored, as if they did not exist. */
            filters?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Only messages up to this time (ISO 8601 with a time zone).
             */
            at?: string;
        };
        /** @description What a search found, best first of each kind. */
        SearchAnswer: {
            messages: components["schemas"]["SearchedMessage"][];
            facts: components["schemas"]["FoundFact"][];
            people: components["schemas"]["SearchedPerson"][];
            /** @description A part of the search took longer than 2 s, and was left out. */
            is_partial: boolean;
        };
        /** @description What was found, best first, one result per message; and facts, with scores of their own. */
        SearchResult: {
            results: components["schemas"]["Memory"][];
            /** @description Of the messages nothing was worth saying. */
            abstained: boolean;
            /** @description Of the messages' probabilities; null without messages. */
            calibration: components["schemas"]["Calibration"] | null;
            /** @description What is known, if `include` names facts. */
            facts?: components["schemas"]["FoundFact"][];
        };
        /** @description A message that matches. */
        SearchedMessage: {
            /** Format: uuid */
            message_id: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            thread_id: string;
            channel: string;
            /** @description user or assistant. */
            role: string;
            /** @description The speaker's display name, or empty. */
            name: string;
            content: string;
            /** Format: date-time */
            created_at: string;
            /**
             * Format: double
             * @description The similarity, plus half of `words`.
             */
            score: number;
            /**
             * Format: double
             * @description Cosine; null before it is embedded.
             */
            similarity: number | null;
            /**
             * Format: double
             * @description Share of the query's words that it holds, weighed by their rarity: 0 to 1.
             */
            words: number;
        };
        /** @description A person who matches. */
        SearchedPerson: {
            user_id: string;
            /** @description The name of their last message, or empty. */
            name: string;
        };
        /** @description A message to an agent. */
        Send: {
            /** @description Name or id of an active agent of this tenant. */
            agent: string;
            /** @description Who speaks, in your own terms. The agent remembers each user apart. */
            user_id: string;
            /** @description Conversation, in your own terms; memory spans all of a user's threads. Default: one thread per user, named as the user. */
            thread_id?: string;
            /** @description Display name of the speaker, as in OpenAI's API. */
            name?: string;
            /** @description The user's text, verbatim. */
            content: string;
            /** @description A JSON object that lists and searches can be narrowed by, by the rules of facts' metadata; at most 8,192 bytes. */
            metadata?: {
                [key: string]: unknown;
            };
        };
        /** @description A thread that has a history. */
        Session: {
            thread_id: string;
            /**
             * Format: uri
             * @description Where its messages are.
             */
            url: string;
            /**
             * Format: date-time
             * @description When its newest state was saved.
             */
            updated_at: string;
            /** @description How many states it has. */
            checkpoints: number;
        };
        /** @description One message of a graph's state. */
        SessionMessage: {
            /** @description user, assistant, system or tool. */
            role: string;
            /** @description Its text; images and tools' calls have none. */
            content: string;
            id?: string;
            name?: string;
            tool_call_id?: string;
        };
        /** @description A page of a list. */
        SessionPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Session"][];
        };
        /** @description A session and its newest messages, oldest first. */
        SessionWithMessages: {
            thread_id: string;
            /**
             * Format: uri
             * @description Where its messages are.
             */
            url: string;
            /**
             * Format: date-time
             * @description When its newest state was saved.
             */
            updated_at: string;
            /** @description How many states it has. */
            checkpoints: number;
            messages: components["schemas"]["SessionMessage"][];
        };
        /** @description Where an item of the context comes from. */
        Source: {
            kind: components["schemas"]["SourceKindEnum"];
            /**
             * Format: uuid
             * @description memory_id of the fact, or id of the message.
             */
            id: string;
        };
        /**
         * @description * `fact` - fact
         *     * `message` - message
         * @enum {string}
         */
        SourceKindEnum: "fact" | "message";
        /** @description A message for the transcript. */
        Spoken: {
            role: components["schemas"]["RoleEnum"];
            content: string;
        };
        /** @description A stored fact, and similar facts that existed before. */
        StoredFact: {
            /**
             * Format: uuid
             * @description The fact's id, through all changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description Who knows it; null: all agents. */
            agent: string | null;
            /** Format: uuid */
            agent_id: string | null;
            /** @description The user whom it is about, or null. */
            user_id: string | null;
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was stored first.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When this version was written.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Since when it is so.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description Until when it was so.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description From then on it is not found any more.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description This version's id; the newest has the fact's.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description Whom or what the fact is about, by name. */
            subject: string;
            /** @description The attribute of the subject, in snake_case, such as home_city. Empty: none. */
            slot: string;
            /** @description The value of the slot, such as Oslo. */
            value: string;
            /** @description Whether several values of the slot can be valid at once. */
            is_multi_valued: boolean;
            /**
             * @description Whether it was stated in a message, concluded, or entered.
             *
             *     * `observed` - stated in a message
             *     * `inferred` - concluded from messages
             *     * `entered` - entered by a person or a program
             */
            kind: components["schemas"]["FactKindEnum"];
            /** @description Who stated it, by name. */
            asserter: string;
            /**
             * @description Only active facts are given to agents.
             *
             *     * `proposed` - proposed
             *     * `active` - active
             *     * `superseded` - superseded
             *     * `retracted` - retracted
             *     * `rejected` - rejected
             */
            state: components["schemas"]["FactStateEnum"];
            /**
             * @description How exactly “valid from” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_from_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * @description How exactly “valid until” is known.
             *
             *     * `` - moment
             *     * `day` - day
             *     * `month` - month
             *     * `year` - year
             */
            valid_to_precision: components["schemas"]["PrecisionEnum"] | components["schemas"]["BlankEnum"];
            /**
             * Format: date-time
             * @description When the earliest message of its evidence was sent. Empty: when it was stored.
             */
            learned_at: string | null;
            /**
             * Format: date-time
             * @description When it was retracted.
             */
            retracted_at: string | null;
            /**
             * Format: uuid
             * @description The fact that this one supersedes, or would supersede if it is confirmed.
             */
            replaces: string | null;
            /**
             * Format: double
             * @description Confidence of the language model, 0 to 1.
             */
            confidence: number | null;
            /** @description Why a person is to review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
            /** @description False: the same text existed. The other fields of the request were added to it. */
            created: boolean;
            /** @description Facts that say nearly the same. They are reported, never merged. */
            near_duplicates: components["schemas"]["NearFact"][];
        };
        /** @description The stored facts of a batch, in the order of the request. */
        StoredFacts: {
            /** @description The number of facts that are new. */
            created: number;
            results: components["schemas"]["StoredFact"][];
        };
        /** @description One event of a timeline. */
        TimelineEntry: {
            /**
             * Format: date-time
             * @description When it happened.
             */
            at: string;
            /**
             * @description The kind of event.
             *
             *     * `message` - message
             *     * `recall` - recall
             *     * `fact` - fact
             *     * `escalation` - escalation
             *     * `consent` - consent
             *     * `exclusion` - exclusion
             *     * `window` - window
             *     * `account` - account
             *     * `erasure` - erasure
             *     * `access` - access
             */
            kind: components["schemas"]["TimelineEntryKindEnum"];
            /** @description What happened, such as the role of a message, `recalled`, or `resolved`. */
            action: string;
            /**
             * Format: uuid
             * @description The agent; null if it concerns no agent or all of them.
             */
            agent_id: string | null;
            /** @description The id of the user that it concerns. */
            user_id: string;
            /** @description Id of the message, fact, escalation … that it is about. */
            subject_id: string | null;
            /** @description What was said, asked or known, up to 300 characters. */
            text: string;
            /** @description Name of the one who did it, or empty. */
            by: string;
            /** @description The reason, or the channel of a message, or empty. */
            note: string;
        };
        /**
         * @description * `message` - message
         *     * `recall` - recall
         *     * `fact` - fact
         *     * `escalation` - escalation
         *     * `consent` - consent
         *     * `exclusion` - exclusion
         *     * `window` - window
         *     * `account` - account
         *     * `erasure` - erasure
         *     * `access` - access
         * @enum {string}
         */
        TimelineEntryKindEnum: "message" | "recall" | "fact" | "escalation" | "consent" | "exclusion" | "window" | "account" | "erasure" | "access";
        /** @description A page of a list. */
        TimelineEntryPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["TimelineEntry"][];
        };
        /** @description Tokens of each section, by cl100k_base. */
        TokenUsage: {
            total: number;
            system: number;
            session: number;
            memory: number;
            task: number;
        };
        /** @description A tool call that an agent requested while it answered a message. */
        ToolCall: {
            /** Format: uuid */
            readonly id: string;
            /** Format: uri */
            url: string;
            /**
             * @description The state of the call.
             *
             *     * `waiting` - waits for consent
             *     * `with_program` - with the program whose tool it is
             *     * `approved` - approved, and about to be done
             *     * `denied` - denied
             *     * `expired` - nobody answered in time
             *     * `done` - done
             *     * `failed` - failed
             */
            state: components["schemas"]["ToolCallStateEnum"];
            /** @description The agent's name. */
            agent: string;
            /**
             * Agent
             * Format: uuid
             * @description The agent whose memory this is.
             */
            agent_id: string;
            /**
             * User
             * @description The user as the channel knows them, such as a Slack user id.
             */
            user_id: string;
            /**
             * Thread
             * @description The conversation of the message.
             */
            thread_id: string;
            /**
             * Format: uuid
             * @description The message that the agent answers.
             */
            message_id: string;
            /**
             * Asked by
             * Format: uuid
             * @description The agent that asked for it, where the thread was handed to another than its own; what it does is done for that agent.
             */
            asked_by_id?: string | null;
            /**
             * Said before
             * @description What the agent said before it asked; with the first call of an answer.
             */
            content?: string;
            /**
             * Tool
             * @description Which tool.
             */
            name: string;
            /** @description The arguments of the call. */
            arguments: unknown;
            /** @description What the user is asked. */
            question?: string;
            /**
             * Format: date-time
             * @description When it was asked for.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Until when consent, or a program's result, can be given.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When it was decided.
             */
            decided_at?: string | null;
            /** @description Who decided it, and by which way. */
            decided_by?: string;
            /**
             * Format: date-time
             * @description When it was done, or failed.
             */
            done_at?: string | null;
            /** @description What the language model was told of it. */
            result?: string;
        };
        /** @description A page of a list. */
        ToolCallPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["ToolCall"][];
        };
        /**
         * @description * `waiting` - waits for consent
         *     * `with_program` - with the program whose tool it is
         *     * `approved` - approved, and about to be done
         *     * `denied` - denied
         *     * `expired` - nobody answered in time
         *     * `done` - done
         *     * `failed` - failed
         * @enum {string}
         */
        ToolCallStateEnum: "waiting" | "with_program" | "approved" | "denied" | "expired" | "done" | "failed";
        /**
         * @description * `remember_fact` - remember_fact
         * @enum {string}
         */
        ToolsEnum: "remember_fact";
        /** @description A message, verbatim. */
        Turn: {
            /** Format: uuid */
            readonly id: string;
            /**
             * @description Who spoke.
             *
             *     * `user` - User
             *     * `assistant` - Assistant
             */
            role: components["schemas"]["RoleEnum"];
            /** @description The speaker's display name. */
            name?: string;
            /** @description What was said, verbatim. */
            content: string;
            /** @description Where it came from: rest, slack, import … */
            channel: string;
            /**
             * Thread
             * @description Conversation, as the channel knows it; memory spans them all.
             */
            thread_id: string;
            /**
             * Format: date-time
             * @description When it was said; for imported turns, in the original.
             */
            created_at: string;
            /**
             * Format: uuid
             * @description The message that it answers.
             */
            in_reply_to: string | null;
            /** @description Id in the system that it was imported from. */
            external_id?: string | null;
            /** @description As it was sent, or empty. */
            readonly metadata: {
                [key: string]: unknown;
            };
        };
        /** @description A page of a list. */
        TurnPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["Turn"][];
        };
        /** @description Counts of this tenant. */
        Usage: {
            agents: number;
            /** @description Pairs of an agent and a user with memories. */
            users: number;
            /** @description Turns of the transcript. */
            messages: number;
            /** @description Vectors; a message has one per piece. */
            embeddings: number;
            /** @description Messages not yet searchable. */
            pending_embeddings: number;
            /** @description Of these, how many failed before and are tried again. */
            failed_embeddings: number;
            /** @description Messages not yet answered. */
            pending_replies: number;
            /** @description Messages whose reply has failed. */
            failed_replies: number;
            /** @description Limits of the tenant; not for bound keys. */
            quotas?: components["schemas"]["Quota"][];
            /** @description The counts above 100,000, if there are any: they are estimates, or for a bound key the least that there are. */
            not_exact?: string[];
        };
        /** @description The activity of some days. */
        UsageByDay: {
            /** @description Oldest first. */
            days: components["schemas"]["UsageOfDay"][];
            /** @description false: older days are still being counted. Ask again. */
            is_complete: boolean;
        };
        /** @description The activity of one day. */
        UsageOfDay: {
            /**
             * Format: date
             * @description The day (UTC).
             */
            day: string;
            /** @description Messages of users. */
            messages: number;
            /** @description Replies of agents with a recall event. */
            replies: number;
            /** @description Replies with facts in their prompt. */
            from_facts: number;
            /** @description Replies with recalled messages, and without facts. */
            from_memories: number;
            /** @description Replies with recent turns alone. */
            from_turns: number;
            /** @description Replies without any of them. */
            from_nothing: number;
            /** @description Escalations to people that were opened. */
            escalations: number;
            /**
             * Format: double
             * @description Median of the reply times, within a fifth.
             */
            p50_seconds: number | null;
            /**
             * Format: double
             * @description 95th percentile of the reply times, within a fifth.
             */
            p95_seconds: number | null;
            /** @description Tokens sent for replies, as reported. */
            prompt_tokens: number;
            /** @description Tokens received for replies. */
            completion_tokens: number;
            /** @description Tokens of the extraction of facts. */
            extraction_tokens: number;
            /**
             * Format: decimal
             * @description Of replies at the prices of now, by LLM_PRICE_…
             */
            cost: string;
            /** @description Reviewers' marks of that day. */
            right: number;
            /** @description Reviewers' marks of that day. */
            wrong: number;
            /** @description Reviewers' marks of that day. */
            unsure: number;
        };
        /** @description An end user. */
        User: {
            /** @description The user's id. */
            user_id: string;
            /** @description The name of their last message, or of an earlier one; empty if none has one. */
            name: string;
            /** @description Names that their messages have had, the newest first, at most 20. */
            names: string[];
            /** @description Turns of all their conversations; the sum of those of their agents. */
            messages: number;
            /** @description Facts about them that hold now. */
            facts: number;
            /**
             * Format: date-time
             * @description The time of the first message; null if there are only facts.
             */
            first_at: string | null;
            /**
             * Format: date-time
             * @description The time of the last message.
             */
            last_at: string | null;
            agents: components["schemas"]["AgentOfUser"][];
        };
        /** @description A page of a list. */
        UserPage: {
            /**
             * Format: uri
             * @description The page after this one.
             */
            next: string | null;
            /**
             * Format: uri
             * @description The page before this one.
             */
            previous: string | null;
            results: components["schemas"]["User"][];
        };
        /** @description A tool call that the user has to decide on. */
        WaitingCall: {
            /** Format: uuid */
            id: string;
            /** @description Which tool. */
            name: string;
            /** @description What to ask the user. */
            question: string;
            /**
             * Format: date-time
             * @description Until when; after that it is not done.
             */
            expires_at: string;
            /**
             * Format: uri
             * @description The call, with its arguments.
             */
            url: string;
            /**
             * Format: uri
             * @description Where to send the answer: POST `{"approve": true}` or false.
             */
            decision_url: string;
        };
        /** @description The condition that a held message waits for. */
        WaitsFor: {
            /**
             * @description user: the user's decision on each of `tool_calls`. person: a member of the tenant, who answers or resolves `escalation`. program: that which asked for a chat completion, which has tools of its own that were called.
             *
             *     * `user` - user
             *     * `person` - person
             *     * `program` - program
             */
            who: components["schemas"]["WhoEnum"];
            /** @description The same in a sentence, and what to do. */
            detail: string;
            tool_calls: components["schemas"]["WaitingCall"][];
            escalation: components["schemas"]["OpenEscalation"] | null;
        };
        /**
         * @description * `user` - user
         *     * `person` - person
         *     * `program` - program
         * @enum {string}
         */
        WhoEnum: "user" | "person" | "program";
        /** @description The recent turns of an agent and a user, oldest first. */
        Window: {
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            turns: components["schemas"]["WindowTurn"][];
        };
        /** @description A turn in the window. */
        WindowTurn: {
            /**
             * Format: uuid
             * @description Null for a turn that is not in the transcript.
             */
            message_id: string | null;
            role: components["schemas"]["RoleEnum"];
            /** @description The speaker's display name, or empty. */
            name: string;
            content: string;
            /**
             * Format: date-time
             * @description The time of the turn, if known.
             */
            at: string | null;
        };
    };
    responses: {
        /** @description The body cannot be read, or a field is invalid: `errors` names it. */
        Invalid: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:bad-request",
                 *       "title": "Bad Request",
                 *       "status": 400,
                 *       "detail": "The request cannot be understood. Check its host, headers and body.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description No valid API key for this tenant. */
        Unauthenticated: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description Says that a Bearer key is needed. */
                "WWW-Authenticate"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:unauthenticated",
                 *       "title": "Unauthorized",
                 *       "status": 401,
                 *       "detail": "Send an API key: Authorization: Bearer ks_…",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The key lacks the scope, or is bound to another agent or user; or a session may not do this, or its CSRF token is missing. */
        Forbidden: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:forbidden",
                 *       "title": "Forbidden",
                 *       "status": 403,
                 *       "detail": "You may not do this.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description This address does not know the method; `Allow` says which it does. */
        MethodNotAllowed: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description The methods that the address knows. */
                Allow?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:method-not-allowed",
                 *       "title": "Method Not Allowed",
                 *       "status": 405,
                 *       "detail": "This address does not know that method; see the Allow header.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `Accept` asks for another type than application/json. */
        NotAcceptable: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:not-acceptable",
                 *       "title": "Not Acceptable",
                 *       "status": 406,
                 *       "detail": "The API speaks application/json only; send Accept: application/json.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The address is longer than 8190 bytes. */
        AddressTooLong: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:address-too-long",
                 *       "title": "Request-URI Too Long",
                 *       "status": 414,
                 *       "detail": "The request's address is too long. Send long values in the body.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Too many requests of this key or tenant, or a quota of the month is used up: `type` says which; see `Retry-After`. */
        TooManyRequests: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description Seconds after which to try again. */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:too-many-requests",
                 *       "title": "Too Many Requests",
                 *       "status": 429,
                 *       "detail": "Too many requests. Wait for as long as Retry-After says.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The server failed. Its log has the error under the request's id. */
        InternalError: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:internal-error",
                 *       "title": "Internal Server Error",
                 *       "status": 500,
                 *       "detail": "The server failed. Its log has the error under this request_id.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Something that the API needs is not running right now. */
        Unavailable: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description Seconds after which to try again. */
                "Retry-After"?: string;
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:unavailable",
                 *       "title": "Service Unavailable",
                 *       "status": 503,
                 *       "detail": "Something that the API needs is not running. Try again in a moment.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description There is no such thing for this key, or no such place in the list. */
        NotFound: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:not-found",
                 *       "title": "Not Found",
                 *       "status": 404,
                 *       "detail": "There is nothing at this address. The API's description is at /api/docs/.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is too large. */
        BodyTooLarge: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:body-too-large",
                 *       "title": "Request Entity Too Large",
                 *       "status": 413,
                 *       "detail": "The request's body is too large.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description The body is not declared as application/json. */
        UnsupportedMediaType: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:unsupported-media-type",
                 *       "title": "Unsupported Media Type",
                 *       "status": 415,
                 *       "detail": "Send the body as Content-Type: application/json.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description A quota that does not begin anew is used up: `quota`, `limit` and `used` say which. */
        QuotaExceeded: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:quota-exceeded",
                 *       "title": "Payment Required",
                 *       "status": 402,
                 *       "detail": "A quota is used up that does not begin anew with the month.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description It contradicts the current state, such as a fact with the same text. */
        Conflict: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:conflict",
                 *       "title": "Conflict",
                 *       "status": 409,
                 *       "detail": "The request contradicts the current state.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description It was changed since: its ETag is another than `If-Match` says. */
        ChangedSince: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:changed-since",
                 *       "title": "Precondition Failed",
                 *       "status": 412,
                 *       "detail": "It was changed since you read it. Read it again and decide anew.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description Understood, but it cannot be done: the agent is unknown, or the Idempotency-Key belongs to another request. */
        Unprocessable: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "type": "urn:konstruct:problem:unprocessable",
                 *       "title": "Unprocessable Entity",
                 *       "status": 422,
                 *       "detail": "The request was understood and cannot be done.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Names the request in our logs: yours if you sent one. */
        "X-Request-ID": string;
        /** @description Requests that can be made at once. */
        "RateLimit-Limit": string;
        /** @description How many are left. */
        "RateLimit-Remaining": string;
        /** @description Seconds until all are there again. */
        "RateLimit-Reset": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    list_agents: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /**
                 * @description Only active, or only inactive ones.
                 *
                 *     * `true` - true
                 *     * `false` - false
                 */
                is_active?: "true" | "false";
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `name`.
                 *
                 *     * `name` - name
                 *     * `-name` - -name
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "name" | "-name" | "-created_at" | "created_at";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_agent: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AgentFields"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The agent's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    /** @description The agent's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The agent's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    update_agent: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PatchedAgentChanges"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The agent's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["ChangedSince"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    dry_run_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDryRun"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DryRun"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_saved_questions: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedQuestionPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    save_question: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewQuestion"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The question's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedQuestion"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_saved_question: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
                question_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedQuestion"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    delete_saved_question: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
                question_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The question and its answers are deleted. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_question_answers: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /** @description Only to this question. */
                question_id?: string;
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of the version with this number. */
                version?: number;
            };
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuestionAnswerPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_question_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuestionRun"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    ask_saved_questions: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuestionRun"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_agent_versions: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AgentVersionPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    restore_agent: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                agent_id: string;
                number: number;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Restoration"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The agent's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_checkpoints: {
        parameters: {
            query?: {
                /** @description Only those whose id is smaller. */
                before?: string;
                /** @description Only this one. */
                checkpoint_id?: string;
                /** @description Only of this graph. */
                checkpoint_ns?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description What the metadata must hold, as JSON text. */
                filters?: string;
                /** @description Exactly so many in a page. Without it, as many as have 4 MB together, and 50 at most. */
                limit?: number;
                /** @description Only of this thread. */
                thread_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckpointPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    save_checkpoint: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCheckpoint"];
            };
        };
        responses: {
            /** @description It is saved. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    save_checkpoint_writes: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWrites"];
            };
        };
        responses: {
            /** @description It is saved. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    compile_context: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Compile"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Compiled"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_conversations: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /** @description Only threads of this id. */
                thread_id?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ConversationPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_conversation_items: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Items per page, 50 without it; fewer where they are large. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description The conversation. */
                thread_id: string;
                /** @description The user. */
                user_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ItemPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    add_conversation_items: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewItems"];
            };
        };
        responses: {
            /** @description They are added. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    clear_conversation_items: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description The conversation. */
                thread_id: string;
                /** @description The user. */
                user_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description There are none. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_conversation_item: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path: {
                item_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_transcript: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description What the metadata must be: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must hold. As JSON text. */
                filters?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `created_at`.
                 *
                 *     * `created_at` - created_at
                 *     * `-created_at` - -created_at
                 */
                ordering?: "created_at" | "-created_at";
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /** @description The conversation. Without it, all conversations of the two. */
                thread_id?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description The user. */
                user_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TurnPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    erase_conversation: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description Why; it stays on the receipt. */
                reason?: string;
                /** @description The conversation. */
                thread_id: string;
                /** @description The user. */
                user_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The request's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    request_erasure: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewErasure"];
            };
        };
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The request's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_erasure: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                erasure_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_escalations: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `-opened_at`.
                 *
                 *     * `-opened_at` - -opened_at
                 *     * `opened_at` - opened_at
                 */
                ordering?: "-opened_at" | "opened_at";
                /**
                 * @description Only escalations in this state.
                 *
                 *     * `open` - open
                 *     * `resolved` - resolved
                 */
                state?: "open" | "resolved";
                /** @description Only in this conversation. */
                thread_id?: string;
                /**
                 * @description Only those in which a person, or in which another agent, answers.
                 *
                 *     * `person` - person
                 *     * `agent` - agent
                 */
                to?: "person" | "agent";
                /** @description Only those that were handed to this agent (name or id). */
                to_agent?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EscalationPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    open_escalation: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewEscalation"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The escalation's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Escalation"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The escalation's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Escalation"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_escalation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                escalation_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Escalation"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    assign_escalation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                escalation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Assignment"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Escalation"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    resolve_escalation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                escalation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Resolution"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Escalation"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_extraction_runs: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /**
                 * @description Only runs in this state.
                 *
                 *     * `running` - running
                 *     * `preview` - preview
                 *     * `applied` - applied
                 *     * `failed` - failed
                 *     * `rolled_back` - rolled back
                 */
                state?: "running" | "preview" | "applied" | "failed" | "rolled_back";
                /** @description Only of this conversation. */
                thread_id?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionRunPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    preview_extraction: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewRun"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The run's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionRunInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_extraction_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionRunInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    apply_extraction_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionRunInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    compare_extraction_runs: {
        parameters: {
            query: {
                /** @description Id of the other run, such as a replay of this one. */
                other: string;
            };
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Comparison"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    replay_extraction_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Model"];
            };
        };
        responses: {
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The run's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionRunInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    roll_back_extraction_run: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                run_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionRunInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_extractions: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description Only conversations in this state.
                 *
                 *     * `queued` - queued
                 *     * `failed` - failed
                 *     * `processed` - processed
                 */
                state?: "queued" | "failed" | "processed";
                /** @description Only this conversation. */
                thread_id?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExtractionPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    retry_extraction: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                extraction_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Extraction"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_facts: {
        parameters: {
            query?: {
                /** @description Only what this agent knows: its own facts, and all agents'. */
                agent?: string;
                /** @description As it was at that moment (ISO 8601 with a time zone). */
                at?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description What the metadata must be: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must hold. As JSON text. */
                filters?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only facts of this slot, such as `home_city`. */
                slot?: string;
                /**
                 * @description Only facts in this state. Default: active facts that are valid. The queue of a review is `proposed`, with `ordering=created_at`.
                 *
                 *     * `proposed` - proposed
                 *     * `active` - active
                 *     * `superseded` - superseded
                 *     * `retracted` - retracted
                 *     * `rejected` - rejected
                 */
                state?: "proposed" | "active" | "superseded" | "retracted" | "rejected";
                /** @description Only facts about this user, and about no user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewFact"];
            };
        };
        responses: {
            /** @description The same text existed. The other fields were added to it. */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredFact"];
                };
            };
            /** @description Kept. */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredFact"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_fact: {
        parameters: {
            query?: {
                /** @description As it was at that moment (ISO 8601 with a time zone). */
                at?: string;
            };
            header?: never;
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    delete_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            412: components["responses"]["ChangedSince"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    change_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PatchedFactChange"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["ChangedSince"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    confirm_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["ChangedSince"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_fact_events: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactEventPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_fact_versions: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    reject_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["ChangedSince"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_fact_replies: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecallEventPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    restore_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["ChangedSince"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    retract_fact: {
        parameters: {
            query?: never;
            header?: {
                /** @description The ETag that you read: the change is refused if the resource has changed since. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Reason"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The fact's state, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            412: components["responses"]["ChangedSince"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    create_facts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewFacts"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredFacts"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    search_facts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactSearch"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactSearchResult"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_identities: {
        parameters: {
            query?: {
                /** @description Only of this channel. */
                channel?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /** @description Only this id of a channel. */
                native_id?: string;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only identities that belong to this user. */
                user_id?: string;
                /** @description Only of this workspace. */
                workspace?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["IdentityPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    name_identity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewIdentity"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The identity's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_identity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identity_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    link_identity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identity_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Link"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    unlink_identity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                identity_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    search_memories: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Search"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchResult"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_messages: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description What the metadata must be: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. All must hold. As JSON text. */
                filters?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /**
                 * @description Only messages with this status.
                 *
                 *     * `queued` - queued
                 *     * `answered` - answered
                 *     * `failed` - failed
                 *     * `with_person` - with_person
                 *     * `awaiting_consent` - awaiting_consent
                 *     * `with_program` - with_program
                 */
                status?: "queued" | "answered" | "failed" | "with_person" | "awaiting_consent" | "with_program";
                /** @description Only messages of this conversation. */
                thread_id?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MessagePage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    send_message: {
        parameters: {
            query?: {
                /** @description Seconds to wait for the reply, 0 to 60. */
                wait?: number;
            };
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Send"];
            };
        };
        responses: {
            /** @description Answered, given up, or held, in time. */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The message's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                    "text/event-stream": string;
                };
            };
            /** @description Accepted; the reply is to come. */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The message's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_message: {
        parameters: {
            query?: {
                /** @description Seconds to wait for the reply, 0 to 60. */
                wait?: number;
            };
            header?: never;
            path: {
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    erase_message: {
        parameters: {
            query?: {
                /** @description Why; it stays on the receipt. */
                reason?: string;
            };
            header?: never;
            path: {
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Accepted */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The request's own address. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Erasure"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_exclusions: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path: {
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ExclusionPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    exclude_from_recall: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                message_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewExclusion"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Exclusion"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    include_again: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                exclusion_id: string;
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Recall can find it again. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    import_messages: {
        parameters: {
            query?: never;
            header?: {
                /** @description Any text of yours, such as a UUID. The same request with the same key again creates nothing and returns what was created. Keys belong to the caller: another API key, or the same one bound to another user, may use the same text for something else. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Import"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ImportResult"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_recall_events: {
        parameters: {
            query?: {
                /**
                 * @description Only recalls that gave nothing, or only those that gave something.
                 *
                 *     * `true` - true
                 *     * `false` - false
                 */
                abstained?: "true" | "false";
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /** @description Only the recall for this message, or for this reply. */
                message_id?: string;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecallEventPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_recall_event: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                event_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecallEventInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    mark_recalled_memory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                event_id: string;
                message_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["RecallMarkFields"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RecallMark"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    remove_recall_mark: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                event_id: string;
                message_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No response body */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_reply_reviews: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description Only with this mark.
                 *
                 *     * `right` - right
                 *     * `wrong` - wrong
                 *     * `unsure` - unsure
                 */
                mark?: "right" | "wrong" | "unsure";
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only of this reply. */
                reply_id?: string;
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplyReviewPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    review_reply: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewReplyReview"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplyReview"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReplyReview"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    search_everything: {
        parameters: {
            query: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Only messages of this channel. */
                channel?: string;
                /** @description At most this many messages. Default: 25. */
                limit?: number;
                /** @description Words, what is meant, or a name. */
                q: string;
                /** @description Only messages from this moment on (with a time zone). */
                since?: string;
                /** @description Only messages before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SearchAnswer"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_sessions: {
        parameters: {
            query?: {
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_session: {
        parameters: {
            query?: {
                /** @description The newest messages, at most so many; 50 without it. Default: 50. */
                limit?: number;
            };
            header?: never;
            path: {
                /** @description The graph's thread, percent-encoded; slashes need no encoding. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SessionWithMessages"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    clear_session: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The graph's thread, percent-encoded; slashes need no encoding. */
                thread_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description It is gone. */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_tool_calls: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /** @description Only those of this message. */
                message_id?: string;
                /**
                 * @description The order; a minus is descending. Default: `-created_at`.
                 *
                 *     * `-created_at` - -created_at
                 *     * `created_at` - created_at
                 */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on (with a time zone). */
                since?: string;
                /**
                 * @description Only calls in this state.
                 *
                 *     * `waiting` - waits for consent
                 *     * `with_program` - with the program whose tool it is
                 *     * `approved` - approved, and about to be done
                 *     * `denied` - denied
                 *     * `expired` - nobody answered in time
                 *     * `done` - done
                 *     * `failed` - failed
                 */
                state?: "waiting" | "with_program" | "approved" | "denied" | "expired" | "done" | "failed";
                /** @description Only before this moment (with a time zone). */
                until?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolCallPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_tool_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                call_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolCall"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    decide_tool_call: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                call_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Decision"];
            };
        };
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ToolCall"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_usage: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Usage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_usage_by_day: {
        parameters: {
            query: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Only of this channel. */
                channel?: string;
                /** @description First day (UTC). */
                first: string;
                /** @description Last day (UTC), at most 365 days after the first. */
                last: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageByDay"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_model_usage: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Only calls from this moment on (with a time zone). Default: 30 days ago. */
                since?: string;
                /** @description Only calls before this moment (with a time zone). */
                until?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelUsage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_users: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /**
                 * @description The order; a minus is descending. Default: `user_id`.
                 *
                 *     * `user_id` - user_id
                 *     * `-user_id` - -user_id
                 */
                ordering?: "user_id" | "-user_id";
                /** @description Only users with each word of this in a name, whatever the case and the accents, or with all of it in their id or in the id or the name of a linked account. */
                q?: string;
                /** @description Only of this user. */
                user_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    list_timeline: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description A place in the list: follow `next` and `previous`. */
                cursor?: string;
                /**
                 * @description Only events of this kind.
                 *
                 *     * `message` - message
                 *     * `recall` - recall
                 *     * `fact` - fact
                 *     * `escalation` - escalation
                 *     * `consent` - consent
                 *     * `exclusion` - exclusion
                 *     * `window` - window
                 *     * `account` - account
                 *     * `erasure` - erasure
                 *     * `access` - access
                 */
                kind?: "message" | "recall" | "fact" | "escalation" | "consent" | "exclusion" | "window" | "account" | "erasure" | "access";
                /** @description Rows per page; 50 without it. */
                limit?: number;
                /** @description Only events before this moment (with a time zone). */
                until?: string;
            };
            header?: never;
            path: {
                /** @description The user, percent-encoded; slashes need no encoding. */
                user_id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TimelineEntryPage"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            404: components["responses"]["NotFound"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    get_window: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description The last so many turns; 20 without it. */
                limit?: number;
                /** @description The user. */
                user_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Window"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    clear_window: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description The user. */
                user_id: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No response body */
            204: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            403: components["responses"]["Forbidden"];
            405: components["responses"]["MethodNotAllowed"];
            406: components["responses"]["NotAcceptable"];
            414: components["responses"]["AddressTooLong"];
            422: components["responses"]["Unprocessable"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
}
