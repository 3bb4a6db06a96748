/**
 * Client of Konstruct, in which AI agents remember.
 *
 * ```ts
 * const konstruct = new Client({ url: "http://localhost:8000", key: "ks_…" });
 * await konstruct.facts.create({ content: "Maria is allergic to walnuts.", agent: "Ada", user_id: "maria" });
 * ```
 */

export type { Page, Tagged } from "./calls.js";
export { Client, type ClientOptions } from "./client.js";
export * as errors from "./errors.js";
export { ConnectionFailed, KonstructError, Problem, TimedOut } from "./errors.js";
export type { Pages } from "./pages.js";
export type { Stream } from "./streams.js";
export type {
  CallOptions,
  Filters,
  MatchOptions,
  OnceOptions,
  Operation,
  Params,
  Result,
  Row,
  Schemas,
} from "./types.js";
export { VERSION } from "./version.js";
