/** Facts, and the runs that extract them. */

import { matching, once, pathOf, type Tagged, tagged } from "../calls.js";
import type { CallOptions, MatchOptions, OnceOptions, Params, Result } from "../types.js";
import { Resource } from "./resource.js";

/** Facts about a user, of one agent or of all. A fact keeps its versions. */
export class Facts extends Resource {
  /** Keep a fact. The same text of the same agent and user is the same fact. */
  create(params: Params<"create_fact">, options: OnceOptions = {}) {
    return this.call<"create_fact">("POST", "facts/", { body: params, headers: once(options) }, options);
  }

  /** Keep up to 100 facts in one request: all of them, or none. */
  createMany(params: Params<"create_facts">, options: CallOptions = {}) {
    return this.call<"create_facts">("POST", "facts/batch/", { body: params }, options);
  }

  /** Change up to 100 facts in one request: all of them, or none. */
  changeMany(params: Params<"change_facts">, options: CallOptions = {}) {
    return this.call<"change_facts">("PATCH", "facts/batch/", { body: params, isRepeatable: false }, options);
  }

  /** Delete up to 100 facts with all their versions, for good: all of them, or none. */
  deleteMany(params: Params<"delete_facts">, options: CallOptions = {}) {
    return this.done("POST", "facts/batch/delete/", { body: params, isRepeatable: false }, options);
  }

  /** Store or change the fact with your id. Without a change there is no new version. */
  put(externalId: string, params: Params<"put_fact">, options: CallOptions = {}) {
    const { agent, user_id, ...body } = params;
    const request = { query: { agent, user_id }, body };
    return this.call<"put_fact">("PUT", pathOf("facts", "by-external-id", externalId), request, options);
  }

  /** Delete the fact with your id, for good. */
  deleteByExternalId(
    externalId: string,
    params: Params<"delete_fact_by_external_id"> = {},
    options: CallOptions = {},
  ) {
    return this.done("DELETE", pathOf("facts", "by-external-id", externalId), { query: params }, options);
  }

  /** Get a fact with its evidence, as it is, or as it was at a moment. */
  get(memoryId: string, params: Params<"get_fact"> = {}, options: CallOptions = {}) {
    return this.call<"get_fact">("GET", pathOf("facts", memoryId), { query: params }, options);
  }

  /** Get a fact and its ETag, for `ifMatch`. */
  getTagged(memoryId: string, options: CallOptions = {}): Promise<Tagged<Result<"get_fact">>> {
    return this.sender.send({ method: "GET", path: pathOf("facts", memoryId), parse: tagged }, options);
  }

  /** Change a fact. The previous text is kept as a version. */
  change(memoryId: string, params: Params<"change_fact">, options: MatchOptions = {}) {
    const request = { body: params, headers: matching(options), isRepeatable: false };
    return this.call<"change_fact">("PATCH", pathOf("facts", memoryId), request, options);
  }

  /** Delete a fact with all its versions, for good. */
  delete(memoryId: string, options: MatchOptions = {}) {
    return this.done("DELETE", pathOf("facts", memoryId), { headers: matching(options) }, options);
  }

  /** List the versions of a fact, newest first. */
  history(memoryId: string, params: Params<"list_fact_versions"> = {}, options: CallOptions = {}) {
    return this.pages<"list_fact_versions">(pathOf("facts", memoryId, "history"), params, options);
  }

  /** List the changes of a fact's state with their authors, newest first. */
  events(memoryId: string, params: Params<"list_fact_events"> = {}, options: CallOptions = {}) {
    return this.pages<"list_fact_events">(pathOf("facts", memoryId, "events"), params, options);
  }

  /** List the recall events of the replies that used a fact, newest first. */
  replies(memoryId: string, params: Params<"list_fact_replies"> = {}, options: CallOptions = {}) {
    return this.pages<"list_fact_replies">(pathOf("facts", memoryId, "replies"), params, options);
  }

  /** Confirm a proposed fact: it becomes active. `OwnProposal` if the same key or person proposed it. */
  confirm(memoryId: string, params: Params<"confirm_fact"> = {}, options: MatchOptions = {}) {
    return this.#decide<"confirm_fact">(memoryId, "confirm", params, options);
  }

