// Written by `make typescript` from docs/openapi.yaml, sha256 1ba42eb310a446dff0b3ed31b16eb3dd5a316a80b245bee035d633725a4a0234
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
         * @description Changes only the given fields. An agent cannot be deleted, because its memory would have no owner. Deactivate it with `is_active: false`.
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
         * @description Applies the rules of a channel (for people and other agents), and calls the language model with the prompt, the memory and the tools of a reply. It stores only the usage of the language model and an entry in the access log, and describes tool calls instead of running them. `draft` shows the effect of other settings. The response arrives when the language model has answered; the agent and the draft may each take as long as a reply. If there is no answer, `problem` has the reason.
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
        /** List saved questions */
        get: operations["list_saved_questions"];
        put?: never;
        /**
         * Save a question to an agent
         * @description A worker asks the agent this question now and after each change, in dry runs. An agent has at most 20 saved questions: one more is a 409 `too-many-questions`. A question that names a person is erased with the person.
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
         * @description Each question has one answer of each version of the agent that was asked. Answers of the last 20 versions are kept. An answer is erased with its person and with any message that was in its prompt.
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
        /** Get the state of an agent's saved questions */
        get: operations["get_question_run"];
        put?: never;
        /**
         * Ask an agent its saved questions again
         * @description A worker asks the questions in dry runs. The answers replace the answers of the current version.
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
         * @description Each change of an agent by the API or the admin creates a version with all settings, the author and the changed fields. An agent without changes since versions were introduced has none.
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
         * Restore a version of an agent
         * @description Applies the settings of the version to the agent, and creates a new version. Settings that did not exist at the time of the version are unchanged.
         */
        post: operations["restore_agent"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/api-keys/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys, newest first
         * @description A program gets its own key and those that it made, also revoked ones.
         */
        get: operations["list_api_keys"];
        put?: never;
        /**
         * Create an API key
         * @description `key` is the secret, which no later response shows. A program's key allows no more than the key that makes it: some of its scopes, the same agent and user if that is bound, and no later expiry. Anything wider is a 403 `outside-of-key`. It is revoked with the key that made it. A tenant without a quota of keys has at most 200 valid ones: one more is a 409 `limit-reached`.
         */
        post: operations["create_api_key"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/api-keys/{key_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an API key */
        get: operations["get_api_key"];
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description Requests with the key are refused at once, and so are those with keys that it made. A revoked key is kept in the list, and cannot be restored.
         */
        delete: operations["revoke_api_key"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/claude-code/hooks/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Receive an HTTP hook of Claude Code
         * @description Stores prompts and final replies as a conversation of the agent and the user. The response is empty, so that nothing is added to a prompt. A text that is longer than a message may be is cut.
         */
        post: operations["receive_hook"];
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
         * @description Returns the session, the facts and the recalled messages for the task, cut to the token budget of the model's tier: the oldest turns and the least relevant memories are dropped first. The agent's reranker sorts the memories, if it has one. Nothing is stored, and no other language model is called.
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
         * @description Returns the items that a framework has stored, newest first. A page has at most 4,000,000 bytes of JSON, unless a single item is larger.
         */
        get: operations["list_conversation_items"];
        put?: never;
        /**
         * Add items to a conversation
         * @description Items belong to the framework that adds them, and get no reply. Items with the field `said` are also written into the transcript, like imported messages.
         */
        post: operations["add_conversation_items"];
        /**
         * Remove all items of a conversation
         * @description Removes the items immediately and permanently. Their texts stay in the transcript until the conversation is erased.
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
         * @description Removes the item immediately. Its text stays in the transcript. If two requests remove the same item, one of them gets a 404.
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
        /**
         * Set the title and metadata of a conversation
         * @description Omitted fields are unchanged. The conversation may have no messages yet. Both are erased with the conversation.
         */
        patch: operations["update_conversation"];
        trace?: never;
    };
    "/api/v1/erasures/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the erasures of users. Erasures of messages are not listed */
        get: operations["list_erasures"];
        put?: never;
        /**
         * Request the erasure of a user
         * @description A background process removes all data about the user and about all users linked to them: `Location` has the progress and the receipt. This cannot be undone. While the request is open, sending it again returns it, and what would be stored about the user is refused with 409 `being-erased`. A key that is bound to a user erases that user only; if other users are linked to the user, the request needs a key of the whole tenant.
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
    "/api/v1/erasures/replies/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the replies to others that were written with words of a user, newest first
         * @description An erasure of the user keeps them unless it names them. It needs a key of the whole tenant.
         */
        get: operations["list_affected_replies"];
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
        /** List escalations */
        get: operations["list_escalations"];
        put?: never;
        /**
         * Escalate a conversation to a person, or hand it to another agent
         * @description The agent stops answering in the conversation. Without `to_agent`, messages of the user are held with the status `with_person` until a person answers them in the admin. With `to_agent`, that agent answers the messages to the conversation's agent, under its own name and with its own memory. If a person or the same agent already answers the conversation, nothing changes (200). If another agent answers it, the conversation is handed on.
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
    "/api/v1/escalations/{escalation_id}/answer/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Answer the user as a person
         * @description The answer replies to the user's last message, and closes the earlier ones that wait. It is sent to the user's channel. The escalation stays open until it is resolved. A key that is bound to a user cannot answer.
         */
        post: operations["answer_escalation"];
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
         * @description Assigns the escalation. Other members may still answer and resolve it.
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
         * @description The conversation's own agent answers again.
         */
        post: operations["resolve_escalation"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/events/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read events in their order
         * @description Store `after` of the response, and send it with the next request: no event is left out, and none is returned twice. Events are kept for 30 days.
         *
         *     With `Accept: text/event-stream` the response is a stream of server-sent events for five minutes: each has its `id`, which is the next `after`, its type as `event` and the event as `data`. A client that connects again sends the last id as `Last-Event-ID`.
         */
        get: operations["list_events"];
        put?: never;
        post?: never;
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
        /** List extraction runs */
        get: operations["list_extraction_runs"];
        put?: never;
        /**
         * Preview the facts of a conversation
         * @description Extracts the facts of the messages that the next run would process, and returns a run that shows the changes. No fact changes until the run is applied. The response arrives when the language model has answered.
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
        /** Get an extraction run */
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
         * @description Records the facts like a run of the worker: facts that need a review are proposed. A run that is not a preview is a 409 `wrong-state`.
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
         * @description Compares two runs, such as a run and its replay by another language model.
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
         * @description Creates a preview of the same messages, such as with another language model, to compare with the run.
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
        /** List extractions */
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
         * @description Continues the extraction of the conversation with all attempts. A conversation that has not failed is a 409 `wrong-state`.
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
         * List facts
         * @description Lists the facts that are valid now, or that were valid `at` a given time; with `state` the facts in that state, such as `proposed` facts, which wait for a review.
         */
        get: operations["list_facts"];
        put?: never;
        /**
         * Store a fact
         * @description Facts with the same text, agent and user are one fact: the existing one is returned with `created: false`. The other fields of the request are applied to it, null clears one, and metadata is merged into the stored metadata. With an `external_id` that id identifies the fact instead of the text, and the text and metadata of the request replace the stored ones. The old values are kept as a version. Facts with nearly the same meaning are listed in `near_duplicates`.
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
         * @description Returns the fact with its evidence, now or `at` a given time. An active fact that is no longer valid, or has expired, is a 404; its history is kept. A fact in another state, such as `proposed`, is returned with that state.
         */
        get: operations["get_fact"];
        put?: never;
        post?: never;
        /**
         * Delete a fact
         * @description Deletes the fact and all its versions permanently.
         */
        delete: operations["delete_fact"];
        options?: never;
        head?: never;
        /**
         * Change a fact
         * @description Omitted fields are unchanged, and metadata is merged into the stored metadata. The old values are kept as a version. A new text or value is valid from now, or from `valid_from`; other changes keep the fact's validity. To end a fact, set `valid_to` or `expires_at`.
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
         * @description The fact becomes active, and supersedes the fact in `replaces`. A key cannot confirm a fact that it proposed, or that a key of the same person or one that it replaced proposed: 409 `own-proposal`. A fact that is not proposed is a 409 `wrong-state`.
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
         * @description The fact is not proposed again from the same messages, or from copies of them. A fact that is not proposed is a 409 `wrong-state`.
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
         * @description Returns the recall events of replies with the fact in their prompt.
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
         * @description A rejected fact is proposed again; a retracted or superseded one is active again. If its slot has another value now, the request is a 409 `slot-taken`: retract that fact first.
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
         * @description Agents no longer use the fact; its history is kept. To end a fact that was right, change its `valid_to`. A fact that is neither active nor superseded is a 409 `wrong-state`.
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
         * @description Up to 100 facts, each as `POST /api/v1/facts/` takes it. All of them are stored, or none. The same request again stores nothing twice, because the same external id, or else the same text, of the same agent and user is the same fact.
         */
        post: operations["create_facts"];
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change several facts
         * @description Up to 100 changes, each as `PATCH /api/v1/facts/{memory_id}/` makes it. All of them are made, or none.
         */
        patch: operations["change_facts"];
        trace?: never;
    };
    "/api/v1/facts/batch/delete/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Delete several facts
         * @description Deletes up to 100 facts with all their versions, permanently. All of them are deleted, or none.
         */
        post: operations["delete_facts"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/facts/by-external-id/{external_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Store or change the fact with your id
         * @description An id is unique for an agent and a user. A new fact is a 201. The text and the metadata of an existing one become those of the request. Omitted fields are unchanged, and those that are null are cleared. A request that changes nothing makes no version.
         */
        put: operations["put_fact"];
        post?: never;
        /**
         * Delete the fact with your id
         * @description Deletes the fact and all its versions permanently.
         */
        delete: operations["delete_fact_by_external_id"];
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
        /** List identities */
        get: operations["list_identities"];
        put?: never;
        /**
         * Create or rename an identity
         * @description A channel creates an identity with the first message of a sender. A new identity is a separate user; link it to assign it to an existing user.
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
         * @description New messages of the identity belong to this user. A background process moves its earlier messages within a minute or two.
         */
        put: operations["link_identity"];
        post?: never;
        /**
         * Unlink an identity from its user
         * @description The identity becomes a separate user. Messages that were moved stay with the former user.
         */
        delete: operations["unlink_identity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/imports/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Import a file of another system, or preview it
         * @description A worker reads it: `Location` has the state, and then the report with the conversations, the authors, and what is left out, with places and reasons. Sending the file again adds what is missing. An event `import.done` has the id of the import.
         */
        post: operations["create_history_import"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/imports/{history_import_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a history import */
        get: operations["get_history_import"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/language-models/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List language models
         * @description Changes need the scopes `read` and `write`: models get what users have said.
         */
        get: operations["list_language_models"];
        put?: never;
        /**
         * Create a language model or a reranker
         * @description Agents without `language_models` call the models with a `position`, lowest first, instead of the deployment's. The next one is called if one fails. A tenant has at most 50: one more is a 409 `limit-reached`.
         */
        post: operations["create_language_model"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/language-models/{language_model_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a language model */
        get: operations["get_language_model"];
        put?: never;
        post?: never;
        /** Delete a language model that no agent uses */
        delete: operations["delete_language_model"];
        options?: never;
        head?: never;
        /**
         * Change a language model
         * @description A change of `endpoint` needs the `key` again. Name and kind cannot change while agents use it.
         */
        patch: operations["update_language_model"];
        trace?: never;
    };
    "/api/v1/language-models/{language_model_id}/test/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a language model
         * @description Asks it for a text, a tool call and an answer in a JSON schema, and a reranker for scores, which takes up to its timeout. Its tokens are counted.
         */
        post: operations["test_language_model"];
        delete?: never;
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
         * Search the memories of a user
         * @description Searches messages with the recall of the pipeline and, if `include` names them, facts by their similarity to the query. Each list has its own scores: a message has the `probability` that it is relevant, a fact its cosine. With `gate` a fact needs the minimum cosine of a prompt. Without an agent, the memories of each agent that knows the user are searched, best first.
         */
        post: operations["search_memories"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/memory-tool/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a command of Anthropic's memory tool
         * @description The files are facts of the agent about the user, with the path as `external_id`. Their earlier versions are kept; a deleted file is a retracted fact, which can be restored. The key needs the scopes `read` and `write`. An error that the language model has to see is a 200 with `is_error`.
         */
        post: operations["run_memory_tool"];
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
         * @description The message is stored, and a worker answers it. Poll `url` for the reply, or pass `wait` to get it in this response if it is ready in time, also from a person who has to answer. With `wait_for=indexed` the response comes when recall can find the message, and `indexed` says whether it can. A message that waits for consent or for a program's tools is a 200 immediately, without a reply: `waits_for` has the reason and the next step.
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
         * @description Returns the status of the message. With `wait`, the response comes with the reply of the agent or a person, when the message fails or waits for consent or a program (see `waits_for`), or after the given seconds.
         */
        get: operations["get_message"];
        put?: never;
        post?: never;
        /**
         * Erase a message
         * @description Erases a message (sent, imported or a reply) with its reply, the memories of both, and the facts with this `message_id` in their metadata. A background process does this: `Location` has the progress and the receipt. This cannot be undone. The other messages of the conversation are kept. If only the reply is erased, its message has the status `failed`.
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
        /** List the exclusions of a message, newest first */
        get: operations["list_exclusions"];
        put?: never;
        /**
         * Exclude a message, or some of its words, from recall
         * @description Agents no longer recall the message or the words, and a whole message is not among the recent turns. The same happens to the agent's echoes of it: replies that were written with the message, and have at least half of its words. The transcript keeps all of them. For words that are already excluded, the response is the existing exclusion.
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
         * Remove an exclusion, including one made by the correction of a fact
         * @description Recall and recent turns can have the message, or its words, again, and the echoes of it.
         */
        delete: operations["include_again"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/messages/{message_id}/tool-results/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send the results of your program's tools
         * @description Give the results of all calls for which the message waits (`waits_for`). The language model continues with them: it answers, or calls tools again. The response is that of sending a message, also with `wait` and as a stream. The same results again change nothing.
         */
        post: operations["send_tool_results"];
        delete?: never;
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
         * @description Up to 1000 messages in one request. A message needs role and content; the response has the id, thread and time of each. An invalid message does not prevent the import of the others. Imported messages get no reply. They are embedded in the background, and `GET /api/v1/usage/` returns the number of pending ones.
         *
         *     Messages are identified by their `external_id`, for each agent and user. A message without one gets one, made of its time and text. If it has no time either, the id is made of its text, of the texts before it in the request, and of the last message of the thread. So the same request, sent again, stores nothing twice, nor does a request with more messages at its end, if nothing else was sent in the thread meanwhile. An `Idempotency-Key` takes the place of the thread: with a new key the same texts are new messages, with the same key they are the same.
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
         * List recall events
         * @description Each reply has one recall event, written shortly after the reply.
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
         * @description The event has the prompt as it was sent. Keys that are bound to a user may not read it.
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
    "/api/v1/search/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Search messages, facts and people
         * @description Searches messages of all people by words and by meaning, facts by meaning, and people by names, ids and linked accounts. Facts, and messages without a word of the query, need a minimum cosine. A key that is bound to an agent or a user searches only their data. For an agent's own recall, with the context of each conversation, use `search_memories`.
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
         * @description Deletes the session's history permanently. Messages in the transcript are kept.
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
         * @description Send the user's answer to the call's `question`. A worker executes an approved call once, and answers the message. Repeating the same decision changes nothing.
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
         * Get messages, replies by source, reply times and tokens by day
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
         * @description Returns every user with a message or a fact, ordered by id, with counts of the messages and facts that the key may see.
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
    "/api/v1/users/{user_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get what is set of a user
         * @description A key that is bound to an agent gets users that the agent knows.
         */
        get: operations["get_user"];
        /**
         * Set the fields of a user
         * @description Omitted fields become empty. A user without messages is created. The time zone comes before the one that a channel reports.
         */
        put: operations["put_user"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change some fields of a user
         * @description Metadata is merged by RFC 7396 (JSON Merge Patch). A user without messages is created.
         */
        patch: operations["update_user"];
        trace?: never;
    };
    "/api/v1/users/{user_id}/export/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Export all data of a person
         * @description Returns all rows of the user and of all linked ids, as the admin's export has them: a list for each kind of rows, such as `messages`, `facts` and `escalations`. It needs the scope of erasures, and a key that is not bound.
         */
        get: operations["export_user"];
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
         * List the events of a user, newest first
         * @description Includes the events of all ids that are linked to the user. A key that is bound to an agent or a user gets only the events of this id and agent, without linked accounts and without reads of the user's data. A person gets the kinds of events that their permissions allow. `previous` is always null.
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
    "/api/v1/webhook-deliveries/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List webhook deliveries */
        get: operations["list_webhook_deliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhook-deliveries/{webhook_delivery_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook delivery */
        get: operations["get_webhook_delivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhook-deliveries/{webhook_delivery_id}/retry/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send an event to a webhook again, also one that was delivered */
        post: operations["retry_webhook_delivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List webhooks */
        get: operations["list_webhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description The response has the secret, which no later one shows. Events from now on are sent, as Standard Webhooks describes. A tenant has at most 50 webhooks and recipients of notifications: one more is a 409 `limit-reached`.
         */
        post: operations["create_webhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook */
        get: operations["get_webhook"];
        put?: never;
        post?: never;
        /** Delete a webhook, with its deliveries */
        delete: operations["delete_webhook"];
        options?: never;
        head?: never;
        /** Change a webhook. Events that wait are sent to the new address */
        patch: operations["update_webhook"];
        trace?: never;
    };
    "/api/v1/webhooks/{webhook_id}/secret/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the secret of a webhook
         * @description For a day events are signed by each of the two secrets.
         */
        post: operations["rotate_webhook_secret"];
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
         * @description The agent's prompts no longer include earlier turns as recent turns. The transcript is kept, and earlier messages can still be recalled.
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
        /** @description A reply to another user that was written with words of the user. */
        AffectedReply: {
            /** Format: uuid */
            id: string;
            /** Format: uuid */
            agent_id: string;
            /** @description The user of the reply. */
            user_id: string;
            thread_id: string;
            content: string;
            /** Format: date-time */
            created_at: string;
        };
        /** @description A page of a list. */
        AffectedReplyPage: {
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
            results: components["schemas"]["AffectedReply"][];
        };
        /** @description An agent. */
        Agent: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uri
             * @description Where it is.
             */
            readonly url: string;
            /** @description The name for programs and people. Unique in the tenant, and not a UUID. */
            name: string;
            /** @description The agent's purpose and instructions. Every prompt begins with them. */
            system_prompt?: string;
            /** @description The agent's identity: “You are Ada, the librarian …” */
            identity?: string;
            /** @description The agent's style: tone, language, manners. */
            persona?: string;
            /** @description Name of the language model for the deployment's server, and for language models of the tenant without a name of a model. Blank: the deployment's model of the tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Names of the tenant's language models that answer, in this order: the next one is called if one fails. None: the tenant's default models. */
            language_models?: string[];
            /** @description Name of the tenant's reranker, which sorts recalled memories. Blank: none. */
            reranker?: string;
            /**
             * Accepts instructions of applications
             * @description Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed.
             */
            accepts_client_instructions?: boolean;
            /**
             * Most tokens of an answer
             * @description Maximum number of tokens in one answer of the language model. An application may ask for fewer. Blank: only the model's own limit.
             */
            max_completion_tokens?: number | null;
            /**
             * Maximum tokens of replies a day
             * @description After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no limit.
             */
            max_tokens_per_day?: number | null;
            /** @description An inactive agent accepts no messages; its memory stays. */
            is_active?: boolean;
            /** @description After this many hours without a message, a new conversation begins: earlier turns are recalled, instead of being turns of the prompt. */
            conversation_pause_hours?: number;
            /**
             * @description Language in which all Latin words of messages and questions are searched. Blank: that of the user, or else of each text, by its frequent words.
             *
             *     * `en` - English
             *     * `de` - German
             *     * `es` - Spanish
             *     * `fr` - French
             *     * `pt` - Portuguese
             *     * `pl` - Polish
             *     * `tr` - Turkish
             *     * `nl` - Dutch
             *     * `it` - Italian
             *     * `sv` - Swedish
             *     * `da` - Danish
             *     * `nb` - Norwegian Bokmal
             *     * `fi` - Finnish
             *     * `id` - Indonesian
             */
            language?: components["schemas"]["LanguageEnum"] | components["schemas"]["BlankEnum"];
            /** @description Time zone of users without one of their own, such as Europe/Berlin, for times in prompts and the days of messages. Blank: UTC. */
            time_zone?: string;
            /**
             * @description How the agent searches memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out memories that are probably irrelevant, all of them if necessary. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how strict recall is. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer irrelevant ones
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more irrelevant ones
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has at least this gate value. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate value. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Number of turns before and after a memory that are included with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights: {
                [key: string]: number;
            };
            /** @description Tools that the agent may use. remember_fact stores a fact about the user, after the user consents. */
            tools?: string[];
            /** @description Words or phrases in a message that call for a person, in addition to plain requests such as “talk to a human”. */
            escalate_on?: string[];
            /** @description Number of failed replies in a row in a thread after which a person is called. Blank: never. */
            escalate_after_failures?: number | null;
            /** @description Agents to which the language model may hand a conversation, with the tool hand_to_agent. */
            hands_to?: string[];
            /** @description Words or phrases in a message that hand the conversation to another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. */
            hand_over_on: {
                [key: string]: string;
            };
            /** @description Words or phrases in a message that return a conversation to the previous agent. */
            hand_back_on?: string[];
            /** @description Extract facts from idle conversations. The deployment must have a language model. */
            extracts_facts?: boolean;
            /** @description Model that extracts facts. Blank: the agent's model. */
            extraction_model?: string;
            /** @description A conversation is idle after this many seconds without a message. */
            extraction_idle_seconds?: number;
            /** @description Maximum number of messages in one request to the language model, 1 to 200. A conversation with this many new messages is processed at once. */
            extraction_batch_size?: number;
            /**
             * Maximum tokens for facts a day
             * @description Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank: no limit.
             */
            extraction_max_tokens_per_day?: number | null;
            /**
             * Review of facts
             * @description Which extracted facts a person confirms before agents use them.
             *
             *     * `none` - none: use all facts at once
             *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics
             *     * `all` - all
             */
            fact_review?: components["schemas"]["FactReviewEnum"];
            /** @description Different rules for single slots, such as {"diet": "all", "hobby": "none"}. */
            fact_review_by_slot: {
                [key: string]: "none" | "doubtful" | "all";
            };
            /**
             * Format: date-time
             * @description Time of creation.
             */
            readonly created_at: string;
        };
        /** @description The fields of an agent to change. Omitted fields are unchanged. */
        AgentChanges: {
            /** @description The name for programs and people. Unique in the tenant, and not a UUID. */
            name?: string;
            /** @description The agent's purpose and instructions. Every prompt begins with them. */
            system_prompt?: string;
            /** @description The agent's identity: “You are Ada, the librarian …” */
            identity?: string;
            /** @description The agent's style: tone, language, manners. */
            persona?: string;
            /** @description Name of the language model for the deployment's server, and for language models of the tenant without a name of a model. Blank: the deployment's model of the tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Names of the tenant's language models that answer, in this order: the next one is called if one fails. None: the tenant's default models. */
            language_models?: string[];
            /** @description Name of the tenant's reranker, which sorts recalled memories. Blank: none. */
            reranker?: string;
            /** @description Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed. */
            accepts_client_instructions?: boolean;
            /** @description Maximum number of tokens in one answer of the language model. An application may ask for fewer. Blank: only the model's own limit. */
            max_completion_tokens?: number | null;
            /** @description After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no limit. */
            max_tokens_per_day?: number | null;
            /** @description An inactive agent accepts no messages; its memory stays. */
            is_active?: boolean;
            /** @description After this many hours without a message, a new conversation begins: earlier turns are recalled, instead of being turns of the prompt. */
            conversation_pause_hours?: number;
            /**
             * @description Language in which all Latin words of messages and questions are searched. Blank: that of the user, or else of each text, by its frequent words.
             *
             *     * `en` - English
             *     * `de` - German
             *     * `es` - Spanish
             *     * `fr` - French
             *     * `pt` - Portuguese
             *     * `pl` - Polish
             *     * `tr` - Turkish
             *     * `nl` - Dutch
             *     * `it` - Italian
             *     * `sv` - Swedish
             *     * `da` - Danish
             *     * `nb` - Norwegian Bokmal
             *     * `fi` - Finnish
             *     * `id` - Indonesian
             */
            language?: components["schemas"]["LanguageEnum"] | components["schemas"]["BlankEnum"];
            /** @description Time zone of users without one of their own, such as Europe/Berlin, for times in prompts and the days of messages. Blank: UTC. */
            time_zone?: string;
            /**
             * @description How the agent searches memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out memories that are probably irrelevant, all of them if necessary. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how strict recall is. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer irrelevant ones
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more irrelevant ones
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has at least this gate value. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate value. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Number of turns before and after a memory that are included with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights?: components["schemas"]["RecallWeights"];
            /** @description Tools that the agent may use. remember_fact stores a fact about the user, after the user consents. */
            tools?: components["schemas"]["ToolsEnum"][];
            /** @description Words or phrases in a message that call for a person, in addition to plain requests such as “talk to a human”. */
            escalate_on?: string[];
            /** @description Number of failed replies in a row in a thread after which a person is called. Blank: never. */
            escalate_after_failures?: number | null;
            /** @description Agents to which the language model may hand a conversation, with the tool hand_to_agent. Names or ids. */
            hands_to?: string[];
            /** @description Words or phrases in a message that hand the conversation to another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. A name is accepted too. */
            hand_over_on?: {
                [key: string]: string;
            };
            /** @description Words or phrases in a message that return a conversation to the previous agent. */
            hand_back_on?: string[];
            /** @description Extract facts from idle conversations. The deployment must have a language model. */
            extracts_facts?: boolean;
            /** @description Model that extracts facts. Blank: the agent's model. */
            extraction_model?: string;
            /** @description A conversation is idle after this many seconds without a message. */
            extraction_idle_seconds?: number;
            /** @description Maximum number of messages in one request to the language model, 1 to 200. A conversation with this many new messages is processed at once. */
            extraction_batch_size?: number;
            /** @description Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank: no limit. */
            extraction_max_tokens_per_day?: number | null;
            /**
             * @description Which extracted facts a person confirms before agents use them.
             *
             *     * `none` - none: use all facts at once
             *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics
             *     * `all` - all
             */
            fact_review?: components["schemas"]["FactReviewEnum"];
            /** @description Different rules for single slots, such as {"diet": "all", "hobby": "none"}. */
            fact_review_by_slot?: {
                [key: string]: "none" | "doubtful" | "all";
            };
        };
        /** @description The fields of a new agent. */
        AgentFields: {
            /** @description The name for programs and people. Unique in the tenant, and not a UUID. */
            name: string;
            /** @description The agent's purpose and instructions. Every prompt begins with them. */
            system_prompt?: string;
            /** @description The agent's identity: “You are Ada, the librarian …” */
            identity?: string;
            /** @description The agent's style: tone, language, manners. */
            persona?: string;
            /** @description Name of the language model for the deployment's server, and for language models of the tenant without a name of a model. Blank: the deployment's model of the tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Names of the tenant's language models that answer, in this order: the next one is called if one fails. None: the tenant's default models. */
            language_models?: string[];
            /** @description Name of the tenant's reranker, which sorts recalled memories. Blank: none. */
            reranker?: string;
            /** @description Follow the system and developer messages that an application sends through OpenAI's interface, after the agent's own instructions. Those of a bound key are never followed. */
            accepts_client_instructions?: boolean;
            /** @description Maximum number of tokens in one answer of the language model. An application may ask for fewer. Blank: only the model's own limit. */
            max_completion_tokens?: number | null;
            /** @description After this many tokens of replies in a day (UTC) the agent's replies fail. Blank: no limit. */
            max_tokens_per_day?: number | null;
            /** @description An inactive agent accepts no messages; its memory stays. */
            is_active?: boolean;
            /** @description After this many hours without a message, a new conversation begins: earlier turns are recalled, instead of being turns of the prompt. */
            conversation_pause_hours?: number;
            /**
             * @description Language in which all Latin words of messages and questions are searched. Blank: that of the user, or else of each text, by its frequent words.
             *
             *     * `en` - English
             *     * `de` - German
             *     * `es` - Spanish
             *     * `fr` - French
             *     * `pt` - Portuguese
             *     * `pl` - Polish
             *     * `tr` - Turkish
             *     * `nl` - Dutch
             *     * `it` - Italian
             *     * `sv` - Swedish
             *     * `da` - Danish
             *     * `nb` - Norwegian Bokmal
             *     * `fi` - Finnish
             *     * `id` - Indonesian
             */
            language?: components["schemas"]["LanguageEnum"] | components["schemas"]["BlankEnum"];
            /** @description Time zone of users without one of their own, such as Europe/Berlin, for times in prompts and the days of messages. Blank: UTC. */
            time_zone?: string;
            /**
             * @description How the agent searches memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out memories that are probably irrelevant, all of them if necessary. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how strict recall is. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer irrelevant ones
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more irrelevant ones
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has at least this gate value. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate value. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Number of turns before and after a memory that are included with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights?: components["schemas"]["RecallWeights"];
            /** @description Tools that the agent may use. remember_fact stores a fact about the user, after the user consents. */
            tools?: components["schemas"]["ToolsEnum"][];
            /** @description Words or phrases in a message that call for a person, in addition to plain requests such as “talk to a human”. */
            escalate_on?: string[];
            /** @description Number of failed replies in a row in a thread after which a person is called. Blank: never. */
            escalate_after_failures?: number | null;
            /** @description Agents to which the language model may hand a conversation, with the tool hand_to_agent. Names or ids. */
            hands_to?: string[];
            /** @description Words or phrases in a message that hand the conversation to another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. A name is accepted too. */
            hand_over_on?: {
                [key: string]: string;
            };
            /** @description Words or phrases in a message that return a conversation to the previous agent. */
            hand_back_on?: string[];
            /** @description Extract facts from idle conversations. The deployment must have a language model. */
            extracts_facts?: boolean;
            /** @description Model that extracts facts. Blank: the agent's model. */
            extraction_model?: string;
            /** @description A conversation is idle after this many seconds without a message. */
            extraction_idle_seconds?: number;
            /** @description Maximum number of messages in one request to the language model, 1 to 200. A conversation with this many new messages is processed at once. */
            extraction_batch_size?: number;
            /** @description Maximum number of tokens that extraction may use for this agent in a day (UTC). Blank: no limit. */
            extraction_max_tokens_per_day?: number | null;
            /**
             * @description Which extracted facts a person confirms before agents use them.
             *
             *     * `none` - none: use all facts at once
             *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics
             *     * `all` - all
             */
            fact_review?: components["schemas"]["FactReviewEnum"];
            /** @description Different rules for single slots, such as {"diet": "all", "hobby": "none"}. */
            fact_review_by_slot?: {
                [key: string]: "none" | "doubtful" | "all";
            };
        };
        /** @description An agent that has talked with the user. */
        AgentOfUser: {
            /** Format: uuid */
            id: string;
            name: string;
            /** @description Messages of user and agent. */
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
            /** @description All settings of the agent, by column. */
            settings: {
                [key: string]: unknown;
            };
            /** @description Names of the settings that differ from the version before. */
            changed: string[];
            /** @description Number of the version that this one restores. */
            restores: number | null;
            /** @description The author's note on the change. */
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
        /** @description The answer of a person. */
        Answer: {
            /** @description The answer, which is sent to the user as it is. */
            content: string;
            /** @description Name of the person who answers. Default: that of the key. */
            name?: string;
        };
        /** @description The message with a person's answer. */
        AnswerMessage: {
            /** Format: uuid */
            readonly id: string;
            /** @description The text, verbatim. */
            content: string;
            /** @description The speaker's display name. */
            name?: string;
            /**
             * Format: uuid
             * @description The user's message that it replies to; empty if none waited.
             */
            in_reply_to: string | null;
            /**
             * Format: date-time
             * @description Time of the message; for imported turns, the original time.
             */
            created_at: string;
        };
        /** @description An API key, without its secret. */
        ApiKey: {
            /** Format: uuid */
            id: string;
            /** Format: uri */
            url: string;
            /** @description Name of the program that uses it. */
            name: string;
            /** @description Part of the key by which it is found. */
            prefix: string;
            /** @description Its scopes. */
            scopes: components["schemas"]["ScopesEnum"][];
            /** @description The only agent that it can use. */
            agent: string | null;
            /**
             * Format: uuid
             * @description The only agent that this key can use. Empty: all agents.
             */
            readonly agent_id: string | null;
            /** @description The only end user that this key can write for and read. Empty: all users. */
            user_id: string | null;
            /**
             * Format: uuid
             * @description The key that made it, with which it is revoked. Empty: none.
             */
            parent_id: string | null;
            /**
             * Format: date-time
             * @description Time of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last used, to within a few minutes.
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description The key is refused from this time on. Empty: it does not expire.
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was revoked.
             */
            revoked_at: string | null;
        };
        /** @description A new API key. */
        ApiKeyFields: {
            /** @description Name of the program that uses it. */
            name: string;
            /** @description Its scopes, of those of your key. Default: read and write. */
            scopes?: components["schemas"]["ScopesEnum"][];
            /** @description Name or id of the only agent that it can use. Default: your key's, or all. */
            agent?: string;
            /** @description The only user that it can write for and read. Default: your key's, or all. */
            user_id?: string;
            /**
             * Format: date-time
             * @description It is refused from then on; null: never. Default: the time of your key.
             */
            expires_at?: string | null;
        };
        /** @description A page of a list. */
        ApiKeyPage: {
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
            results: components["schemas"]["ApiKey"][];
        };
        /** @description The member of the team to whom an escalation is assigned. */
        Assignment: {
            /** @description Username of a member of the team who may answer. Empty: unassigned. */
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
        /** @description A fact of a batch, and its changes. */
        BatchChange: {
            /** @description The fact, in words. */
            content?: string;
            /** @description A JSON object that searches can filter by. It is merged into the metadata of a stored fact by RFC 7396 (JSON Merge Patch): objects at each depth, null removes a name, other values replace. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Start of the new version's validity: after the old version's, not in the future. Default: now.
             */
            valid_from?: string;
            /**
             * Format: date-time
             * @description End of its validity; null: still valid.
             */
            valid_to?: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at?: string | null;
            /** @description The reason, for the fact's events. */
            reason?: string;
            /** @description The value of the fact's slot, such as Oslo. Default: the words of the new content that replace it, or it, if the content still has it. */
            value?: string;
            /**
             * Format: uuid
             * @description The fact.
             */
            memory_id: string;
        };
        /** @enum {unknown} */
        BlankEnum: "";
        /** @description The changed facts of a batch, in the order of the request. */
        ChangedFacts: {
            results: components["schemas"]["Fact"][];
        };
        /** @description A message of a chat. */
        ChatMessage: {
            role: string;
            content: string;
        };
        /** @description The accepted candidates of two runs, by subject, slot and value. */
        Comparison: {
            /** @description Candidates of both runs, as the first has them. */
            both: {
                [key: string]: unknown;
            }[];
            /** @description Only of this run. */
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
            /** @description Name or id of the agent: its prompt, recall and facts are used. */
            agent: string;
            /** @description The current question: text, or an object with a `description` and further fields. Facts and conversations are searched with the text or the description; without one nothing is searched. Each further field becomes a line of the task in the prompt. */
            task: string | ({
                description?: string;
            } & {
                [key: string]: unknown;
            });
            /** @description The user. Without it, no user's facts and messages are included. */
            user_id?: string;
            /** @description A LangGraph thread: its turns are the session. Default, also for a thread without a history: the user's recent turns with the agent. */
            thread_id?: string;
            /** @description The turns before the task, oldest first, if the client has them. */
            messages?: components["schemas"]["GivenTurn"][];
            /** @description Replaces the agent's system prompt. */
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
            /** @description Facts and recalled turns, one per line. */
            context: string;
            task: string;
            token_usage: components["schemas"]["TokenUsage"];
            model_tier: string;
            /** @description Token limit of a prompt. */
            budget: number;
            left_out: components["schemas"]["LeftOut"];
            /** @description The source of each item of the context, in order. */
            sources: components["schemas"]["Source"][];
            /** @description For a chat model. */
            prompt: components["schemas"]["ChatMessage"][];
            /** @description Null: the agent has none. */
            reranker: components["schemas"]["Reranker"] | null;
        };
        /** @description An agent's conversation with a user in one thread. */
        Conversation: {
            /**
             * Format: uri
             * @description The URL of the transcript.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            thread_id: string;
            /** @description The title that a program set, or empty. */
            title: string;
            /** @description What a program set, or empty. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description Number of turns, of user and agent. */
            messages: number;
            /**
             * Format: date-time
             * @description Time of the first message.
             */
            first_at: string;
            /**
             * Format: date-time
             * @description Time of the last message.
             */
            last_at: string;
            /**
             * @description Role of the author of the latest message.
             *
             *     * `user` - User
             *     * `assistant` - Assistant
             */
            last_role: components["schemas"]["RoleEnum"];
            /** @description The first 200 characters of the last message. */
            last_content: string;
        };
        /** @description The title and metadata of a conversation. */
        ConversationChanges: {
            /** @description The title; empty: none. */
            title?: string;
            /** @description A JSON object, merged into the stored one by RFC 7396 (JSON Merge Patch); at most 8,192 bytes. */
            metadata?: {
                [key: string]: unknown;
            };
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
        /** @description What programs have set of a conversation. */
        ConversationRow: {
            /** @description The agent's name. */
            agent: string;
            /**
             * Format: uuid
             * @description The agent that this memory belongs to.
             */
            agent_id: string;
            /** @description The user's id in the channel, such as a Slack user id. */
            user_id: string;
            /** @description The conversation. */
            thread_id: string;
            /** @description The title. */
            title: string;
            metadata: {
                [key: string]: unknown;
            };
        };
        /**
         * @description * `dmy` - dmy
         *     * `mdy` - mdy
         *     * `ymd` - ymd
         * @enum {string}
         */
        DateOrderEnum: "dmy" | "mdy" | "ymd";
        /** @description The user's decision. */
        Decision: {
            /** @description true executes the call, false denies it. */
            approve: boolean;
        };
        /** @description Settings of a draft of an agent. Omitted settings are the agent's. */
        DraftFields: {
            /** @description The agent's purpose and instructions. Every prompt begins with them. */
            system_prompt?: string;
            /** @description The agent's identity: “You are Ada, the librarian …” */
            identity?: string;
            /** @description The agent's style: tone, language, manners. */
            persona?: string;
            /** @description Name of the language model for the deployment's server, and for language models of the tenant without a name of a model. Blank: the deployment's model of the tier. */
            model?: string;
            /**
             * @description fast: short contexts and low cost. reasoning: long contexts.
             *
             *     * `fast` - Fast
             *     * `reasoning` - Reasoning
             */
            model_tier?: components["schemas"]["ModelTierEnum"];
            /** @description Names of the tenant's language models that answer, in this order: the next one is called if one fails. None: the tenant's default models. */
            language_models?: string[];
            /** @description Name of the tenant's reranker, which sorts recalled memories. Blank: none. */
            reranker?: string;
            /** @description Maximum number of tokens in one answer of the language model. An application may ask for fewer. Blank: only the model's own limit. */
            max_completion_tokens?: number | null;
            /**
             * @description How the agent searches memories.
             *
             *     * `hybrid` - hybrid: meaning and words
             *     * `vector` - vector: cosine similarity alone
             */
            recall_mode?: components["schemas"]["RecallModeEnum"];
            /** @description Maximum number of memories in a prompt, 1 to 100. Blank: as measured (10). */
            recall_top_k?: number | null;
            /** @description Leave out memories that are probably irrelevant, all of them if necessary. */
            recall_gate?: boolean;
            /**
             * @description With the gate: how strict recall is. Choosing a preset clears the agent's own thresholds.
             *
             *     * `precise` - precise: fewer memories, fewer irrelevant ones
             *     * `balanced` - balanced
             *     * `thorough` - thorough: more memories, more irrelevant ones
             */
            recall_preset?: components["schemas"]["RecallPresetEnum"];
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: no memory is used unless the best one has at least this gate value. Blank: the preset's.
             */
            recall_open_at?: number | null;
            /**
             * Format: double
             * @description Own threshold instead of the preset's, 0 to 1: each memory must have at least this gate value. Blank: the preset's.
             */
            recall_keep_at?: number | null;
            /** @description Number of turns before and after a memory that are included with it, 0 to 10. Blank: as measured (0). */
            recall_neighbours?: number | null;
            /** @description Weights of the ranking that differ from the measured ones, such as {"time": 1}. */
            recall_weights?: components["schemas"]["RecallWeights"];
            /** @description Tools that the agent may use. remember_fact stores a fact about the user, after the user consents. */
            tools?: components["schemas"]["ToolsEnum"][];
            /** @description Words or phrases in a message that call for a person, in addition to plain requests such as “talk to a human”. */
            escalate_on?: string[];
            /** @description Agents to which the language model may hand a conversation, with the tool hand_to_agent. Names or ids. */
            hands_to?: string[];
            /** @description Words or phrases in a message that hand the conversation to another agent, each with that agent's id: {"invoice": "0b6ef0bd-…"}. A name is accepted too. */
            hand_over_on?: {
                [key: string]: string;
            };
            /** @description Words or phrases in a message that return a conversation to the previous agent. */
            hand_back_on?: string[];
        };
        /** @description The result of a dry run. */
        DryReply: {
            /** @description The reply. Empty: no reply, or none yet. */
            reply: string;
            /** @description Name of the agent that answers. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            /** @description Decision and reason. */
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
            /** @description null: no model call. */
            recall: components["schemas"]["DryTrace"] | null;
        };
        /** @description The replies of an agent and of its draft. */
        DryRun: {
            /** @description The person who writes. */
            user_id: string | null;
            /** @description Names of the settings in which the draft differs. */
            changes: string[];
            /** @description The result of the current agent. */
            live: components["schemas"]["DryReply"];
            /** @description The result of the draft. null: no draft, or one without changes. */
            draft: components["schemas"]["DryReply"] | null;
        };
        /** @description The recall and the prompt of a reply, as in a recall event. */
        DryTrace: {
            /** @description The memories found, best first, with the score of every channel, and the calibrated `probability`. */
            hits: {
                [key: string]: unknown;
            }[];
            /** @description The best of the memories left out, with the reason; otherwise as in `hits`. */
            cut: {
                [key: string]: unknown;
            }[];
            /** @description The facts considered, each with its reason. */
            facts: {
                [key: string]: unknown;
            }[];
            /** @description The memories in the prompt, verbatim. */
            injected: string[];
            /** @description The order of the agent's reranker as `ranked`, with scores, or the `problem`; null: there is none. */
            reranker: {
                [key: string]: unknown;
            } | null;
            /** @description The prompt as it was sent, with the tokens of each section; null if not kept. */
            prompt: {
                [key: string]: unknown;
            } | null;
            /** @description The query. */
            query: string;
            /** @description No memory was relevant enough. */
            abstained: boolean;
            embedding_model: string;
            /**
             * Format: double
             * @description Duration of the recall.
             */
            milliseconds: number;
        };
        /** @description An erasure request and, once done, its receipt. */
        Erasure: {
            /** Format: uri */
            url: string;
            /** Format: uuid */
            id: string;
            /** @description The user; once done, a keyed digest: `erased:…`. */
            user_id: string;
            /** @description All ids of the person: the given id and the ids linked to it. Once done, their digests. */
            user_ids: string[];
            /**
             * Format: uuid
             * @description Null: all agents.
             */
            agent_id: string | null;
            /** @description The conversation that is erased, or that has the erased message. Null: the user is erased. */
            thread_id?: string | null;
            /**
             * Format: uuid
             * @description The message.
             */
            message_id?: string | null;
            /** @description All replies to others that were written with the user's words are erased. */
            all_replies?: boolean;
            /** @description Further replies. */
            reply_ids: string[];
            reason: string;
            requested_by: string;
            /** Format: date-time */
            created_at: string;
            /**
             * @description done: the receipt lists the data that was removed, and data that is removed later.
             *
             *     * `requested` - requested
             *     * `running` - running
             *     * `done` - done
             */
            state: components["schemas"]["ErasureStateEnum"];
            /** @description While it is running. */
            progress: components["schemas"]["ErasureProgress"] | null;
            /** @description Why it has not finished yet, or empty. */
            problem: string;
            /** Format: date-time */
            done_at: string | null;
            /** @description The numbers of rows removed from each table, with digests of the ids and without texts. `found` is false if nothing was stored about the user. `replies_to_others` has the numbers of replies to others that were chosen (or `all`), erased and kept. `storage` lists the rewritten files, and when other files lose the removed values. */
            receipt: unknown;
        };
        /** @description A page of a list. */
        ErasurePage: {
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
            results: components["schemas"]["Erasure"][];
        };
        /** @description The progress of an erasure. */
        ErasureProgress: {
            /** @description The current step. */
            step: string;
            /** @description Number of messages removed. */
            messages_removed: number;
            /** @description Number of messages found so far. */
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
             * @description open: a person or `to_agent` answers instead of the thread's own agent.
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
             * @description The agent that this memory belongs to.
             */
            agent_id: string;
            /**
             * User
             * @description The user's id in the channel, such as a Slack user id.
             */
            user_id: string;
            /**
             * Thread
             * @description The conversation's id in the channel.
             */
            thread_id: string;
            /** @description The channel: rest, slack … */
            channel: string;
            /**
             * Message
             * Format: uuid
             * @description The message that caused the escalation. Its reply announces that a person will answer.
             */
            message_id?: string | null;
            /** @description The name of the agent that answers instead; empty if a person answers. */
            to_agent: string;
            /**
             * To agent
             * Format: uuid
             * @description The agent that answers instead; empty if a person answers.
             */
            to_agent_id?: string | null;
            /**
             * From agent
             * Format: uuid
             * @description The previous agent, which can get the conversation back.
             */
            from_agent_id?: string | null;
            /**
             * @description The cause of the escalation.
             *
             *     * `user` - the user asked for it
             *     * `rule` - a rule of the agent
             *     * `agent` - an agent's language model
             *     * `program` - a program
             *     * `person` - a person in the admin
             */
            opened_by: components["schemas"]["OpenedByEnum"];
            /** @description The name of the program or person. */
            opened_by_name?: string;
            /** @description The reason. */
            reason: string;
            /**
             * Format: date-time
             * @description When it was opened.
             */
            opened_at: string;
            /** @description Username of the colleague to whom it is assigned; empty: unassigned. */
            assigned_to?: string;
            /**
             * Format: date-time
             * @description When it was resolved; empty while it is open.
             */
            resolved_at?: string | null;
            /** @description The person who resolved it. */
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
             *     * `to_person` - a person was requested
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
        /** @description An event. */
        Event: {
            /**
             * Format: uuid
             * @description Its id, which is `webhook-id` of a webhook.
             */
            id: string;
            /**
             * @description The type.
             *
             *     * `message.answered` - A message was answered
             *     * `message.failed` - The reply to a message failed for good
             *     * `message.closed` - A message was closed without a reply
             *     * `escalation.opened` - A user waits for a person
             *     * `escalation.waiting` - A message waits for a person
             *     * `escalation.answered` - A person answered a user
             *     * `escalation.resolved` - An escalation was resolved
             *     * `tool_call.waiting` - A tool call waits for consent, or for a program
             *     * `fact.proposed` - A fact waits for a review
             *     * `fact.active` - A fact is active
             *     * `fact.superseded` - A fact was superseded by a newer one
             *     * `fact.retracted` - A fact was retracted
             *     * `erasure.requested` - An erasure was requested
             *     * `erasure.done` - An erasure is done
             *     * `import.done` - An import of history is done
             *     * `quota.reached` - A quota is at its soft or hard limit
             *     * `job.failed` - A reply, delivery or other job failed for good
             */
            type: components["schemas"]["EventTypeEnum"];
            /**
             * Format: date-time
             * @description When it happened.
             */
            timestamp: string;
            /** @description Its object. */
            data: components["schemas"]["EventData"];
        };
        /** @description The object of an event. */
        EventData: {
            /**
             * Format: uuid
             * @description Id of the message, escalation, fact …
             */
            id: string;
            /**
             * Format: uuid
             * @description The agent.
             */
            agent_id: string | null;
            /** @description The user. */
            user_id: string | null;
            /** @description The conversation. */
            thread_id: string | null;
            /**
             * Format: uuid
             * @description The message with the answer, of `escalation.answered`.
             */
            message_id?: string;
            /** @description The quota, of `quota.reached`. */
            quota?: string;
        };
        /**
         * @description * `message.answered` - A message was answered
         *     * `message.failed` - The reply to a message failed for good
         *     * `message.closed` - A message was closed without a reply
         *     * `escalation.opened` - A user waits for a person
         *     * `escalation.waiting` - A message waits for a person
         *     * `escalation.answered` - A person answered a user
         *     * `escalation.resolved` - An escalation was resolved
         *     * `tool_call.waiting` - A tool call waits for consent, or for a program
         *     * `fact.proposed` - A fact waits for a review
         *     * `fact.active` - A fact is active
         *     * `fact.superseded` - A fact was superseded by a newer one
         *     * `fact.retracted` - A fact was retracted
         *     * `erasure.requested` - An erasure was requested
         *     * `erasure.done` - An erasure is done
         *     * `import.done` - An import of history is done
         *     * `quota.reached` - A quota is at its soft or hard limit
         *     * `job.failed` - A reply, delivery or other job failed for good
         * @enum {string}
         */
        EventTypeEnum: "message.answered" | "message.failed" | "message.closed" | "escalation.opened" | "escalation.waiting" | "escalation.answered" | "escalation.resolved" | "tool_call.waiting" | "fact.proposed" | "fact.active" | "fact.superseded" | "fact.retracted" | "erasure.requested" | "erasure.done" | "import.done" | "quota.reached" | "job.failed";
        /** @description Events in their order. */
        Events: {
            /** @description The events after `after`, oldest first. */
            events: components["schemas"]["Event"][];
            /** @description The value of `after` for the next request. */
            after: number;
            /** @description Whether there are more events already. */
            has_more: boolean;
        };
        /** @description A quote from a message as the evidence of a fact. */
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
        /** @description A message, or some of its words, excluded from recall. */
        Exclusion: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uuid
             * @description The message.
             */
            message_id: string;
            /** @description First character of the excluded words. Empty: the whole message is excluded. */
            start: number | null;
            /** @description Position after the last character of the excluded words. */
            end: number | null;
            /**
             * Format: uuid
             * @description The corrected fact, or its old version. Empty: the message was excluded without a correction.
             */
            memory_id: string | null;
            /**
             * Format: uuid
             * @description The exclusion of the message that this reply repeats. Empty: none.
             */
            echo_of: string | null;
            /** @description The author's reason. */
            reason: string;
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
        /** @description All data of a person. Further members are lists of rows by their kind. */
        Export: {
            /** @description The user. */
            user_id: string;
            /** @description Ids of the person. */
            user_ids: string[];
            /**
             * Format: date-time
             * @description When it was exported.
             */
            exported_at: string;
            /** @description Their messages. */
            messages: {
                [key: string]: unknown;
            }[];
            /** @description Facts about them. */
            facts: {
                [key: string]: unknown;
            }[];
        };
        /** @description The progress of extraction in a conversation. */
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
            /** @description `number` of the last processed one, or 0. */
            last_number: number;
            /**
             * Format: date-time
             * @description When the last run ended.
             */
            processed_at: string | null;
            /** @description Attempts since the last success. */
            attempts: number;
            /** @description Why the last attempt failed, or why the run waits. */
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
             * @description The URL with all fields.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /**
             * Format: uuid
             * @description The agent that this memory belongs to.
             */
            agent_id: string;
            /** @description The user's id in the channel, such as a Slack user id. */
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
             * @description The run that this one replays.
             */
            replay_of: string | null;
            /** @description The person or key that requested it. Empty: the platform. */
            requested_by: string;
            /** @description The language model. */
            model: string;
            /** @description Host and port of the language model's server. */
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
             * @description Cost, by the prices of the language models at that time.
             */
            cost: string;
            /** @description Counts by outcome, and refused ones by reason. */
            result: {
                [key: string]: unknown;
            };
            /** @description Why it failed. */
            error: string;
            /**
             * Format: date-time
             * @description Time of the first message.
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
             * @description The URL with all fields.
             */
            url: string;
            /** @description The agent's name. */
            agent: string;
            /**
             * Format: uuid
             * @description The agent that this memory belongs to.
             */
            agent_id: string;
            /** @description The user's id in the channel, such as a Slack user id. */
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
             * @description The run that this one replays.
             */
            replay_of: string | null;
            /** @description The person or key that requested it. Empty: the platform. */
            requested_by: string;
            /** @description The language model. */
            model: string;
            /** @description Host and port of the language model's server. */
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
             * @description Cost, by the prices of the language models at that time.
             */
            cost: string;
            /** @description Counts by outcome, and refused ones by reason. */
            result: {
                [key: string]: unknown;
            };
            /** @description Why it failed. */
            error: string;
            /**
             * Format: date-time
             * @description Time of the first message.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it ended.
             */
            ended_at: string | null;
            /** @description Each candidate with its outcome and its fact. */
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
             * @description The fact; its id never changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description The agent that can use it; null: all. */
            agent: string | null;
            /**
             * Format: uuid
             * @description The agent that knows the fact. Empty: all agents.
             */
            agent_id: string | null;
            /** @description The user that the fact is about. Empty: no user. */
            user_id: string | null;
            /** @description The id that the program chose which stored it. Empty: the text identifies it. */
            external_id: string | null;
            /** @description The fact, in words. */
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was first stored.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Start of validity.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description End of validity. Empty: still valid.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description The version's id; for the current version the fact's id.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description The name of the person or thing that the fact is about. */
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
            /** @description Name of the person who stated it. */
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
            /** @description Why a person must review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
        };
        /** @description The fields of a fact to change. The former values are kept as a version. */
        FactChange: {
            /** @description The fact, in words. */
            content?: string;
            /** @description A JSON object that searches can filter by. It is merged into the metadata of a stored fact by RFC 7396 (JSON Merge Patch): objects at each depth, null removes a name, other values replace. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Start of the new version's validity: after the old version's, not in the future. Default: now.
             */
            valid_from?: string;
            /**
             * Format: date-time
             * @description End of its validity; null: still valid.
             */
            valid_to?: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at?: string | null;
            /** @description The reason, for the fact's events. */
            reason?: string;
            /** @description The value of the fact's slot, such as Oslo. Default: the words of the new content that replace it, or it, if the content still has it. */
            value?: string;
        };
        /** @description Facts to change together. */
        FactChanges: {
            /** @description The changes, each of another fact. All of them are made, or none. */
            facts: components["schemas"]["BatchChange"][];
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
            /** @description Id of the person, the API key or the extraction run. */
            author_id: string;
            /** @description Name of the author. */
            author_name: string;
            /** @description The author's reason. */
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
        /** @description Facts to delete together. */
        FactIds: {
            /** @description The facts. All of them are deleted, or none. */
            memory_ids: string[];
        };
        /** @description A fact, or an earlier version, with its evidence. */
        FactInFull: {
            /**
             * Format: uuid
             * @description The fact; its id never changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description The agent that can use it; null: all. */
            agent: string | null;
            /**
             * Format: uuid
             * @description The agent that knows the fact. Empty: all agents.
             */
            agent_id: string | null;
            /** @description The user that the fact is about. Empty: no user. */
            user_id: string | null;
            /** @description The id that the program chose which stored it. Empty: the text identifies it. */
            external_id: string | null;
            /** @description The fact, in words. */
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was first stored.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Start of validity.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description End of validity. Empty: still valid.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description The version's id; for the current version the fact's id.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description The name of the person or thing that the fact is about. */
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
            /** @description Name of the person who stated it. */
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
            /** @description Why a person must review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
            /** @description The evidence of the fact; empty for a fact that a person or a program entered. */
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
         *     * `doubtful` - doubtful: conflicts, conclusions, sensitive topics
         *     * `all` - all
         * @enum {string}
         */
        FactReviewEnum: "none" | "doubtful" | "all";
        /** @description A search of facts. */
        FactSearch: {
            /**
             * Format: date-time
             * @description The state at that time (ISO 8601 with a time zone).
             */
            at?: string;
            /** @description Only facts that this agent can use: its own, and those of all agents. */
            agent?: string;
            /** @description Only facts about this user, and about no user. */
            user_id?: string;
            /** @description A question, in any words. */
            query: string;
            /** @description Only facts about no user. Default: false. */
            shared_only?: boolean;
            /** @description false: without facts of no user. Default: true. */
            shared?: boolean;
            /** @description Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. Operators: eq, ne, in, exists, gt, gte, lt, lte, contains, icontains. All must match. */
            filters?: {
                [key: string]: unknown;
            };
            /** @description At most this many results. Default: 10. */
            limit?: number;
            /**
             * Format: double
             * @description Minimum cosine similarity. Default: no minimum.
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
        /** @description Why a message has no reply yet. */
        Failure: {
            /** @description The code of the last error, for programs: llm_unavailable, llm_timeout, llm_refused, llm_reply_invalid, time_limit, worker_lost, internal_error; closed for a message with the status `closed` … */
            code: string;
            /** @description The same as a sentence, for people. */
            detail: string;
            /** @description The number of attempts, with the current one. */
            attempts: number;
            /**
             * Format: date-time
             * @description The time of the next attempt; null if there is none.
             */
            next_attempt_at: string | null;
        };
        /** @description An error in one field, header or query parameter. */
        FieldError: {
            /** @description The name of the field; `body` for the whole body. */
            field: string;
            /** @description The error, and the valid values. */
            detail: string;
            /** @description The sent value, if it is short. */
            value?: unknown;
        };
        /**
         * @description * `slack` - slack
         *     * `whatsapp` - whatsapp
         *     * `telegram` - telegram
         *     * `chatgpt` - chatgpt
         *     * `sharegpt` - sharegpt
         *     * `mem0` - mem0
         *     * `zep` - zep
         *     * `csv` - csv
         *     * `transcript` - transcript
         * @enum {string}
         */
        FormatEnum: "slack" | "whatsapp" | "telegram" | "chatgpt" | "sharegpt" | "mem0" | "zep" | "csv" | "transcript";
        /** @description A fact found by a search. */
        FoundFact: {
            /**
             * Format: uuid
             * @description The fact; its id never changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description The agent that can use it; null: all. */
            agent: string | null;
            /**
             * Format: uuid
             * @description The agent that knows the fact. Empty: all agents.
             */
            agent_id: string | null;
            /** @description The user that the fact is about. Empty: no user. */
            user_id: string | null;
            /** @description The id that the program chose which stored it. Empty: the text identifies it. */
            external_id: string | null;
            /** @description The fact, in words. */
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was first stored.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Start of validity.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description End of validity. Empty: still valid.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description The version's id; for the current version the fact's id.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description The name of the person or thing that the fact is about. */
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
            /** @description Name of the person who stated it. */
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
            /** @description Why a person must review it, such as conflict or health. */
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
        /** @description The state of an import, and its report. */
        HistoryImport: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description Its address.
             */
            url: string;
            state: components["schemas"]["HistoryImportStateEnum"];
            /** @description Name of the file. */
            file_name: string;
            /** @description Whether nothing is stored. */
            dry_run: boolean;
            /** @description Conversations, authors, and what is left out. */
            report: unknown;
            /** @description Why it failed. */
            error: string;
            /**
             * Format: date-time
             * @description When the file was sent.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the preview or the import ended.
             */
            finished_at: string | null;
        };
        /**
         * @description * `waiting` - waiting
         *     * `previewed` - previewed
         *     * `imported` - imported
         *     * `failed` - failed
         * @enum {string}
         */
        HistoryImportStateEnum: "waiting" | "previewed" | "imported" | "failed";
        /** @description A hook of Claude Code. Other fields are ignored. */
        Hook: {
            /** @description The session, which is the conversation. */
            session_id: string;
            /** @description UserPromptSubmit and Stop are stored, others are ignored. */
            hook_event_name: string;
            /** @description The user's prompt, of UserPromptSubmit. */
            prompt?: string;
            /** @description The final reply, of Stop. */
            last_assistant_message?: string | null;
        };
        /** @description The id of a sender in a channel, and the user that its messages belong to. */
        Identity: {
            /** Format: uuid */
            readonly id: string;
            /** Format: uri */
            url: string;
            /** @description slack … */
            channel: string;
            /**
             * @description The workspace in the channel, if the channel has workspaces.
             * @default
             */
            workspace: string;
            /**
             * Id
             * @description The sender's id in the channel.
             */
            native_id: string;
            /** @description The sender's name in the channel. */
            name?: string;
            /**
             * Own user id
             * @description The identity's own user id; no other identity has the same.
             */
            own_id: string;
            /**
             * User
             * @description The user that the identity belongs to.
             */
            user_id: string;
            /**
             * Format: date-time
             * @description Time of the first message.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the identity was linked to another user.
             */
            linked_at?: string | null;
            /** @description The person who linked it. */
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
            /** @description Each has role and content, and optional further fields. Anything else is reported as invalid. */
            messages: {
                /** @description Its id in the source system; unique for one agent and user. A message that was imported with this id before is not changed. Default: computed from the message; see the operation. */
                external_id?: string;
                /** @description Name or id of the agent. Default: the request's `agent`. */
                agent?: string;
                /** @description The user of the conversation. Default: the request's `user_id`. */
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
                /** @description A JSON object that lists and searches can filter by, with the rules of facts' metadata; at most 8,192 bytes. */
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
            /** @description Whether recall and search can find all of them. */
            indexed: boolean;
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
             * @description Its message in the transcript. Null: it has none.
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
        /**
         * @description * `en` - English
         *     * `de` - German
         *     * `es` - Spanish
         *     * `fr` - French
         *     * `pt` - Portuguese
         *     * `pl` - Polish
         *     * `tr` - Turkish
         *     * `nl` - Dutch
         *     * `it` - Italian
         *     * `sv` - Swedish
         *     * `da` - Danish
         *     * `nb` - Norwegian Bokmal
         *     * `fi` - Finnish
         *     * `id` - Indonesian
         * @enum {string}
         */
        LanguageEnum: "en" | "de" | "es" | "fr" | "pt" | "pl" | "tr" | "nl" | "it" | "sv" | "da" | "nb" | "fi" | "id";
        /** @description A language model of the tenant, without its key. */
        LanguageModel: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uri
             * @description Where it is.
             */
            readonly url: string;
            /** @description The name by which agents refer to it. Unique in the tenant. */
            name: string;
            /**
             * @description A reranker sorts the memories of agents that name it. Its server is asked at /rerank below the address.
             *
             *     * `language_model` - language model: answers and extracts facts
             *     * `reranker` - reranker: sorts recalled memories
             */
            kind?: components["schemas"]["ModelKindEnum"];
            /**
             * Address
             * @description Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a pool. Blank: the deployment's server, with its key and its prices.
             */
            endpoint?: string;
            /** @description Name of the model for the server. Blank: the agent's model, or else its tier. */
            model?: string;
            /**
             * Format: decimal
             * @description Price of a million input tokens.
             */
            prompt_price?: string;
            /**
             * Format: decimal
             * @description Price of a million output tokens.
             */
            completion_price?: string;
            /** @description Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one gets at most half of the time that is left. Blank: LLM_TIMEOUT. */
            timeout_seconds?: number | null;
            /**
             * Maximum tokens a day
             * @description After this many tokens of a day (UTC) the next model is called. Blank: no limit.
             */
            max_tokens_per_day?: number | null;
            /** @description Place among the models of agents without own ones, lowest first. Blank: it is only for agents that name it. */
            position?: number | null;
            /**
             * Minimum score
             * Format: double
             * @description Of a reranker: memories with a lower score are left out. Blank: none are.
             */
            min_score?: number | null;
            /**
             * Active
             * @description Whether it is called.
             */
            is_active?: boolean;
            /** @description Whether it has a key. */
            readonly has_key: boolean;
            /**
             * Format: date-time
             * @description Time of creation.
             */
            readonly created_at: string;
        };
        /** @description The fields of a language model to change. Omitted fields are unchanged. */
        LanguageModelChanges: {
            /** @description The name by which agents refer to it. */
            name?: string;
            /**
             * @description A reranker sorts the memories of agents that name it. Its server is asked at /rerank below the address.
             *
             *     * `language_model` - language model: answers and extracts facts
             *     * `reranker` - reranker: sorts recalled memories
             */
            kind?: components["schemas"]["ModelKindEnum"];
            /** @description Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a pool. Blank: the deployment's server, with its key and its prices. */
            endpoint?: string;
            /** @description Name of the model for the server. Blank: the agent's model, or else its tier. */
            model?: string;
            /**
             * Format: decimal
             * @description Price of a million input tokens.
             */
            prompt_price?: string;
            /**
             * Format: decimal
             * @description Price of a million output tokens.
             */
            completion_price?: string;
            /** @description Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one gets at most half of the time that is left. Blank: LLM_TIMEOUT. */
            timeout_seconds?: number | null;
            /** @description After this many tokens of a day (UTC) the next model is called. Blank: no limit. */
            max_tokens_per_day?: number | null;
            /** @description Place among the models of agents without own ones, lowest first. Blank: it is only for agents that name it. */
            position?: number | null;
            /**
             * Format: double
             * @description Of a reranker: memories with a lower score are left out. Blank: none are.
             */
            min_score?: number | null;
            /** @description Whether it is called. */
            is_active?: boolean;
            /** @description The key of its server. No response shows it. Empty: none. */
            key?: string;
        };
        /** @description The fields of a language model. */
        LanguageModelFields: {
            /** @description The name by which agents refer to it. */
            name: string;
            /**
             * @description A reranker sorts the memories of agents that name it. Its server is asked at /rerank below the address.
             *
             *     * `language_model` - language model: answers and extracts facts
             *     * `reranker` - reranker: sorts recalled memories
             */
            kind?: components["schemas"]["ModelKindEnum"];
            /** @description Address of an OpenAI-compatible server, such as https://api.example.com/v1, or of a pool. Blank: the deployment's server, with its key and its prices. */
            endpoint?: string;
            /** @description Name of the model for the server. Blank: the agent's model, or else its tier. */
            model?: string;
            /**
             * Format: decimal
             * @description Price of a million input tokens.
             */
            prompt_price?: string;
            /**
             * Format: decimal
             * @description Price of a million output tokens.
             */
            completion_price?: string;
            /** @description Seconds for an answer, at most the deployment's LLM_TIMEOUT. A model that has a next one gets at most half of the time that is left. Blank: LLM_TIMEOUT. */
            timeout_seconds?: number | null;
            /** @description After this many tokens of a day (UTC) the next model is called. Blank: no limit. */
            max_tokens_per_day?: number | null;
            /** @description Place among the models of agents without own ones, lowest first. Blank: it is only for agents that name it. */
            position?: number | null;
            /**
             * Format: double
             * @description Of a reranker: memories with a lower score are left out. Blank: none are.
             */
            min_score?: number | null;
            /** @description Whether it is called. */
            is_active?: boolean;
            /** @description The key of its server. No response shows it. Empty: none. */
            key?: string;
        };
        /** @description A page of a list. */
        LanguageModelPage: {
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
            results: components["schemas"]["LanguageModel"][];
        };
        /** @description What a language model can do, and how long it takes. */
        LanguageModelTest: {
            /** @description Why it does not answer. Empty: it answers. */
            problem: string;
            /**
             * Format: double
             * @description Until the first text. null: it does not stream.
             */
            first_text_seconds: number | null;
            /**
             * Format: double
             * @description Until the whole text. null: it does not answer.
             */
            seconds: number | null;
            /** @description Whether texts come in parts. */
            streams: boolean;
            /** @description Whether it called a tool. */
            calls_tools: boolean;
            /** @description Whether its answer followed a JSON schema, which the extraction of facts uses. */
            follows_schema: boolean;
        };
        /** @description The numbers of turns and memories that did not fit. */
        LeftOut: {
            /** @description The oldest turns. */
            messages: number;
            /** @description The least relevant. */
            memories: number;
            /** @description Parts of the task that were cut or left out: `description`, and names of its fields. */
            task: string[];
        };
        /** @description An error of one field of a message. */
        LineError: {
            /** @description Empty: the message as a whole. */
            field: string;
            detail: string;
        };
        /** @description The result for one message. An invalid one has no ids and no time. */
        LineResult: {
            /** @description Its index in the request, from 0. */
            index: number;
            /**
             * @description created; exists: a message with this external_id was imported before and is unchanged; invalid: see error.
             *
             *     * `created` - created
             *     * `exists` - exists
             *     * `invalid` - invalid
             */
            status: components["schemas"]["LineResultStatusEnum"];
            /** @description As it was sent, or computed. */
            external_id: string | null;
            /** Format: uuid */
            message_id: string | null;
            /** Format: uuid */
            agent_id: string | null;
            user_id: string | null;
            thread_id: string | null;
            /** Format: date-time */
            created_at: string | null;
            /** @description Why it is invalid; empty if it is valid. */
            error: string;
            /** @description The errors by field. */
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
            /** @description The new user of the identity. */
            user_id: string;
        };
        /** @description A message found by recall. */
        Memory: {
            /** Format: uuid */
            message_id: string;
            /**
             * Format: uuid
             * @description The agent that remembers it.
             */
            agent_id: string;
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
            /** @description As it was sent, or empty. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: double
             * @description Ranking score, comparable in this response only.
             */
            score: number;
            /**
             * Format: double
             * @description Calibrated probability that it is relevant.
             */
            probability: number;
            /**
             * Format: double
             * @description The gate's value, which is compared with the agent's thresholds; with explain.
             */
            gate_value?: number;
            /** @description The score of each channel before its weight; with explain. */
            channels?: {
                [key: string]: number;
            };
        };
        /** @description A call of the memory tool. */
        MemoryTool: {
            /** @description Name or id of the agent. */
            agent: string;
            /** @description The user. */
            user_id: string;
            /** @description The `input` of the `tool_use` block, with the command. */
            input: {
                [key: string]: unknown;
            };
        };
        /** @description The result of a call. */
        MemoryToolResult: {
            /** @description The `content` of the `tool_result` block. */
            content: string;
            /** @description Its `is_error`. */
            is_error: boolean;
        };
        /** @description A message, its status and its reply. */
        Message: {
            /** Format: uuid */
            id: string;
            /**
             * @description closed: it gets no separate reply, because another reply or a person has settled it; `error` has the reason. with_person: a person answers in this thread. awaiting_consent: a tool call of the agent waits for the user. with_program: the program that sent it must send results of its tools. `waits_for` has the details.
             *
             *     * `queued` - queued
             *     * `answered` - answered
             *     * `failed` - failed
             *     * `closed` - closed
             *     * `with_person` - with_person
             *     * `awaiting_consent` - awaiting_consent
             *     * `with_program` - with_program
             */
            status: components["schemas"]["MessageStatusEnum"];
            /**
             * Format: uri
             * @description The URL to poll.
             */
            url: string;
            /** @description The name of the agent that it was sent to. Another one may answer, see `answered_by`. */
            agent: string;
            /** Format: uuid */
            agent_id: string;
            user_id: string;
            thread_id: string;
            /** @description The channel: rest, slack … */
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
            /** @description Whether recall and search can find it. */
            indexed: boolean;
            /** @description Null until the status is `answered`. */
            reply: components["schemas"]["Reply"] | null;
            /** @description The person or program that must act while the message is held; else null. The message is answered afterwards: poll `url`. */
            waits_for: components["schemas"]["WaitsFor"] | null;
            /** @description Name of the agent or person that answered. */
            answered_by: string;
            /**
             * Format: uuid
             * @description The agent that answered; not `agent_id` if the thread was handed over. Null: a person, or a reply that is older than this field.
             */
            answered_by_id: string | null;
            /** @description The last error, while the reply is retried and when it has failed, or why the message was closed. */
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
         *     * `closed` - closed
         *     * `with_person` - with_person
         *     * `awaiting_consent` - awaiting_consent
         *     * `with_program` - with_program
         * @enum {string}
         */
        MessageStatusEnum: "queued" | "answered" | "failed" | "closed" | "with_person" | "awaiting_consent" | "with_program";
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
        /** @description A call of a language model. */
        ModelCall: {
            /** @description Purpose of the call, such as reply or extraction. */
            purpose: string;
            /** @description The language model. */
            model: string;
            /** @description Name of the tenant's language model. Empty: the deployment's. */
            language_model: string;
            /**
             * @description Empty: the process ended before the answer came.
             *
             *     * `` - unknown
             *     * `done` - done
             *     * `failed` - failed
             */
            outcome: components["schemas"]["ModelCallOutcomeEnum"] | components["schemas"]["BlankEnum"];
            /** @description Tokens sent. */
            prompt_tokens: number;
            /** @description Tokens received. */
            completion_tokens: number;
            /**
             * Format: decimal
             * @description Cost of the tokens, by these prices.
             */
            cost: string;
            /**
             * Format: date-time
             * @description When it was sent.
             */
            created_at: string;
        };
        /**
         * @description * `` - unknown
         *     * `done` - done
         *     * `failed` - failed
         * @enum {string}
         */
        ModelCallOutcomeEnum: "done" | "failed";
        /**
         * @description * `language_model` - language model: answers and extracts facts
         *     * `reranker` - reranker: sorts recalled memories
         * @enum {string}
         */
        ModelKindEnum: "language_model" | "reranker";
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
            /** @description Purpose of the calls, such as extraction. */
            purpose: string;
            /** @description The tenant's model. Empty: the deployment's. */
            language_model: string;
            /** @description Name of the model for its server. */
            model: string;
            /** @description All calls. */
            calls: number;
            /** @description Calls that failed. */
            failed: number;
            /** @description Calls without an outcome: their process ended. */
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
        /** @description A fact with nearly the same meaning. */
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
        /** @description An API key with its secret. */
        NewApiKey: {
            /** Format: uuid */
            id: string;
            /** Format: uri */
            url: string;
            /** @description Name of the program that uses it. */
            name: string;
            /** @description Part of the key by which it is found. */
            prefix: string;
            /** @description Its scopes. */
            scopes: components["schemas"]["ScopesEnum"][];
            /** @description The only agent that it can use. */
            agent: string | null;
            /**
             * Format: uuid
             * @description The only agent that this key can use. Empty: all agents.
             */
            readonly agent_id: string | null;
            /** @description The only end user that this key can write for and read. Empty: all users. */
            user_id: string | null;
            /**
             * Format: uuid
             * @description The key that made it, with which it is revoked. Empty: none.
             */
            parent_id: string | null;
            /**
             * Format: date-time
             * @description Time of creation.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was last used, to within a few minutes.
             */
            last_used_at: string | null;
            /**
             * Format: date-time
             * @description The key is refused from this time on. Empty: it does not expire.
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When it was revoked.
             */
            revoked_at: string | null;
            /** @description The key, for `Authorization: Bearer`. Shown once. */
            key: string;
        };
        /** @description A message to an agent. */
        NewDryRun: {
            /** @description The message. */
            content: string;
            /** @description The user who writes. Default: a user without memories. */
            user_id?: string | null;
            /** @description Settings of a draft; it gets the same message. */
            draft?: components["schemas"]["DraftFields"];
        };
        /** @description The user to erase. */
        NewErasure: {
            /** @description The reason. It is stored on the receipt, so it must not contain an id or a name of the person. */
            reason?: string;
            /** @description The exact user id. Linked ids are erased too. */
            user_id: string;
            /** @description Name or id of an agent: only its data is erased. Default: all agents. */
            agent?: string;
            /** @description Sessions of graphs that belong to the user, in addition to those of their conversations. A session of a thread with other speakers, or that names another user, is refused. */
            threads?: string[];
            /** @description Erase all replies to others that were written with the user's words, which `GET /api/v1/erasures/replies/` lists. Default: they are kept. */
            all_replies?: boolean;
            /** @description The ids of those of these replies that are erased. */
            replies?: string[];
        };
        /** @description The thread that a person or another agent takes over. */
        NewEscalation: {
            /** @description Name or id of the agent. */
            agent: string;
            /** @description The user. */
            user_id: string;
            /** @description The conversation, with a message of the user. */
            thread_id: string;
            /** @description The reason, for the record. */
            reason: string;
            /** @description Name or id of the active agent that answers instead. Default: a person. */
            to_agent?: string;
        };
        /** @description The part of a message to exclude, and the reason. */
        NewExclusion: {
            /** @description The reason, for the fact's events. */
            reason?: string;
            /** @description First character of the words. Default, with `end`: the whole message. */
            start?: number;
            /** @description Position after the last character of the words. */
            end?: number;
        };
        /** @description A fact to store. */
        NewFact: {
            /** @description The fact, in words: “Maria is allergic to walnuts.” */
            content: string;
            /** @description A JSON object that searches can filter by. It is merged into the metadata of a stored fact by RFC 7396 (JSON Merge Patch): objects at each depth, null removes a name, other values replace. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Start of its validity. Default: now.
             */
            valid_from?: string;
            /**
             * Format: date-time
             * @description End of its validity; null: still valid.
             */
            valid_to?: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at?: string | null;
            /** @description The attribute of the subject that the fact states, such as `home_city`. Default: none. */
            slot?: string;
            /** @description The person or thing with that attribute, such as Maria. */
            subject?: string;
            /** @description The value of the slot, such as Oslo. */
            value?: string;
            /** @description Whether other values of the slot stay valid. Default: false, this value supersedes the current one of the same agent, user and subject. */
            is_multi_valued?: boolean;
            /** @description Name or id of the agent that can use it. Default: all agents; for a key that is bound to an agent, that agent. */
            agent?: string;
            /** @description The user that the fact is about. Default: no user; for a key that is bound to a user, that user. */
            user_id?: string;
            /** @description Your own id of the fact. A fact of the same agent and user with this id is changed: its text and metadata become those of the request. Default: none; the text identifies the fact. */
            external_id?: string;
        };
        /** @description Facts to store together. */
        NewFacts: {
            /** @description The facts. All of them are stored, or none. */
            facts: components["schemas"]["NewFact"][];
        };
        /** @description A file, how it is read, and who is who in it. */
        NewHistoryImport: {
            /** @description In base64; a large one as zip. */
            file: string;
            /** @description Its name, which must stay the same if a longer export is imported. */
            file_name: string;
            /**
             * @description Default: recognized from the content.
             *
             *     * `slack` - slack
             *     * `whatsapp` - whatsapp
             *     * `telegram` - telegram
             *     * `chatgpt` - chatgpt
             *     * `sharegpt` - sharegpt
             *     * `mem0` - mem0
             *     * `zep` - zep
             *     * `csv` - csv
             *     * `transcript` - transcript
             */
            format?: components["schemas"]["FormatEnum"];
            /** @description Name or id. Only facts need none. */
            agent?: string;
            /** @description The user of what has no other. */
            user_id?: string;
            /** @description The conversation of what has none. Default: the file's name. */
            thread_id?: string;
            /** @description Ids of users by names, or ids, of the file. Others are left out. */
            people?: {
                [key: string]: string;
            };
            /** @description Names, or ids, of the file that are the agent's. */
            agent_names?: string[];
            /** @description Zone of times without one, such as Europe/Berlin. */
            time_zone?: string;
            /**
             * @description Order of dates that can be read in two ways.
             *
             *     * `dmy` - dmy
             *     * `mdy` - mdy
             *     * `ymd` - ymd
             */
            date_order?: components["schemas"]["DateOrderEnum"];
            /** @description Names of columns of CSV, for text, author, role, user_id, time, thread, external_id. */
            columns?: {
                [key: string]: string;
            };
            /** @description Store nothing, as a preview. Default: false. */
            dry_run?: boolean;
        };
        /** @description The id of a sender in a channel. */
        NewIdentity: {
            /** @description slack … */
            channel: string;
            /** @description The workspace, if the channel has any. */
            workspace?: string;
            /** @description The sender's id in the channel. */
            native_id: string;
            /** @description The sender's display name in the channel. */
            name?: string;
        };
        /** @description An item, and its text for the transcript. */
        NewItem: {
            /** @description Any JSON object. It is returned unchanged. */
            item: {
                [key: string]: unknown;
            };
            /** @description The message of the item for the transcript. Without it, recall cannot find the item. A text that does not fit into the transcript, such as one that is too long, is not added. */
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
            /** @description The user who asks. null: a user without memories. */
            user_id?: string | null;
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
        /** @description A webhook with its secret. */
        NewWebhook: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uri
             * @description Address of the program. It gets a POST for each event.
             */
            url: string;
            /** @description Types of events that are sent. Empty: all. */
            types: components["schemas"]["EventTypeEnum"][];
            /**
             * Include content
             * @description Whether texts are sent too: of messages and facts to programs, and the user's last message to people. Otherwise only ids or a link are.
             */
            includes_content?: boolean;
            /**
             * Active
             * @description Whether events are sent.
             */
            is_active?: boolean;
            /** @description What the program does. */
            description?: string;
            /**
             * Format: date-time
             * @description Until then events are signed by the previous secret too.
             */
            readonly previous_until: string | null;
            /**
             * Format: date-time
             * @description Time of creation. Earlier events are not sent.
             */
            readonly created_at: string;
            /** @description Verifies the signatures. It is shown once. */
            secret: string;
        };
        /** @description An open escalation: a person answers in the conversation. */
        OpenEscalation: {
            /** Format: uuid */
            id: string;
            /** @description The reason. */
            reason: string;
            /**
             * Format: date-time
             * @description When it was opened.
             */
            opened_at: string;
            /**
             * Format: uri
             * @description The escalation, to be answered and resolved.
             */
            url: string;
        };
        /**
         * @description * `user` - the user asked for it
         *     * `rule` - a rule of the agent
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
         *     * `to_person` - a person was requested
         * @enum {string}
         */
        OutcomeEnum: "resolved" | "handed_on" | "handed_back" | "to_person";
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
            /**
             * @description The kind of problem: stable, for programs.
             *
             *     * `urn:konstruct:problem:address-too-long` - The request's address is too long. Send long values in the body.
             *     * `urn:konstruct:problem:already-decided` - The tool call does not wait for consent.
             *     * `urn:konstruct:problem:already-resolved` - The escalation is resolved already.
             *     * `urn:konstruct:problem:bad-request` - The request cannot be understood. Check its host, headers and body.
             *     * `urn:konstruct:problem:being-erased` - An erasure of the person is requested and not done, or was done since the request began.
             *     * `urn:konstruct:problem:body-too-large` - The request's body is too large.
             *     * `urn:konstruct:problem:changed-since` - It was changed since you read it. Read it again and decide anew.
             *     * `urn:konstruct:problem:conflict` - The request contradicts the current state.
             *     * `urn:konstruct:problem:contradictory-fields` - Each field is valid, but their combination is not.
             *     * `urn:konstruct:problem:duplicate-fact` - A fact cannot be changed into one that exists already.
             *     * `urn:konstruct:problem:extraction-failed` - A language model's answer has no list of facts, or there are no messages.
             *     * `urn:konstruct:problem:extraction-limit-reached` - The agent has used its tokens for facts of today (UTC).
             *     * `urn:konstruct:problem:forbidden` - You may not do this.
             *     * `urn:konstruct:problem:idempotency-key-in-use` - The first request with this key is still running.
             *     * `urn:konstruct:problem:idempotency-key-reused` - The key belongs to a message with other content.
             *     * `urn:konstruct:problem:import-refused` - A file of history, or an option of its import, cannot be used.
             *     * `urn:konstruct:problem:internal-error` - The server failed. Its log has the error under this request_id.
             *     * `urn:konstruct:problem:invalid-fields` - A field, header or parameter is invalid: `errors` names each.
             *     * `urn:konstruct:problem:limit-reached` - The tenant has the maximum number of such objects.
             *     * `urn:konstruct:problem:malformed-body` - The body is not readable JSON.
             *     * `urn:konstruct:problem:method-not-allowed` - This address does not know that method; see the Allow header.
             *     * `urn:konstruct:problem:missing-slash` - Addresses end with a slash.
             *     * `urn:konstruct:problem:model-failed` - The language model gave no usable answer.
             *     * `urn:konstruct:problem:name-taken` - Another agent of this tenant has the name.
             *     * `urn:konstruct:problem:not-acceptable` - The API speaks application/json only; send Accept: application/json.
             *     * `urn:konstruct:problem:not-found` - There is nothing at this address. In addresses, ids are UUIDs and not names. The API's description is at /api/docs/.
             *     * `urn:konstruct:problem:nothing-to-link` - The identity belongs to this user already, or is not linked.
             *     * `urn:konstruct:problem:outside-of-key` - The request is outside of the binding of its key.
             *     * `urn:konstruct:problem:own-proposal` - The author of a proposed fact cannot confirm it.
             *     * `urn:konstruct:problem:quota-exceeded` - A quota is used up that does not begin anew with the month.
             *     * `urn:konstruct:problem:reply-interrupted` - The reply was interrupted, and is generated again.
             *     * `urn:konstruct:problem:request-timeout` - The request's body did not arrive in time. Send it again.
             *     * `urn:konstruct:problem:slot-taken` - A single-valued slot has another active value.
             *     * `urn:konstruct:problem:thread-of-others` - A thread in a request for an erasure has messages or a session of another user.
             *     * `urn:konstruct:problem:too-many-questions` - The agent has the maximum number of saved questions.
             *     * `urn:konstruct:problem:too-many-requests` - Too many requests. Wait for as long as Retry-After says.
             *     * `urn:konstruct:problem:unauthenticated` - Send an API key: Authorization: Bearer ks_…
             *     * `urn:konstruct:problem:unavailable` - Something that the API needs is not running. Try again in a moment.
             *     * `urn:konstruct:problem:unknown-agent` - No active agent of this tenant has that name or id.
             *     * `urn:konstruct:problem:unknown-thread` - The user has sent no message in this thread, so that a person cannot answer there.
             *     * `urn:konstruct:problem:unprocessable` - The request was understood and cannot be done.
             *     * `urn:konstruct:problem:unreadable-session` - The messages of a thread cannot be read without its graph.
             *     * `urn:konstruct:problem:unsupported-media-type` - Send the body as Content-Type: application/json.
             *     * `urn:konstruct:problem:wrong-state` - The operation is not possible in the state of the row.
             */
            type: components["schemas"]["ProblemTypeEnum"];
            /** @description The HTTP status in words. */
            title: string;
            /** @description The HTTP status. */
            status: number;
            /** @description Explanation for people. */
            detail: string;
            /** @description The path of the request. */
            instance: string;
            /** @description Id of the request in the server's log. */
            request_id: string;
            errors?: components["schemas"]["FieldError"][];
        };
        /**
         * @description * `urn:konstruct:problem:address-too-long` - The request's address is too long. Send long values in the body.
         *     * `urn:konstruct:problem:already-decided` - The tool call does not wait for consent.
         *     * `urn:konstruct:problem:already-resolved` - The escalation is resolved already.
         *     * `urn:konstruct:problem:bad-request` - The request cannot be understood. Check its host, headers and body.
         *     * `urn:konstruct:problem:being-erased` - An erasure of the person is requested and not done, or was done since the request began.
         *     * `urn:konstruct:problem:body-too-large` - The request's body is too large.
         *     * `urn:konstruct:problem:changed-since` - It was changed since you read it. Read it again and decide anew.
         *     * `urn:konstruct:problem:conflict` - The request contradicts the current state.
         *     * `urn:konstruct:problem:contradictory-fields` - Each field is valid, but their combination is not.
         *     * `urn:konstruct:problem:duplicate-fact` - A fact cannot be changed into one that exists already.
         *     * `urn:konstruct:problem:extraction-failed` - A language model's answer has no list of facts, or there are no messages.
         *     * `urn:konstruct:problem:extraction-limit-reached` - The agent has used its tokens for facts of today (UTC).
         *     * `urn:konstruct:problem:forbidden` - You may not do this.
         *     * `urn:konstruct:problem:idempotency-key-in-use` - The first request with this key is still running.
         *     * `urn:konstruct:problem:idempotency-key-reused` - The key belongs to a message with other content.
         *     * `urn:konstruct:problem:import-refused` - A file of history, or an option of its import, cannot be used.
         *     * `urn:konstruct:problem:internal-error` - The server failed. Its log has the error under this request_id.
         *     * `urn:konstruct:problem:invalid-fields` - A field, header or parameter is invalid: `errors` names each.
         *     * `urn:konstruct:problem:limit-reached` - The tenant has the maximum number of such objects.
         *     * `urn:konstruct:problem:malformed-body` - The body is not readable JSON.
         *     * `urn:konstruct:problem:method-not-allowed` - This address does not know that method; see the Allow header.
         *     * `urn:konstruct:problem:missing-slash` - Addresses end with a slash.
         *     * `urn:konstruct:problem:model-failed` - The language model gave no usable answer.
         *     * `urn:konstruct:problem:name-taken` - Another agent of this tenant has the name.
         *     * `urn:konstruct:problem:not-acceptable` - The API speaks application/json only; send Accept: application/json.
         *     * `urn:konstruct:problem:not-found` - There is nothing at this address. In addresses, ids are UUIDs and not names. The API's description is at /api/docs/.
         *     * `urn:konstruct:problem:nothing-to-link` - The identity belongs to this user already, or is not linked.
         *     * `urn:konstruct:problem:outside-of-key` - The request is outside of the binding of its key.
         *     * `urn:konstruct:problem:own-proposal` - The author of a proposed fact cannot confirm it.
         *     * `urn:konstruct:problem:quota-exceeded` - A quota is used up that does not begin anew with the month.
         *     * `urn:konstruct:problem:reply-interrupted` - The reply was interrupted, and is generated again.
         *     * `urn:konstruct:problem:request-timeout` - The request's body did not arrive in time. Send it again.
         *     * `urn:konstruct:problem:slot-taken` - A single-valued slot has another active value.
         *     * `urn:konstruct:problem:thread-of-others` - A thread in a request for an erasure has messages or a session of another user.
         *     * `urn:konstruct:problem:too-many-questions` - The agent has the maximum number of saved questions.
         *     * `urn:konstruct:problem:too-many-requests` - Too many requests. Wait for as long as Retry-After says.
         *     * `urn:konstruct:problem:unauthenticated` - Send an API key: Authorization: Bearer ks_…
         *     * `urn:konstruct:problem:unavailable` - Something that the API needs is not running. Try again in a moment.
         *     * `urn:konstruct:problem:unknown-agent` - No active agent of this tenant has that name or id.
         *     * `urn:konstruct:problem:unknown-thread` - The user has sent no message in this thread, so that a person cannot answer there.
         *     * `urn:konstruct:problem:unprocessable` - The request was understood and cannot be done.
         *     * `urn:konstruct:problem:unreadable-session` - The messages of a thread cannot be read without its graph.
         *     * `urn:konstruct:problem:unsupported-media-type` - Send the body as Content-Type: application/json.
         *     * `urn:konstruct:problem:wrong-state` - The operation is not possible in the state of the row.
         * @enum {string}
         */
        ProblemTypeEnum: "urn:konstruct:problem:address-too-long" | "urn:konstruct:problem:already-decided" | "urn:konstruct:problem:already-resolved" | "urn:konstruct:problem:bad-request" | "urn:konstruct:problem:being-erased" | "urn:konstruct:problem:body-too-large" | "urn:konstruct:problem:changed-since" | "urn:konstruct:problem:conflict" | "urn:konstruct:problem:contradictory-fields" | "urn:konstruct:problem:duplicate-fact" | "urn:konstruct:problem:extraction-failed" | "urn:konstruct:problem:extraction-limit-reached" | "urn:konstruct:problem:forbidden" | "urn:konstruct:problem:idempotency-key-in-use" | "urn:konstruct:problem:idempotency-key-reused" | "urn:konstruct:problem:import-refused" | "urn:konstruct:problem:internal-error" | "urn:konstruct:problem:invalid-fields" | "urn:konstruct:problem:limit-reached" | "urn:konstruct:problem:malformed-body" | "urn:konstruct:problem:method-not-allowed" | "urn:konstruct:problem:missing-slash" | "urn:konstruct:problem:model-failed" | "urn:konstruct:problem:name-taken" | "urn:konstruct:problem:not-acceptable" | "urn:konstruct:problem:not-found" | "urn:konstruct:problem:nothing-to-link" | "urn:konstruct:problem:outside-of-key" | "urn:konstruct:problem:own-proposal" | "urn:konstruct:problem:quota-exceeded" | "urn:konstruct:problem:reply-interrupted" | "urn:konstruct:problem:request-timeout" | "urn:konstruct:problem:slot-taken" | "urn:konstruct:problem:thread-of-others" | "urn:konstruct:problem:too-many-questions" | "urn:konstruct:problem:too-many-requests" | "urn:konstruct:problem:unauthenticated" | "urn:konstruct:problem:unavailable" | "urn:konstruct:problem:unknown-agent" | "urn:konstruct:problem:unknown-thread" | "urn:konstruct:problem:unprocessable" | "urn:konstruct:problem:unreadable-session" | "urn:konstruct:problem:unsupported-media-type" | "urn:konstruct:problem:wrong-state";
        /** @description What is set of a user. */
        Profile: {
            /** @description Id of the user. */
            user_id: string;
            /** @description The user's name. */
            name: string;
            /** @description The time zone that was chosen for the user, such as Asia/Tokyo. */
            time_zone: string;
            /** @description The user's language, such as de or pt-BR, in which Latin words of messages and questions are searched, unless the agent has a language. */
            language: string;
            /** @description As it was sent, or empty. */
            metadata: {
                [key: string]: unknown;
            };
            /** @description The time zone that the channel reports, if none was chosen. */
            channel_time_zone: string;
        };
        /** @description The answer of a version of an agent to a saved question. */
        QuestionAnswer: {
            /** Format: uuid */
            readonly id: string;
            /** Format: uuid */
            question_id: string;
            /** @description Number of the agent's version. 0: before its first version. */
            version: number;
            /**
             * Person
             * @description The person who asks. Empty: none.
             */
            user_id?: string | null;
            /**
             * Answer
             * @description The answer; may be empty.
             */
            content?: string;
            /** @description The decision and its reason. */
            steps?: string[];
            /** @description Why there is no answer. */
            problem?: string;
            /** @description Recalled messages and facts in the prompt. */
            source_count?: number;
            /** @description The messages in the prompt: recalled ones and recent turns. */
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
        /** @description The state of an agent's saved questions. */
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
        /** @description A quota of this tenant, and its usage. */
        Quota: {
            quota: components["schemas"]["QuotaEnum"];
            /**
             * Format: double
             * @description null: not measured, or not yet.
             */
            used: number | null;
            /**
             * Format: double
             * @description Warns the team. null: never.
             */
            soft_limit: number | null;
            /**
             * Format: double
             * @description More is refused. null: none.
             */
            hard_limit: number | null;
            /**
             * Format: date-time
             * @description When the usage is reset. null: never, or each second.
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
            /** @description The reason, for the fact's events. */
            reason?: string;
        };
        /** @description A summary of the recall for one reply. */
        RecallEvent: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description The URL with all fields.
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
             * @description The reply with these memories.
             */
            reply_id: string | null;
            /** @description The query. */
            query: string;
            /** @description No memory was relevant enough. */
            abstained: boolean;
            embedding_model: string;
            /**
             * Format: double
             * @description Duration of the recall.
             */
            milliseconds: number;
            /**
             * Format: date-time
             * @description When it was recorded.
             */
            created_at: string;
            /** @description Number of memories found. */
            hit_count: number;
            /** @description Number of the best memories left out. */
            cut_count: number;
            /** @description Number of memories in the prompt. */
            injected_count: number;
        };
        /** @description The recall for one reply, with the reasons. */
        RecallEventInFull: {
            /** Format: uuid */
            id: string;
            /**
             * Format: uri
             * @description The URL with all fields.
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
             * @description The reply with these memories.
             */
            reply_id: string | null;
            /** @description The query. */
            query: string;
            /** @description No memory was relevant enough. */
            abstained: boolean;
            embedding_model: string;
            /**
             * Format: double
             * @description Duration of the recall.
             */
            milliseconds: number;
            /**
             * Format: date-time
             * @description When it was recorded.
             */
            created_at: string;
            /** @description The memories found, best first, with the score of every channel, and the calibrated `probability`. */
            hits: {
                [key: string]: unknown;
            }[];
            /** @description The best of the memories left out, with the reason; otherwise as in `hits`. */
            cut: {
                [key: string]: unknown;
            }[];
            /** @description The facts considered, each with its reason. */
            facts: {
                [key: string]: unknown;
            }[];
            /** @description The memories in the prompt, verbatim. */
            injected: string[];
            /** @description The order of the agent's reranker as `ranked`, with scores, or the `problem`; null: there is none. */
            reranker: {
                [key: string]: unknown;
            } | null;
            /** @description The prompt as it was sent, with the tokens of each section; null if not kept. */
            prompt: {
                [key: string]: unknown;
            } | null;
            /** @description The calls of language models for the reply, oldest first. */
            model_calls: components["schemas"]["ModelCall"][];
            /** @description Codes of languages of the query that the embedding model does not know: memories are found by their words. */
            unknown_languages: string[];
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
        /**
         * @description * `hybrid` - hybrid: meaning and words
         *     * `vector` - vector: cosine similarity alone
         * @enum {string}
         */
        RecallModeEnum: "hybrid" | "vector";
        /**
         * @description * `precise` - precise: fewer memories, fewer irrelevant ones
         *     * `balanced` - balanced
         *     * `thorough` - thorough: more memories, more irrelevant ones
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
        /** @description The reranker that has sorted the memories. */
        Reranker: {
            /** @description Its name. */
            model: string;
            /** @description Why it gave no scores, so that the order of recall stays; or empty. */
            problem: string;
        };
        /** @description How an escalation ends. */
        Resolution: {
            /** @description true: the agent answers the held messages. false: they are closed, because a person has handled them. */
            let_agent_answer: boolean;
            /** @description The result, for the record. */
            note?: string;
        };
        /** @description The note on a restored version. */
        Restoration: {
            /** @description The author's note on the change. */
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
        /** @description Options of the reply, by the names of OpenAI's API. They are sent to the language model. */
        Sampling: {
            /** Format: double */
            temperature?: number;
            /** Format: double */
            top_p?: number;
            /** Format: double */
            presence_penalty?: number;
            /** Format: double */
            frequency_penalty?: number;
            /** Format: int64 */
            seed?: number;
            /** @description Maximum number of tokens. A smaller limit of the agent replaces it. */
            max_completion_tokens?: number;
            /** @description Texts at which the reply ends. */
            stop?: string[];
            /** @description The format of the reply. JSON needs a language model. */
            response_format?: {
                /** @enum {string} */
                type: "text" | "json_object" | "json_schema";
                json_schema?: {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            };
        };
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
             * @description The person who asks. Empty: none.
             */
            user_id?: string | null;
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
        /**
         * @description * `read` - read: look, and search
         *     * `write` - write: send, make and edit
         *     * `erase` - erase: delete facts, clear windows and sessions, request erasures
         *     * `keys` - keys: make and revoke API keys that allow no more
         * @enum {string}
         */
        ScopesEnum: "read" | "write" | "erase" | "keys";
        /** @description A question to the memory of one user. */
        Search: {
            /** @description Name or id of an agent of this tenant. Default: that of your key, or the agents that know the user, at most 20. */
            agent?: string;
            /** @description The user. Memories of others are never searched. */
            user_id: string;
            /** @description A question, in any words. */
            query: string;
            /** @description At most this many results. Default: the agent's policy. */
            top_k?: number;
            /** @description Leave out memories that are probably irrelevant, all of them if necessary. Default: true. */
            gate?: boolean;
            /**
             * @description hybrid uses meaning and words, vector the cosine alone. Default: the agent's policy.
             *
             *     * `hybrid` - hybrid
             *     * `vector` - vector
             */
            mode?: components["schemas"]["ModeEnum"];
            /**
             * @description With the gate: how strict recall is. Default: the agent's thresholds.
             *
             *     * `precise` - precise
             *     * `balanced` - balanced
             *     * `thorough` - thorough
             */
            preset?: components["schemas"]["PresetEnum"];
            /** @description Add the scores of the channels. Default: false. */
            explain?: boolean;
            /** @description Kinds to search: messages, facts, or both. Default: ["messages"]. */
            include?: components["schemas"]["IncludeEnum"][];
            /** @description false: without facts of no user. Default: true. */
            shared?: boolean;
            /** @description Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. Operators: eq, ne, in, exists, gt, gte, lt, lte, contains, icontains. All must match. Other messages are ignored, as if they did not exist. */
            filters?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Only messages up to this time (ISO 8601 with a time zone).
             */
            at?: string;
        };
        /** @description The results of a search, best first in each kind. */
        SearchAnswer: {
            messages: components["schemas"]["SearchedMessage"][];
            facts: components["schemas"]["FoundFact"][];
            people: components["schemas"]["SearchedPerson"][];
            /** @description A part of the search took longer than 2 s, and was left out. */
            is_partial: boolean;
        };
        /** @description The results, best first, one per message; and facts, with separate scores. */
        SearchResult: {
            results: components["schemas"]["Memory"][];
            /** @description No message was relevant enough. */
            abstained: boolean;
            /** @description The facts found, if `include` names facts. */
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
            /** @description Display name, or empty. */
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
             * @description Share of the query's words in the message, weighted by rarity: 0 to 1.
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
            /** @description Your id of the user. Each has separate memories. */
            user_id: string;
            /** @description Your id of the conversation. Memory spans all threads of a user. Default: one thread per user, named as the user. */
            thread_id?: string;
            /** @description Display name of the speaker, as in OpenAI's API. */
            name?: string;
            /** @description The user's text, verbatim. */
            content: string;
            /** @description A JSON object that lists and searches can filter by, with the rules of facts' metadata; at most 8,192 bytes. */
            metadata?: {
                [key: string]: unknown;
            };
            /** @description Instructions of your program for this reply, after the agent's own. The agent must accept them, and the key must not be bound. */
            instructions?: string;
            /** @description Sampling parameters and format of the reply. */
            options?: components["schemas"]["Sampling"];
            /** @description Tools of your program, which the language model may call. Then the message has the status `with_program` until you send the results. */
            tools?: ({
                /** @enum {string} */
                type: "function";
                function: {
                    name: string;
                    description?: string;
                    parameters?: {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            })[];
            /** @description Until the first results: `none`, `auto` (the default), `required`, or an object that names a tool. */
            tool_choice?: ("none" | "auto" | "required") | ({
                type: string;
            } & {
                [key: string]: unknown;
            });
            /** @description Whether an answer may have several calls. Default: the model's. */
            parallel_tool_calls?: boolean;
        };
        /** @description A thread with a history. */
        Session: {
            thread_id: string;
            /**
             * Format: uri
             * @description The URL of its messages.
             */
            url: string;
            /**
             * Format: date-time
             * @description When its newest state was saved.
             */
            updated_at: string;
            /** @description Number of saved states. */
            checkpoints: number;
        };
        /** @description One message of a graph's state. */
        SessionMessage: {
            /** @description user, assistant, system or tool. */
            role: string;
            /** @description Its text; empty for images and tool calls. */
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
             * @description The URL of its messages.
             */
            url: string;
            /**
             * Format: date-time
             * @description When its newest state was saved.
             */
            updated_at: string;
            /** @description Number of saved states. */
            checkpoints: number;
            messages: components["schemas"]["SessionMessage"][];
        };
        /** @description The fields of a fact with its slot. */
        SlottedFactFields: {
            /** @description The fact, in words: “Maria is allergic to walnuts.” */
            content: string;
            /** @description A JSON object that searches can filter by. It is merged into the metadata of a stored fact by RFC 7396 (JSON Merge Patch): objects at each depth, null removes a name, other values replace. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Start of its validity. Default: now.
             */
            valid_from?: string;
            /**
             * Format: date-time
             * @description End of its validity; null: still valid.
             */
            valid_to?: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at?: string | null;
            /** @description The attribute of the subject that the fact states, such as `home_city`. Default: none. */
            slot?: string;
            /** @description The person or thing with that attribute, such as Maria. */
            subject?: string;
            /** @description The value of the slot, such as Oslo. */
            value?: string;
            /** @description Whether other values of the slot stay valid. Default: false, this value supersedes the current one of the same agent, user and subject. */
            is_multi_valued?: boolean;
        };
        /** @description The source of an item of the context. */
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
             * @description The fact; its id never changes.
             */
            memory_id: string;
            /**
             * Format: uri
             * @description The fact's address.
             */
            url: string;
            /** @description The agent that can use it; null: all. */
            agent: string | null;
            /**
             * Format: uuid
             * @description The agent that knows the fact. Empty: all agents.
             */
            agent_id: string | null;
            /** @description The user that the fact is about. Empty: no user. */
            user_id: string | null;
            /** @description The id that the program chose which stored it. Empty: the text identifies it. */
            external_id: string | null;
            /** @description The fact, in words. */
            content: string;
            metadata: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description When it was first stored.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was changed last.
             */
            updated_at: string;
            /**
             * Format: date-time
             * @description Start of validity.
             */
            valid_from: string;
            /**
             * Format: date-time
             * @description End of validity. Empty: still valid.
             */
            valid_to: string | null;
            /**
             * Format: date-time
             * @description Searches do not find it from this time on.
             */
            expires_at: string | null;
            /**
             * Format: uuid
             * @description The version's id; for the current version the fact's id.
             */
            version_id: string;
            /**
             * Format: uuid
             * @description The version that this one replaced.
             */
            supersedes: string | null;
            /** @description The name of the person or thing that the fact is about. */
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
            /** @description Name of the person who stated it. */
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
            /** @description Why a person must review it, such as conflict or health. */
            review_reason: string;
            /**
             * Format: uuid
             * @description The extraction run that proposed it.
             */
            run_id: string | null;
            /** @description False: a fact with the same external id, or else the same text, existed. The other fields of the request were applied to it. */
            created: boolean;
            /** @description Facts with nearly the same meaning. They are reported, never merged. */
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
            /** @description Such as the role of a message, or `resolved`. */
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
            /** @description Its text, up to 300 characters. */
            text: string;
            /** @description Name of the author, or empty. */
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
             * @description State of the call.
             *
             *     * `waiting` - waits for consent
             *     * `with_program` - waits for the program that has the tool
             *     * `approved` - approved, not yet executed
             *     * `denied` - denied
             *     * `expired` - no answer in time
             *     * `done` - done
             *     * `failed` - failed
             */
            state: components["schemas"]["ToolCallStateEnum"];
            /** @description The agent's name. */
            agent: string;
            /**
             * Agent
             * Format: uuid
             * @description The agent that this memory belongs to.
             */
            agent_id: string;
            /**
             * User
             * @description The user's id in the channel, such as a Slack user id.
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
             * @description The agent that requested the call, if the thread was handed to another agent. The call is executed for that agent.
             */
            asked_by_id?: string | null;
            /**
             * Text before
             * @description The agent's text before the call; with the first call of an answer.
             */
            content?: string;
            /**
             * Tool
             * @description The tool.
             */
            name: string;
            /** @description The arguments of the call. */
            arguments: unknown;
            /** @description The question to the user. */
            question?: string;
            /**
             * Format: date-time
             * @description When it was requested.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description Deadline for the consent or the program's result.
             */
            expires_at: string;
            /**
             * Format: date-time
             * @description When it was decided.
             */
            decided_at?: string | null;
            /** @description The author and the channel of the decision. */
            decided_by?: string;
            /**
             * Format: date-time
             * @description When it was done, or failed.
             */
            done_at?: string | null;
            /** @description The result that the language model received. */
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
         *     * `with_program` - waits for the program that has the tool
         *     * `approved` - approved, not yet executed
         *     * `denied` - denied
         *     * `expired` - no answer in time
         *     * `done` - done
         *     * `failed` - failed
         * @enum {string}
         */
        ToolCallStateEnum: "waiting" | "with_program" | "approved" | "denied" | "expired" | "done" | "failed";
        /** @description The result of a call of your program's tool. */
        ToolResult: {
            /**
             * Format: uuid
             * @description Id of the call.
             */
            tool_call_id: string;
            /** @description The result. Long ones are cut in the prompt. */
            content: string;
        };
        /** @description The results of all calls for which a message waits. */
        ToolResults: {
            results: components["schemas"]["ToolResult"][];
        };
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
             * @description Role of the speaker.
             *
             *     * `user` - User
             *     * `assistant` - Assistant
             */
            role: components["schemas"]["RoleEnum"];
            /** @description The speaker's display name. */
            name?: string;
            /** @description The text, verbatim. */
            content: string;
            /** @description The source: rest, slack, import, handover … */
            channel: string;
            /**
             * Thread
             * @description The conversation's id in the channel. Memory spans all conversations.
             */
            thread_id: string;
            /**
             * Format: date-time
             * @description Time of the message; for imported turns, the original time.
             */
            created_at: string;
            /** @description Whether recall can find it. */
            indexed: boolean;
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
            /** @description Of these, those that are retried. */
            failed_embeddings: number;
            /** @description Messages not yet answered. */
            pending_replies: number;
            /** @description Messages whose reply has failed. */
            failed_replies: number;
            /** @description Not for bound keys. */
            quotas?: components["schemas"]["Quota"][];
            /** @description The counts above 100,000, if there are any: they are estimates, or for a bound key the least that there are. */
            not_exact?: string[];
        };
        /** @description The activity of some days. */
        UsageByDay: {
            /** @description Oldest first. */
            days: components["schemas"]["UsageOfDay"][];
            /** @description false: days are still being counted. */
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
            /** @description Replies with memories and no facts. */
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
             * @description Cost of calls of language models, by the prices at that time.
             */
            cost: string;
        };
        /** @description An end user. */
        User: {
            /** @description The user's id. */
            user_id: string;
            /** @description The name that a program set, or that of their newest message with one; or empty. */
            name: string;
            /** @description Names in their messages, newest first, at most 20. */
            names: string[];
            /** @description Turns of their conversations with all agents. */
            messages: number;
            /** @description Valid facts about them. */
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
        /** @description Changes of a user. Metadata is merged by RFC 7396 (JSON Merge Patch). */
        UserChanges: {
            /** @description The user's name. */
            name?: string;
            /** @description A name such as Asia/Tokyo, for times in prompts. Empty: that of the user's channel, or else the agent's, or else UTC. */
            time_zone?: string;
            /** @description The user's language by BCP 47, such as de or pt-BR, in which Latin words of messages and questions are searched, unless the agent has a language. Default: none. */
            language?: string;
            /** @description A JSON object of at most 8,192 bytes. */
            metadata?: {
                [key: string]: unknown;
            };
        };
        /** @description What programs set of a user. */
        UserFields: {
            /** @description The user's name. */
            name?: string;
            /** @description A name such as Asia/Tokyo, for times in prompts. Empty: that of the user's channel, or else the agent's, or else UTC. */
            time_zone?: string;
            /** @description The user's language by BCP 47, such as de or pt-BR, in which Latin words of messages and questions are searched, unless the agent has a language. Default: none. */
            language?: string;
            /** @description A JSON object of at most 8,192 bytes. */
            metadata?: {
                [key: string]: unknown;
            };
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
        /** @description A tool call that the user has to decide on, or whose result a program has to send. */
        WaitingCall: {
            /** Format: uuid */
            id: string;
            /** @description The tool. */
            name: string;
            /** @description The arguments of the call: an object, or the text that the model gave instead. */
            arguments: unknown;
            /** @description The agent's text before it, with the first call. */
            content: string;
            /** @description The question to the user; empty for a program. */
            question: string;
            /**
             * Format: date-time
             * @description Deadline; after it the call is not executed.
             */
            expires_at: string;
            /**
             * Format: uri
             * @description The call.
             */
            url: string;
            /**
             * Format: uri
             * @description Where to send the user's answer: POST `{"approve": true}` or false. Null: your program sends the result to `results_url`.
             */
            decision_url: string | null;
        };
        /** @description The condition that a held message waits for. */
        WaitsFor: {
            /**
             * @description user: the user must decide on each of `tool_calls`. person: a member of the tenant must answer or resolve `escalation`. program: the program that sent the message must send the results of `tool_calls`.
             *
             *     * `user` - user
             *     * `person` - person
             *     * `program` - program
             */
            who: components["schemas"]["WhoEnum"];
            /** @description The same as a sentence, with the next step. */
            detail: string;
            tool_calls: components["schemas"]["WaitingCall"][];
            /**
             * Format: uri
             * @description Where a program sends the results of `tool_calls`, or null.
             */
            results_url: string | null;
            escalation: components["schemas"]["OpenEscalation"] | null;
        };
        /** @description An address of a program that gets events. */
        Webhook: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uri
             * @description Address of the program. It gets a POST for each event.
             */
            url: string;
            /** @description Types of events that are sent. Empty: all. */
            types: components["schemas"]["EventTypeEnum"][];
            /**
             * Include content
             * @description Whether texts are sent too: of messages and facts to programs, and the user's last message to people. Otherwise only ids or a link are.
             */
            includes_content?: boolean;
            /**
             * Active
             * @description Whether events are sent.
             */
            is_active?: boolean;
            /** @description What the program does. */
            description?: string;
            /**
             * Format: date-time
             * @description Until then events are signed by the previous secret too.
             */
            readonly previous_until: string | null;
            /**
             * Format: date-time
             * @description Time of creation. Earlier events are not sent.
             */
            readonly created_at: string;
        };
        /** @description Changes of a webhook. */
        WebhookChanges: {
            /** @description Its address. */
            url?: string;
            /** @description Types of events that are sent. Empty: all. */
            types?: components["schemas"]["EventTypeEnum"][];
            /** @description Whether texts of messages and facts are sent too. */
            includes_content?: boolean;
            /** @description What the program does. */
            description?: string;
            /** @description Whether events are sent. */
            is_active?: boolean;
        };
        /** @description An event that is, or was, sent to a webhook. */
        WebhookDelivery: {
            /** Format: uuid */
            readonly id: string;
            /**
             * Format: uuid
             * @description The webhook.
             */
            readonly webhook_id: string;
            /**
             * Format: uuid
             * @description The event.
             */
            readonly event_id: string;
            /** @description The type of the event. */
            type: string;
            /** @description waiting, delivered or failed. */
            readonly state: string;
            /** @description HTTP status of the last response. */
            status?: number | null;
            /** @description Attempts so far, of a waiting one. */
            readonly attempts: number | null;
            /**
             * Format: date-time
             * @description When it is sent next.
             */
            readonly next_attempt_at: string | null;
            /** @description Why the last attempt failed. */
            readonly error: string | null;
            /**
             * Format: date-time
             * @description When it was enqueued.
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When it was sent and accepted.
             */
            delivered_at?: string | null;
        };
        /** @description A page of a list. */
        WebhookDeliveryPage: {
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
            results: components["schemas"]["WebhookDelivery"][];
        };
        /** @description The fields of a webhook. */
        WebhookFields: {
            /** @description Address, which begins with https://. */
            url: string;
            /** @description Types of events that are sent. Empty: all. */
            types?: components["schemas"]["EventTypeEnum"][];
            /** @description Whether texts of messages and facts are sent too. */
            includes_content?: boolean;
            /** @description What the program does. */
            description?: string;
        };
        /** @description A page of a list. */
        WebhookPage: {
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
            results: components["schemas"]["Webhook"][];
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
             * @description Null: not in the transcript.
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
        /** @description Send an API key: Authorization: Bearer ks_… */
        Unauthenticated: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description Requires a Bearer key. */
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
        /** @description A quota that is never reset is used up: see `quota`, `limit` and `used`. A key that is bound sees `message_for_people` alone. */
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
        /** @description There is nothing at this address. In addresses, ids are UUIDs and not names. The API's description is at /api/docs/. */
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
                 *       "detail": "There is nothing at this address. In addresses, ids are UUIDs and not names. The API's description is at /api/docs/.",
                 *       "instance": "/api/v1/messages/",
                 *       "request_id": "2f9f4b0e-6a43-4c63-9d4c-5a4f3b8a1c55"
                 *     }
                 */
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description This address does not know that method; see the Allow header. */
        MethodNotAllowed: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description The supported methods. */
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
        /** @description The API speaks application/json only; send Accept: application/json. */
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
        /** @description The request conflicts with the current state, such as a fact with the same text. */
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
        /** @description It was changed since you read it. Read it again and decide anew. */
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
        /** @description The request's body is too large. */
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
        /** @description The request's address is too long. Send long values in the body. */
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
        /** @description Send the body as Content-Type: application/json. */
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
        /** @description The request is valid but cannot be processed: the agent is unknown, or the Idempotency-Key belongs to another request. */
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
        /** @description Too many requests of this key or tenant, or a monthly quota is used up: see `type` and `Retry-After`. */
        TooManyRequests: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description Seconds to wait before retrying. */
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
        /** @description The server failed. Its log has the error under this request_id. */
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
        /** @description Something that the API needs is not running. Try again in a moment. */
        Unavailable: {
            headers: {
                "X-Request-ID": components["headers"]["X-Request-ID"];
                "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                /** @description Seconds to wait before retrying. */
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
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description Id of the request in the server's log; yours if you sent one. */
        "X-Request-ID": string;
        /** @description Requests that are possible at once. */
        "RateLimit-Limit": string;
        /** @description Requests left. */
        "RateLimit-Remaining": string;
        /** @description Seconds until all requests are available again. */
        "RateLimit-Reset": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    list_agents: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /**
                 * @description Only active, or only inactive ones.
                 *
                 *     * `true` - true
                 *     * `false` - false
                 */
                is_active?: "true" | "false";
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `name`. */
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
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
                    ETag?: string;
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
                "If-Match"?: string;
            };
            path: {
                agent_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["AgentChanges"];
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SavedQuestion"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
    list_question_answers: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Only answers to this question. */
                question_id?: string;
                /** @description Only from this moment on. */
                since?: string;
                /** @description Only before this moment. */
                until?: string;
                /** @description Only answers of the version with this number. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Agent"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
    list_api_keys: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                    "application/json": components["schemas"]["ApiKeyPage"];
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
    create_api_key: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApiKeyFields"];
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewApiKey"];
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
    get_api_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
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
                    "application/json": components["schemas"]["ApiKey"];
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
    revoke_api_key: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                key_id: string;
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
    receive_hook: {
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
        requestBody: {
            content: {
                "application/json": components["schemas"]["Hook"];
            };
        };
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Only conversations whose metadata has these values, such as `{"ticket": 7}`, as JSON text. */
                metadata?: string;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on. */
                since?: string;
                /** @description Only of this conversation. */
                thread_id?: string;
                /** @description Only conversations with this text in their title, regardless of case. */
                title?: string;
                /** @description Only before this moment. */
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
                /** @description Agent (name or id). */
                agent: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
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
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
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
    remove_conversation_item: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
                "Idempotency-Key"?: string;
            };
            path: {
                item_id: string;
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
                /** @description Agent (name or id). */
                agent: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. Operators: eq, ne, in, exists, gt, gte, lt, lte, contains, icontains. All must match. As JSON text. */
                filters?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `created_at`. */
                ordering?: "created_at" | "-created_at";
                /** @description Only from this moment on. */
                since?: string;
                /** @description The conversation. Default: all conversations of the agent and the user. */
                thread_id?: string;
                /** @description Only before this moment. */
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
                /** @description The reason. It is stored on the receipt, so it must not contain an id or a name of the person. */
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
                    /** @description The URL of the row. */
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
    update_conversation: {
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
        requestBody: {
            content: {
                "application/json": components["schemas"]["ConversationChanges"];
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
                    "application/json": components["schemas"]["ConversationRow"];
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
    list_erasures: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /**
                 * @description Only requests that are open or done.
                 *
                 *     * `open` - open
                 *     * `done` - done
                 */
                state?: "open" | "done";
                /** @description Only of this user, also after the erasure. */
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
                    "application/json": components["schemas"]["ErasurePage"];
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
    request_erasure: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
                "Idempotency-Key"?: string;
            };
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
                    /** @description The URL of the row. */
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
    list_affected_replies: {
        parameters: {
            query: {
                /** @description Name or id of the one agent. */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description The user to erase. */
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
                    "application/json": components["schemas"]["AffectedReplyPage"];
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
    list_escalations: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `-opened_at`. */
                ordering?: "-opened_at" | "opened_at";
                /**
                 * @description Only escalations in this state.
                 *
                 *     * `open` - open
                 *     * `resolved` - resolved
                 */
                state?: "open" | "resolved";
                /** @description Only of this conversation. */
                thread_id?: string;
                /**
                 * @description Only escalations to a person, or only those to another agent.
                 *
                 *     * `person` - person
                 *     * `agent` - agent
                 */
                to?: "person" | "agent";
                /** @description Only escalations to this agent (name or id). */
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
                    /** @description The URL of the row. */
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
                    /** @description The URL of the row. */
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
    answer_escalation: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
                "Idempotency-Key"?: string;
            };
            path: {
                escalation_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Answer"];
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
                    "application/json": components["schemas"]["AnswerMessage"];
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
                    "application/json": components["schemas"]["AnswerMessage"];
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
    list_events: {
        parameters: {
            query?: {
                /** @description Only events after this place. Default: the oldest ones. */
                after?: number;
                /** @description Number of events. Default: 100. */
                limit?: number;
            };
            header?: {
                /** @description The id of the last event that a stream has delivered, instead of `after`. */
                "Last-Event-ID"?: string;
            };
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
                    "application/json": components["schemas"]["Events"];
                    "text/event-stream": string;
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
    list_extraction_runs: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on. */
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
                /** @description Only before this moment. */
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
                    /** @description The URL of the row. */
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
                    /** @description The URL of the row. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /**
                 * @description Only conversations in this state.
                 *
                 *     * `queued` - queued
                 *     * `failed` - failed
                 *     * `processed` - processed
                 */
                state?: "queued" | "failed" | "processed";
                /** @description Only of this conversation. */
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
                /** @description Only facts that this agent can use: its own, and those of all agents. */
                agent?: string;
                /** @description The state at that time (ISO 8601 with a time zone). */
                at?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. Operators: eq, ne, in, exists, gt, gte, lt, lte, contains, icontains. All must match. As JSON text. */
                filters?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /** @description false: without facts of no user. Default: true. */
                shared?: boolean;
                /** @description Only of this slot, such as `home_city`. */
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
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
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
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["StoredFact"];
                };
            };
            /** @description Created */
            201: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The URL of the row. */
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
                /** @description The state at that time (ISO 8601 with a time zone). */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
                "If-Match"?: string;
            };
            path: {
                memory_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactChange"];
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
                    ETag?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FactInFull"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
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
                /** @description The ETag that you received. The change is refused if the resource has changed since then. */
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
                    /** @description The ETag of the row, for If-Match and If-None-Match. */
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
    change_facts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactChanges"];
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
                    "application/json": components["schemas"]["ChangedFacts"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
    delete_facts: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["FactIds"];
            };
        };
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
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    put_fact: {
        parameters: {
            query?: {
                /** @description Name or id of the agent that can use it. Default: all agents; for a key that is bound to an agent, that agent. */
                agent?: string;
                /** @description The user that the fact is about. Default: no user; for a key that is bound to a user, that user. */
                user_id?: string;
            };
            header?: never;
            path: {
                /** @description Your id of the fact, percent-encoded; slashes need no encoding. */
                external_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["SlottedFactFields"];
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
                    "application/json": components["schemas"]["StoredFact"];
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
                    "application/json": components["schemas"]["StoredFact"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
    delete_fact_by_external_id: {
        parameters: {
            query?: {
                /** @description Name or id of the agent that can use it. Default: all agents; for a key that is bound to an agent, that agent. */
                agent?: string;
                /** @description The user that the fact is about. Default: no user; for a key that is bound to a user, that user. */
                user_id?: string;
            };
            header?: never;
            path: {
                /** @description Your id of the fact, percent-encoded; slashes need no encoding. */
                external_id: string;
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Only this id of a channel. */
                native_id?: string;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Identity"];
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
    create_history_import: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewHistoryImport"];
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HistoryImport"];
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
    get_history_import: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                history_import_id: string;
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
                    "application/json": components["schemas"]["HistoryImport"];
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
    list_language_models: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                    "application/json": components["schemas"]["LanguageModelPage"];
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
    create_language_model: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LanguageModelFields"];
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LanguageModel"];
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
    get_language_model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                language_model_id: string;
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
                    "application/json": components["schemas"]["LanguageModel"];
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
    delete_language_model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                language_model_id: string;
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
            409: components["responses"]["Conflict"];
            414: components["responses"]["AddressTooLong"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    update_language_model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                language_model_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["LanguageModelChanges"];
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
                    "application/json": components["schemas"]["LanguageModel"];
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
    test_language_model: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                language_model_id: string;
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
                    "application/json": components["schemas"]["LanguageModelTest"];
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
    run_memory_tool: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["MemoryTool"];
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
                    "application/json": components["schemas"]["MemoryToolResult"];
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
    list_messages: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Conditions on the metadata: {"topic": "food"} equal, {"topic": {"in": ["food", "drink"]}}, {"source.url": {"exists": true}}, {"priority": {"gte": 2, "lt": 5}}. Operators: eq, ne, in, exists, gt, gte, lt, lte, contains, icontains. All must match. As JSON text. */
                filters?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on. */
                since?: string;
                /**
                 * @description Only messages with this status.
                 *
                 *     * `queued` - queued
                 *     * `answered` - answered
                 *     * `failed` - failed
                 *     * `closed` - closed
                 *     * `with_person` - with_person
                 *     * `awaiting_consent` - awaiting_consent
                 *     * `with_program` - with_program
                 */
                status?: "queued" | "answered" | "failed" | "closed" | "with_person" | "awaiting_consent" | "with_program";
                /** @description Only of this conversation. */
                thread_id?: string;
                /** @description Only before this moment. */
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
                /** @description Seconds to wait for the reply, or until imported messages are indexed, 0 to 60. */
                wait?: number;
                /**
                 * @description What `wait` waits for: the reply, or that recall and search can find the message. Default: reply.
                 *
                 *     * `reply` - reply
                 *     * `indexed` - indexed
                 */
                wait_for?: "reply" | "indexed";
            };
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
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
            /** @description OK */
            200: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                    "text/event-stream": string;
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The URL of the row. */
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
    get_message: {
        parameters: {
            query?: {
                /** @description Seconds to wait for the reply, or until imported messages are indexed, 0 to 60. */
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
                /** @description Erase the replies that quote the message too: those that were written with it, and have at least half of its words. Default: they are kept, and `quoted_in` of the receipt has their ids. */
                quotes?: boolean;
                /** @description The reason. It is stored on the receipt, so it must not contain an id or a name of the person. */
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
                    /** @description The URL of the row. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
    send_tool_results: {
        parameters: {
            query?: {
                /** @description Seconds to wait for the reply, or until imported messages are indexed, 0 to 60. */
                wait?: number;
            };
            header?: never;
            path: {
                message_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ToolResults"];
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Message"];
                    "text/event-stream": string;
                };
            };
            /** @description Accepted */
            202: {
                headers: {
                    "X-Request-ID": components["headers"]["X-Request-ID"];
                    "RateLimit-Limit": components["headers"]["RateLimit-Limit"];
                    "RateLimit-Remaining": components["headers"]["RateLimit-Remaining"];
                    "RateLimit-Reset": components["headers"]["RateLimit-Reset"];
                    /** @description The URL of the row. */
                    Location?: string;
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
            409: components["responses"]["Conflict"];
            413: components["responses"]["BodyTooLarge"];
            414: components["responses"]["AddressTooLong"];
            415: components["responses"]["UnsupportedMediaType"];
            429: components["responses"]["TooManyRequests"];
            500: components["responses"]["InternalError"];
            503: components["responses"]["Unavailable"];
        };
    };
    import_messages: {
        parameters: {
            query?: {
                /** @description Seconds to wait for the reply, or until imported messages are indexed, 0 to 60. */
                wait?: number;
            };
            header?: {
                /** @description A text that you choose, such as a UUID. The same request with the same key creates nothing again and returns the first result. Keys are separate for each caller: another API key, or the same key bound to another user, may use the same text. */
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
                 * @description Only recalls without results, or only those with results.
                 *
                 *     * `true` - true
                 *     * `false` - false
                 */
                abstained?: "true" | "false";
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Only the recall for this message, or for this reply. */
                message_id?: string;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on. */
                since?: string;
                /** @description Only before this moment. */
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
    search_everything: {
        parameters: {
            query: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Only messages of this channel. */
                channel?: string;
                /** @description At most so many messages. Default: 25. */
                limit?: number;
                /** @description Words, a description, a name. */
                q: string;
                /** @description Only from this moment on. */
                since?: string;
                /** @description Only before this moment. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                /** @description Maximum number of messages; the newest are returned. Default: 50. */
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
    list_tool_calls: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Only tool calls of this message. */
                message_id?: string;
                /** @description Sort order; a minus means descending. Default: `-created_at`. */
                ordering?: "-created_at" | "created_at";
                /** @description Only from this moment on. */
                since?: string;
                /**
                 * @description Only calls in this state.
                 *
                 *     * `waiting` - waits for consent
                 *     * `with_program` - waits for the program that has the tool
                 *     * `approved` - approved, not yet executed
                 *     * `denied` - denied
                 *     * `expired` - no answer in time
                 *     * `done` - done
                 *     * `failed` - failed
                 */
                state?: "waiting" | "with_program" | "approved" | "denied" | "expired" | "done" | "failed";
                /** @description Only before this moment. */
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
                /** @description Last day, up to 365 days after the first. */
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
                /** @description Only calls before this moment. */
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
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Sort order; a minus means descending. Default: `user_id`. */
                ordering?: "user_id" | "-user_id";
                /** @description Only users with all these words in a name, regardless of case and accents, or with the whole text in their id or in the id or the name of a linked account. */
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
    get_user: {
        parameters: {
            query?: never;
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
                    "application/json": components["schemas"]["Profile"];
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
    put_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user, percent-encoded; slashes need no encoding. */
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserFields"];
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
                    "application/json": components["schemas"]["Profile"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
    update_user: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user, percent-encoded; slashes need no encoding. */
                user_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["UserChanges"];
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
                    "application/json": components["schemas"]["Profile"];
                };
            };
            400: components["responses"]["Invalid"];
            401: components["responses"]["Unauthenticated"];
            402: components["responses"]["QuotaExceeded"];
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
    export_user: {
        parameters: {
            query?: never;
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
                    "application/json": components["schemas"]["Export"];
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
    list_timeline: {
        parameters: {
            query?: {
                /** @description Only of this agent (name or id). */
                agent?: string;
                /** @description Pagination cursor: follow `next` and `previous`. */
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
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /** @description Only events before this moment. */
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
    list_webhook_deliveries: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Only this event. */
                event_id?: string;
                /** @description Rows per page. Default: 50. */
                limit?: number;
                /**
                 * @description Only deliveries in this state.
                 *
                 *     * `waiting` - waiting
                 *     * `delivered` - delivered
                 *     * `failed` - failed
                 */
                state?: "waiting" | "delivered" | "failed";
                /** @description Only of this webhook. */
                webhook_id?: string;
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
                    "application/json": components["schemas"]["WebhookDeliveryPage"];
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
    get_webhook_delivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_delivery_id: string;
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
                    "application/json": components["schemas"]["WebhookDelivery"];
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
    retry_webhook_delivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_delivery_id: string;
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
                    "application/json": components["schemas"]["WebhookDelivery"];
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
    list_webhooks: {
        parameters: {
            query?: {
                /** @description Pagination cursor: follow `next` and `previous`. */
                cursor?: string;
                /** @description Rows per page. Default: 50. */
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
                    "application/json": components["schemas"]["WebhookPage"];
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
    create_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookFields"];
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
                    /** @description The URL of the row. */
                    Location?: string;
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewWebhook"];
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
    get_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
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
                    "application/json": components["schemas"]["Webhook"];
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
    delete_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
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
    update_webhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChanges"];
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
                    "application/json": components["schemas"]["Webhook"];
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
    rotate_webhook_secret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                webhook_id: string;
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
                    "application/json": components["schemas"]["NewWebhook"];
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
    get_window: {
        parameters: {
            query: {
                /** @description Name or id of the agent. */
                agent: string;
                /** @description Number of newest turns. Default: 20. */
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
