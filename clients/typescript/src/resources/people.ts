/** People: users, escalations, tool calls, linked identities and erasures. */

import { once, pathOf } from "../calls.js";
import type { CallOptions, OnceOptions, Params } from "../types.js";
import { Resource } from "./resource.js";

/** End users that are known. */
export class Users extends Resource {
  /** List users in the order of their ids, with counts. */
  list(params: Params<"list_users"> = {}, options: CallOptions = {}) {
    return this.pages<"list_users">("users/", params, options);
  }

  /** List the events of a user, newest first. */
  timeline(userId: string, params: Params<"list_timeline"> = {}, options: CallOptions = {}) {
    return this.pages<"list_timeline">(pathOf("users", userId, "timeline"), params, options);
  }

  /** Get the name, time zone, language and metadata that are set of a user. */
  get(userId: string, options: CallOptions = {}) {
    return this.call<"get_user">("GET", pathOf("users", userId), {}, options);
  }

  /** Set all of it. What is left out becomes empty. */
  put(userId: string, params: Params<"put_user">, options: CallOptions = {}) {
    return this.call<"put_user">("PUT", pathOf("users", userId), { body: params }, options);
  }

  /** Set some of it. Metadata is merged: null removes a name. */
  update(userId: string, params: Params<"update_user">, options: CallOptions = {}) {
    return this.call<"update_user">("PATCH", pathOf("users", userId), { body: params }, options);
  }

  /** Export all data of a person. It needs a key with the scope `erase`. */
  export(userId: string, options: CallOptions = {}) {
    return this.call<"export_user">("GET", pathOf("users", userId, "export"), {}, options);
  }

  /** Search the messages of all people, facts and people, by words and by meaning. */
  search(params: Params<"search_everything">, options: CallOptions = {}) {
    return this.call<"search_everything">("GET", "search/", { query: params }, options);
  }

  /** Get counts of the tenant, with pending work. */
  usage(options: CallOptions = {}) {
    return this.call<"get_usage">("GET", "usage/", {}, options);
  }

  /** Get messages, replies by source, reply times and tokens of each day. */
  usageByDay(params: Params<"get_usage_by_day">, options: CallOptions = {}) {
    return this.call<"get_usage_by_day">("GET", "usage/days/", { query: params }, options);
  }

  /** Get the calls, tokens and money of language models by day, agent, purpose and model. */
  modelUsage(params: Params<"get_model_usage"> = {}, options: CallOptions = {}) {
    return this.call<"get_model_usage">("GET", "usage/models/", { query: params }, options);
  }
}

/** Requests to be forgotten. */
export class Erasures extends Resource {
  /** Ask that a user be forgotten, by all agents or by one. An open request is returned again. */
  request(params: Params<"request_erasure">, options: OnceOptions = {}) {
    return this.call<"request_erasure">("POST", "erasures/", { body: params, headers: once(options) }, options);
  }

  /** Get the state of a request. */
  get(erasureId: string, options: CallOptions = {}) {
    return this.call<"get_erasure">("GET", pathOf("erasures", erasureId), {}, options);
  }

  /** List the replies to others that were written with words of a user, newest first. */
  replies(params: Params<"list_affected_replies">, options: CallOptions = {}) {
    return this.pages<"list_affected_replies">("erasures/replies/", params, options);
  }

  /** List the erasures of users, newest first. */
  list(params: Params<"list_erasures"> = {}, options: CallOptions = {}) {
    return this.pages<"list_erasures">("erasures/", params, options);
  }
}

/** Threads in which a person or another agent answers. */
export class Escalations extends Resource {
  /** Hand a thread to a person, or to another agent. One that is open stays as it is. */
  open(params: Params<"open_escalation">, options: CallOptions = {}) {
    return this.call<"open_escalation">("POST", "escalations/", { body: params }, options);
  }

  /** Get an escalation. */
  get(escalationId: string, options: CallOptions = {}) {
    return this.call<"get_escalation">("GET", pathOf("escalations", escalationId), {}, options);
  }

  /** Assign an escalation to a member of the team by username; "": unassigned. */
  assign(escalationId: string, params: Params<"assign_escalation">, options: CallOptions = {}) {
    return this.call<"assign_escalation">("PUT", pathOf("escalations", escalationId, "assignment"), { body: params }, options);
  }

  /** Answer the user as a person. */
  answer(escalationId: string, params: Params<"answer_escalation">, options: OnceOptions = {}) {
    const request = { body: params, headers: once(options) };
    return this.call<"answer_escalation">("POST", pathOf("escalations", escalationId, "answer"), request, options);
  }

  /** Resolve an escalation. With `let_agent_answer` the agent answers the waiting messages. */
  resolve(escalationId: string, params: Params<"resolve_escalation">, options: CallOptions = {}) {
    const request = { body: params, isRepeatable: false };
    return this.call<"resolve_escalation">("POST", pathOf("escalations", escalationId, "resolution"), request, options);
  }

  /** List escalations, newest first. */
  list(params: Params<"list_escalations"> = {}, options: CallOptions = {}) {
    return this.pages<"list_escalations">("escalations/", params, options);
  }
}

/** Tool calls of agents, and the consent of users. */
export class ToolCalls extends Resource {
  /** Get a tool call, with its question and arguments. */
  get(callId: string, options: CallOptions = {}) {
    return this.call<"get_tool_call">("GET", pathOf("tool-calls", callId), {}, options);
  }

  /** Send the user's decision. The same again changes nothing. */
  decide(callId: string, params: Params<"decide_tool_call">, options: CallOptions = {}) {
    return this.call<"decide_tool_call">("POST", pathOf("tool-calls", callId, "decision"), { body: params }, options);
  }

  /** List tool calls, newest first. */
  list(params: Params<"list_tool_calls"> = {}, options: CallOptions = {}) {
    return this.pages<"list_tool_calls">("tool-calls/", params, options);
  }
}

/** Accounts of channels, and the users that they belong to. */
export class Identities extends Resource {
  /** Create the identity of a channel's account. An existing one stays. */
  name(params: Params<"name_identity">, options: CallOptions = {}) {
    return this.call<"name_identity">("POST", "identities/", { body: params }, options);
  }

  /** Get an identity. */
  get(identityId: string, options: CallOptions = {}) {
    return this.call<"get_identity">("GET", pathOf("identities", identityId), {}, options);
  }

  /** Link an identity to an existing user. */
  link(identityId: string, params: Params<"link_identity">, options: CallOptions = {}) {
    return this.call<"link_identity">("PUT", pathOf("identities", identityId, "link"), { body: params }, options);
  }

  /** Unlink an identity. It is a separate user again. */
  unlink(identityId: string, options: CallOptions = {}) {
    return this.call<"unlink_identity">("DELETE", pathOf("identities", identityId, "link"), {}, options);
  }

  /** List identities, newest first. */
  list(params: Params<"list_identities"> = {}, options: CallOptions = {}) {
    return this.pages<"list_identities">("identities/", params, options);
  }
}
