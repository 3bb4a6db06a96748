/** Types of calls and documents, all derived from those of the API's description. */

import type { components, operations } from "./api.js";

/** The documents of the API by name, as they come and go in JSON. Moments are texts in ISO 8601. */
export type Schemas = components["schemas"];
export type Message = Schemas["Message"];

/** The id of an operation in the API's description. */
export type Operation = keyof operations;

/** Values of the metadata: `{ order: 17 }`, `{ order: { gte: 17 } }`. */
export type Filters = Record<string, unknown>;

type Part<T, Name extends string> = T extends { [key in Name]?: infer Inner } ? NonNullable<Inner> : never;
type Otherwise<T, Default> = [T] extends [never] ? Default : T;
type Json<T> = T extends { content: { "application/json": infer Document } } ? Document : never;
type WithFilters<T> = T extends { filters?: string } ? Omit<T, "filters"> & { filters?: Filters } : T;
type WithMetadata<T> = "metadata" extends keyof T ? Omit<T, "metadata"> & { metadata?: Filters } : T;
type InAddress<O extends Operation> = Otherwise<Part<operations[O]["parameters"], "query">, object>;

/** The parameters of an operation in the address, by name. */
export type Query<O extends Operation> = WithMetadata<WithFilters<InAddress<O>>>;

/** The body of an operation. */
export type Body<O extends Operation> = Otherwise<Json<Part<operations[O], "requestBody">>, object>;

/** All parameters of an operation but for those in the path and in headers. */
export type Params<O extends Operation> = Query<O> & Body<O>;

type Answers<O extends Operation> = operations[O]["responses"];

/** The document with which an operation is answered. */
export type Result<O extends Operation> = Json<Answers<O>[keyof Answers<O> & (200 | 201 | 202)]>;

/** A row of a list. */
export type Row<O extends Operation> = Result<O> extends { results: (infer Item)[] } ? Item : never;

/** Options of every call. */
export interface CallOptions {
  /** Ends the call, also while it waits before it is sent again. The call rejects with its reason. */
  signal?: AbortSignal;
  /** Seconds until a response, in addition to the wait of the call; by default the client's. */
  timeoutSeconds?: number;
}

/** Options of calls that are done once, however often they are sent. */
export interface OnceOptions extends CallOptions {
  /** The same request under the same key does nothing again; by default a random key. */
  idempotencyKey?: string;
}

/** Options of calls that change what was read before. */
export interface MatchOptions extends CallOptions {
  /** The ETag that was read. Throws `ChangedSince` if it has changed. */
  ifMatch?: string;
}
