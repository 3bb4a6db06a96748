/** Messages, replies, conversations and memories. */

import { type Call, nothing, once, pathOf, type Request } from "../calls.js";
import { Stream } from "../streams.js";
import type { CallOptions, OnceOptions, Params } from "../types.js";
import { Resource } from "./resource.js";

// Maximum duration of a stream, unless the caller sets one.
const STREAM_SECONDS = 180;

/** Messages to agents, and their replies. */
export class Messages extends Resource {
  /** Send a message of a user to an agent. With `wait`, look at the answer's `status`. */
  send(params: Params<"send_message">, options: OnceOptions = {}) {
    return this.call<"send_message">("POST", "messages/", sending(params, options), options);
  }

  /**
   * Send a message, and stream its reply: `for await` over the result. After
   * the last piece, `message` has the result of `send`. The reply is stored even if you stop reading.
   */
  stream(params: Params<"send_message">, options: OnceOptions = {}): Stream {
    const { query, body, headers } = sending(params, options);
    const call: Call<void> = {
      method: "POST",
      path: "messages/",
      query,
      body,
      headers: { ...headers, Accept: "text/event-stream" },
      streamSeconds: params.wait ?? STREAM_SECONDS,
      parse: nothing,
    };
    return new Stream(this.sender, call, options);
  }

  /**
   * Send the results of your program's tools, for all calls in `waits_for`, so that the message is
   * answered. Each has the `tool_call_id` and the `content`.
   */
  sendToolResults(messageId: string, params: Params<"send_tool_results">, options: CallOptions = {}) {
    const { wait, ...body } = params;
    const request = { query: { wait }, body, waitSeconds: wait ?? 0 };
    return this.call<"send_tool_results">("POST", pathOf("messages", messageId, "tool-results"), request, options);
  }

  /** Ask that a message be erased, with its reply. It needs a key with the scope `erase`. */
  erase(messageId: string, params: Params<"erase_message"> = {}, options: CallOptions = {}) {
    return this.call<"erase_message">("DELETE", pathOf("messages", messageId), { query: params }, options);
  }

  /** Get a message, with its reply if there is one by then or after `wait` seconds. */
  get(messageId: string, params: Params<"get_message"> = {}, options: CallOptions = {}) {
    const request = { query: params, waitSeconds: params.wait ?? 0 };
    return this.call<"get_message">("GET", pathOf("messages", messageId), request, options);
  }

  /** List messages of users, newest first. */
  list(params: Params<"list_messages"> = {}, options: CallOptions = {}) {
    return this.pages<"list_messages">("messages/", params, options);
  }

  /** List the exclusions of a message, newest first. */
  exclusions(messageId: string, params: Params<"list_exclusions"> = {}, options: CallOptions = {}) {
    return this.pages<"list_exclusions">(pathOf("messages", messageId, "exclusions"), params, options);
  }

  /** Exclude a message from recall, or its words from `start` to before `end`. */
  exclude(messageId: string, params: Params<"exclude_from_recall"> = {}, options: CallOptions = {}) {
    const path = pathOf("messages", messageId, "exclusions");
    return this.call<"exclude_from_recall">("POST", path, { body: params }, options);
  }

  /** Remove an exclusion from recall. */
  include(messageId: string, exclusionId: string, options: CallOptions = {}) {
    return this.done("DELETE", pathOf("messages", messageId, "exclusions", exclusionId), {}, options);
  }

  /**
   * Import up to 1,000 messages of another system. They get no reply. One that is invalid
   * keeps no other out: look at the answer's `invalid`, and at the `errors` of its results. Without
   * an idempotency key, a message is known again by its thread, words and place.
   */
  importHistory(params: Params<"import_messages">, options: OnceOptions = {}) {
    const { wait, ...body } = params;
    const headers = options.idempotencyKey ? once(options) : {};
    const request = { query: { wait }, body, headers, waitSeconds: wait ?? 0 };
    return this.call<"import_messages">("POST", "messages/import/", request, options);
  }
}

