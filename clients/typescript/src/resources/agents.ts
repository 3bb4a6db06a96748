/** Agents, the sessions of their graphs, and prompts. */

import { matching, once, pathOf, type Tagged, tagged } from "../calls.js";
import type { CallOptions, MatchOptions, OnceOptions, Params, Result } from "../types.js";
import { Resource } from "./resource.js";

/** Agents. None is ever deleted: `is_active: false` closes it. */
export class Agents extends Resource {
  /** Make an agent. */
  create(params: Params<"create_agent">, options: OnceOptions = {}) {
    return this.call<"create_agent">("POST", "agents/", { body: params, headers: once(options) }, options);
  }

  /** Get an agent by its id. */
  get(agentId: string, options: CallOptions = {}) {
    return this.call<"get_agent">("GET", pathOf("agents", agentId), {}, options);
  }

  /** Get an agent and its ETag, for `ifMatch`. */
  getTagged(agentId: string, options: CallOptions = {}): Promise<Tagged<Result<"get_agent">>> {
    return this.sender.send({ method: "GET", path: pathOf("agents", agentId), parse: tagged }, options);
  }

  /** Change an agent. Omitted fields stay. */
  change(agentId: string, params: Params<"update_agent">, options: MatchOptions = {}) {
    const request = { body: params, headers: matching(options), isRepeatable: false };
    return this.call<"update_agent">("PATCH", pathOf("agents", agentId), request, options);
  }

  /** List agents by name. */
  list(params: Params<"list_agents"> = {}, options: CallOptions = {}) {
    return this.pages<"list_agents">("agents/", params, options);
  }

  /** List the versions of an agent, newest first. */
  versions(agentId: string, params: Params<"list_agent_versions"> = {}, options: CallOptions = {}) {
    return this.pages<"list_agent_versions">(pathOf("agents", agentId, "versions"), params, options);
  }

  /** Restore a version of an agent, which is a new version. */
  restore(agentId: string, number: number, params: Params<"restore_agent"> = {}, options: CallOptions = {}) {
    const path = pathOf("agents", agentId, "versions", number, "restore");
    return this.call<"restore_agent">("POST", path, { body: params, isRepeatable: false }, options);
  }

  /** Get an agent's answer to a message without storing anything. */
  dryRun(agentId: string, params: Params<"dry_run_agent">, options: CallOptions = {}) {
    const request = { body: params, isRepeatable: false };
    return this.call<"dry_run_agent">("POST", pathOf("agents", agentId, "dry-runs"), request, options);
  }
}

/** Saved questions: an agent is asked them again after each change, by dry runs. */
export class Questions extends Resource {
  /** Save a question to an agent, which is asked it now. */
  save(agentId: string, params: Params<"save_question">, options: OnceOptions = {}) {
    const request = { body: params, headers: once(options) };
    return this.call<"save_question">("POST", pathOf("agents", agentId, "questions"), request, options);
  }

  /** Get a saved question. */
  get(agentId: string, questionId: string, options: CallOptions = {}) {
    const path = pathOf("agents", agentId, "questions", questionId);
    return this.call<"get_saved_question">("GET", path, {}, options);
  }

  /** Delete a saved question with its answers. */
  delete(agentId: string, questionId: string, options: CallOptions = {}) {
    return this.done("DELETE", pathOf("agents", agentId, "questions", questionId), {}, options);
  }

  /** List the saved questions of an agent, newest first. */
  list(agentId: string, params: Params<"list_saved_questions"> = {}, options: CallOptions = {}) {
    return this.pages<"list_saved_questions">(pathOf("agents", agentId, "questions"), params, options);
  }

  /** List the answers of an agent's versions, newest first. */
  answers(agentId: string, params: Params<"list_question_answers"> = {}, options: CallOptions = {}) {
    const path = pathOf("agents", agentId, "questions", "answers");
    return this.pages<"list_question_answers">(path, params, options);
  }

  /** Have a worker ask an agent its saved questions again. */
  ask(agentId: string, options: CallOptions = {}) {
    return this.call<"ask_saved_questions">("POST", pathOf("agents", agentId, "questions", "run"), {}, options);
  }

  /** Get the state of an agent's saved questions. */
  run(agentId: string, options: CallOptions = {}) {
    return this.call<"get_question_run">("GET", pathOf("agents", agentId, "questions", "run"), {}, options);
  }
}

/** The tenant's own language models. No response has a key. */
export class LanguageModels extends Resource {
  /** Create a language model. */
  create(params: Params<"create_language_model">, options: OnceOptions = {}) {
    const request = { body: params, headers: once(options) };
    return this.call<"create_language_model">("POST", "language-models/", request, options);
  }

  /** Get a language model. */
  get(languageModelId: string, options: CallOptions = {}) {
    return this.call<"get_language_model">("GET", pathOf("language-models", languageModelId), {}, options);
  }

  /** Change a language model. Omitted fields stay. */
  change(languageModelId: string, params: Params<"update_language_model">, options: CallOptions = {}) {
    const request = { body: params };
    return this.call<"update_language_model">("PATCH", pathOf("language-models", languageModelId), request, options);
  }

  /** Delete a language model that no agent names. */
  delete(languageModelId: string, options: CallOptions = {}) {
    return this.call<"delete_language_model">("DELETE", pathOf("language-models", languageModelId), {}, options);
  }

  /** Measure a language model, and what it can do. */
  test(languageModelId: string, options: CallOptions = {}) {
    const request = { isRepeatable: false };
    const path = pathOf("language-models", languageModelId, "test");
    return this.call<"test_language_model">("POST", path, request, options);
  }

  /** List language models by name. */
  list(params: Params<"list_language_models"> = {}, options: CallOptions = {}) {
    return this.pages<"list_language_models">("language-models/", params, options);
  }
}

/** Threads of LangGraph graphs. */
export class Sessions extends Resource {
  /** List sessions, last used first. */
  list(params: Params<"list_sessions"> = {}, options: CallOptions = {}) {
    return this.pages<"list_sessions">("sessions/", params, options);
  }

  /** Get a session with its newest messages, oldest first. */
  get(threadId: string, params: Params<"get_session"> = {}, options: CallOptions = {}) {
    return this.call<"get_session">("GET", pathOf("sessions", threadId), { query: params }, options);
  }

  /** Clear a session: its whole history, for good. */
  clear(threadId: string, options: CallOptions = {}) {
    return this.done("DELETE", pathOf("sessions", threadId), {}, options);
  }
}

/** Prompts within a budget of tokens. */
export class Context extends Resource {
  /** Make a prompt for a task from the agent's facts and memories. */
  compile(params: Params<"compile_context">, options: CallOptions = {}) {
    return this.call<"compile_context">("POST", "context/compile/", { body: params }, options);
  }
}
