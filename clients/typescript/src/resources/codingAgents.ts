/** Coding agents: files of Anthropic's memory tool, and hooks of Claude Code. */

import type { CallOptions, Params } from "../types.js";
import { Resource } from "./resource.js";

/** Anthropic's memory tool. */
export class MemoryTool extends Resource {
  /** Run the `input` of a `tool_use` block; the result has `content` and `is_error` of its result. */
  run(params: Params<"run_memory_tool">, options: CallOptions = {}) {
    return this.call<"run_memory_tool">("POST", "memory-tool/", { body: params, isRepeatable: false }, options);
  }
}

/** Claude Code sends its hooks itself; a program can pass on those that it receives. */
export class ClaudeCode extends Resource {
  /** Store the prompt or the final reply of a hook. */
  hook(params: Params<"receive_hook">, options: CallOptions = {}) {
    const { agent, user_id, ...body } = params;
    const request = { query: { agent, user_id }, body };
    return this.call<"receive_hook">("POST", "claude-code/hooks/", request, options);
  }
}