function sending({ wait, wait_for, ...body }: Params<"send_message">, options: OnceOptions): Request {
  return { query: { wait, wait_for }, body, headers: once(options), waitSeconds: wait ?? 0 };
}

/** Conversations by agent, user and thread. */
export class Conversations extends Resource {
  /** List conversations, by their latest message. */
  list(params: Params<"list_conversations"> = {}, options: CallOptions = {}) {
    return this.pages<"list_conversations">("conversations/", params, options);
  }

  /** Set the title or the metadata, which is merged: null removes a name. */
  update(params: Params<"update_conversation">, options: CallOptions = {}) {
    const { agent, user_id, thread_id, ...body } = params;
    const request = { query: { agent, user_id, thread_id }, body };
    return this.call<"update_conversation">("PATCH", "conversations/transcript/", request, options);
  }

  /** List every turn, oldest first; without a thread, those of all threads of the user. */
  transcript(params: Params<"get_transcript">, options: CallOptions = {}) {
    return this.pages<"get_transcript">("conversations/transcript/", params, options);
  }

  /** Ask that a conversation be erased. It needs a key with the scope `erase`. */
  erase(params: Params<"erase_conversation">, options: CallOptions = {}) {
    return this.call<"erase_conversation">("DELETE", "conversations/transcript/", { query: params }, options);
  }

  /** List the items of a framework's runs, newest first. A page has at most 50. */
  items(params: Params<"list_conversation_items">, options: CallOptions = {}) {
    return this.pages<"list_conversation_items">("conversations/items/", params, options);
  }

  /** Add up to 1,000 items, to be kept as they are. */
  addItems(params: Params<"add_conversation_items">, options: OnceOptions = {}) {
    return this.done("POST", "conversations/items/", { body: params, headers: once(options) }, options);
  }

  /** Remove an item. Its text stays in the transcript. */
  removeItem(itemId: string, options: OnceOptions = {}) {
    return this.done("DELETE", pathOf("conversations", "items", itemId), { headers: once(options) }, options);
  }

  /** Remove all items of a conversation. Their texts stay in the transcript. */
  clearItems(params: Params<"clear_conversation_items">, options: CallOptions = {}) {
    return this.done("DELETE", "conversations/items/", { query: params }, options);
  }
}

/** Files of other systems. */
export class Imports extends Resource {
  /** Import a file (in base64) of another system, or preview it with `dry_run`. */
  create(params: Params<"create_history_import">, options: OnceOptions = {}) {
    const request = { body: params, headers: once(options) };
    return this.call<"create_history_import">("POST", "imports/", request, options);
  }

  /** Get the state of an import, and its report. */
  get(importId: string, options: CallOptions = {}) {
    return this.call<"get_history_import">("GET", pathOf("imports", importId), {}, options);
  }
}

/** The last turns, which an agent is shown with each message. */
export class Windows extends Resource {
  /** Get the window of a user, oldest turn first. */
  get(params: Params<"get_window">, options: CallOptions = {}) {
    return this.call<"get_window">("GET", "windows/", { query: params }, options);
  }

  /** Clear the window. The transcript stays, and its messages can still be recalled. */
  clear(params: Params<"clear_window">, options: CallOptions = {}) {
    return this.done("DELETE", "windows/", { query: params }, options);
  }
}

/** Messages, found by meaning. */
export class Memories extends Resource {
  /** Search an agent's memories of a user, as its replies do. */
  search(params: Params<"search_memories">, options: CallOptions = {}) {
    return this.call<"search_memories">("POST", "memories/search/", { body: params }, options);
  }

  /** List recalls of replies, newest first. */
  recallEvents(params: Params<"list_recall_events"> = {}, options: CallOptions = {}) {
    return this.pages<"list_recall_events">("recall-events/", params, options);
  }

  /** Get the recall of a reply: results, omitted results with reasons, and the prompt. */
  recallEvent(eventId: string, options: CallOptions = {}) {
    return this.call<"get_recall_event">("GET", pathOf("recall-events", eventId), {}, options);
  }
}
