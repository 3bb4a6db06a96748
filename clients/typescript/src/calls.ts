/** Descriptions of calls: the request, and how its answer is read. */

import { KonstructError } from "./errors.js";
import type { MatchOptions, OnceOptions } from "./types.js";

/** A request, and how its answer is read. */
export interface Call<T> {
  method: "DELETE" | "GET" | "PATCH" | "POST" | "PUT";
  /** Below /api/v1/. */
  path: string;
  query?: Record<string, unknown>;
  body?: object;
  headers?: Record<string, string>;
  /** Whether the request, sent twice, does no more than sent once; by default it is so. */
  isRepeatable?: boolean;
  /** How long the server is asked to wait. */
  waitSeconds?: number;
  /** How long the server may write its answer. */
  streamSeconds?: number;
  /** Return the result of a response. Throws if the response does not come from Konstruct. */
  parse: (text: string, headers: Headers) => T;
}

/** The description of a request. */
export type Request = Omit<Call<unknown>, "method" | "path" | "parse">;

/** A part of a list. */
export interface Page<T> {
  results: T[];
  /** Where the next page begins; undefined after the last. */
  cursor?: string;
}

/** A document with its ETag, for `ifMatch`. */
export interface Tagged<T> {
  document: T;
  etag: string;
}

/** Join segments to a path below /api/v1/. Each is one segment, also with a slash in it. */
export function pathOf(...segments: (number | string)[]): string {
  // fetch resolves '.' and '..', and their encoded forms, before it sends a request.
  if (segments.some((each) => /^\.{0,2}$/.test(String(each)))) {
    throw new KonstructError("an id in an address cannot be empty, '.' or '..'");
  }
  return segments.map((each) => `${encodeURIComponent(each)}/`).join("");
}

/** Return the header by which a request is done once, however often it is sent. */
export function once(options: OnceOptions): Record<string, string> {
  return { "Idempotency-Key": options.idempotencyKey ?? randomKey() };
}

/** Return the header by which a change is refused if another was faster. */
export function matching(options: MatchOptions): Record<string, string> {
  return options.ifMatch ? { "If-Match": options.ifMatch } : {};
}

export function document(text: string): any {
  const found: unknown = JSON.parse(text);
  if (typeof found !== "object" || found === null) throw new TypeError("no JSON object");
  return found;
}

export function nothing(): void {}

export function tagged(text: string, headers: Headers): Tagged<any> {
  const etag = headers.get("ETag");
  if (!etag) throw new TypeError("no ETag");
  return { document: document(text), etag };
}

export function page(text: string): Page<any> {
  const { results, next } = document(text);
  if (!Array.isArray(results)) throw new TypeError("no results");
  // The cursor alone: the key is for the address that it was given for.
  const cursor = next ? new URL(next, "http://any.invalid").searchParams.get("cursor") : null;
  return cursor ? { results, cursor } : { results };
}

// Not randomUUID(), which browsers have on pages by HTTPS alone.
function randomKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