  /** Reject a proposed fact: it is not proposed again from the same messages. */
  reject(memoryId: string, params: Params<"reject_fact"> = {}, options: MatchOptions = {}) {
    return this.#decide<"reject_fact">(memoryId, "reject", params, options);
  }

  /** Retract a fact that was wrong: agents no longer use it. */
  retract(memoryId: string, params: Params<"retract_fact"> = {}, options: MatchOptions = {}) {
    return this.#decide<"retract_fact">(memoryId, "retract", params, options);
  }

  /** Undo a rejection, a retraction or a supersession. `SlotTaken` if the slot has another value by now. */
  restore(memoryId: string, params: Params<"restore_fact"> = {}, options: MatchOptions = {}) {
    return this.#decide<"restore_fact">(memoryId, "restore", params, options);
  }

  /** List facts, newest first; by default active facts that are valid. */
  list(params: Params<"list_facts"> = {}, options: CallOptions = {}) {
    return this.pages<"list_facts">("facts/", params, options);
  }

  /** Search facts by meaning, best first. */
  search(params: Params<"search_facts">, options: CallOptions = {}) {
    return this.call<"search_facts">("POST", "facts/search/", { body: params }, options);
  }

  #decide<O extends "confirm_fact" | "reject_fact" | "retract_fact" | "restore_fact">(
    memoryId: string,
    decision: string,
    params: Params<O>,
    options: MatchOptions,
  ) {
    const request = { body: params, headers: matching(options), isRepeatable: false };
    return this.call<O>("POST", pathOf("facts", memoryId, decision), request, options);
  }
}

/** Requests for the facts of a part of a conversation, with their results. */
export class ExtractionRuns extends Resource {
  /** Ask for the facts of a conversation's new messages. No fact changes. */
  preview(params: Params<"preview_extraction">, options: CallOptions = {}) {
    const request = { body: params, isRepeatable: false };
    return this.call<"preview_extraction">("POST", "extraction-runs/", request, options);
  }

  /** Get a run with its candidates and the answer of the language model. */
  get(runId: string, options: CallOptions = {}) {
    return this.call<"get_extraction_run">("GET", pathOf("extraction-runs", runId), {}, options);
  }

  /** Preview the input of a run again, such as with another language model. */
  replay(runId: string, params: Params<"replay_extraction_run"> = {}, options: CallOptions = {}) {
    const request = { body: params, isRepeatable: false };
    return this.call<"replay_extraction_run">("POST", pathOf("extraction-runs", runId, "replay"), request, options);
  }

  /** Compare the accepted candidates of two runs. */
  compare(runId: string, params: Params<"compare_extraction_runs">, options: CallOptions = {}) {
    const path = pathOf("extraction-runs", runId, "comparison");
    return this.call<"compare_extraction_runs">("GET", path, { query: params }, options);
  }

  /** Record the facts of a preview. */
  apply(runId: string, options: CallOptions = {}) {
    const path = pathOf("extraction-runs", runId, "apply");
    return this.call<"apply_extraction_run">("POST", path, { isRepeatable: false }, options);
  }

  /** Remove the facts of a run, and restore what they superseded. */
  rollBack(runId: string, options: CallOptions = {}) {
    const path = pathOf("extraction-runs", runId, "roll-back");
    return this.call<"roll_back_extraction_run">("POST", path, { isRepeatable: false }, options);
  }

  /** List runs, newest first. */
  list(params: Params<"list_extraction_runs"> = {}, options: CallOptions = {}) {
    return this.pages<"list_extraction_runs">("extraction-runs/", params, options);
  }
}

/** Conversations from which facts are extracted, with how far they are processed. */
export class Extractions extends Resource {
  /** List conversations with the progress of their extraction. */
  list(params: Params<"list_extractions"> = {}, options: CallOptions = {}) {
    return this.pages<"list_extractions">("extractions/", params, options);
  }

  /** Retry an extraction that has failed. */
  retry(extractionId: string, options: CallOptions = {}) {
    const path = pathOf("extractions", extractionId, "retry");
    return this.call<"retry_extraction">("POST", path, { isRepeatable: false }, options);
  }
}
