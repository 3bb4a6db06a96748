/** Sends calls, again where that is safe. */

import type { Call } from "./calls.js";
import { Deadline, sleep } from "./deadlines.js";
import { ConnectionFailed, KonstructError, Problem } from "./errors.js";
import { problemOf } from "./problems.js";
import type { CallOptions } from "./types.js";
import { VERSION } from "./version.js";

/** How requests are sent. */
export interface Sending {
  url: string;
  key: string;
  timeoutSeconds: number;
  maxRetries: number;
  maxRetryAfterSeconds: number;
  fetch: typeof fetch;
}

// Objects that may not exist when the same request is repeated.
const PASSING = new Set([408, 500, 502, 503, 504]);
const FIRST_WAIT_SECONDS = 0.5;
const MAX_WAIT_SECONDS = 8;
// Codes of Node's errors for a connection that was never made. Browsers give no reason.
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** An answer that is read piece by piece, and its end. */
interface Opened {
  response: Response;
  deadline: Deadline;
}

export class Sender {
  // Private, so that no log of the client shows the key.
  readonly #sending: Sending;

  constructor(sending: Sending) {
    this.#sending = sending;
  }

  /** Send a call, and return its result. */
  async send<T>(call: Call<T>, options: CallOptions): Promise<T> {
    const [text, headers] = await this.#exchange(call, options, async ({ response, deadline }) => {
      const text = await response.text();
      deadline.clear();
      return [text, response.headers] as const;
    });
    try {
      return call.parse(text, headers);
    } catch (error) {
      throw new KonstructError(`${this.#name(call)}: the response does not come from Konstruct`, { cause: error });
    }
  }

  /** Send a call; yield the bytes of its answer as they come. */
  async *bytes(call: Call<unknown>, options: CallOptions): AsyncGenerator<Uint8Array, void, void> {
    const { response, deadline } = await this.#exchange(call, options, async (opened) => opened);
    const reader = response.body?.getReader();
    try {
      if (!reader) return;
      for (let read = await reader.read(); !read.done; read = await reader.read()) {
        deadline.restart();
        yield read.value;
      }
    } catch (error) {
      throw this.#explained(error, call, deadline);
    } finally {
      deadline.clear();
      await reader?.cancel().catch(() => undefined);
    }
  }

  async #exchange<T>(
    call: Call<unknown>,
    options: CallOptions,
    read: (opened: Opened) => Promise<T>,
  ): Promise<T> {
    const [url, init] = this.#request(call);
    const seconds = (options.timeoutSeconds ?? this.#sending.timeoutSeconds) + (call.waitSeconds ?? 0);
    const longest = seconds + (call.streamSeconds ?? 0);
    // Ends: `#waitBeforeNext` allows `maxRetries` further attempts.
    for (let attempt = 1; ; attempt += 1) {
      const deadline = new Deadline(seconds, longest, this.#name(call), options.signal);
      try {
        // Redirects are not followed: the key is for the address that it was given for.
        const response = await this.#sending.fetch(url, { ...init, redirect: "manual", signal: deadline.signal });
        if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
          await response.body?.cancel();
          throw new KonstructError(`${this.#name(call)} is redirected: give the client the address of Konstruct itself`);
        }
        if (!response.ok) throw problemOf(response, await response.text());
        return await read({ response, deadline });
      } catch (error) {
        deadline.clear();
        const explained = this.#explained(error, call, deadline);
        const wait = this.#waitBeforeNext(call, attempt, explained);
        if (wait === undefined) throw explained;
        await sleep(wait, options.signal);
      }
    }
  }

  #request({ method, path, query = {}, body, headers }: Call<unknown>): [string, RequestInit] {
    const { url, key } = this.#sending;
    const parameters = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
    const search = new URLSearchParams(parameters.map(([name, value]) => [name, parameter(value)])).toString();
    const sent: Record<string, string> = { Authorization: `Bearer ${key}`, Accept: "application/json", ...headers };
    // Browsers have a name of their own, and ask the server before they send another.
    if ("process" in globalThis) sent["User-Agent"] = `konstruct-client/${VERSION} typescript`;
    if (body) sent["Content-Type"] = "application/json";
    const address = `${url}/api/v1/${path}${search && `?${search}`}`;
    // No cookies and no referrer: only the key identifies the caller.
    const rest = { credentials: "omit", referrerPolicy: "no-referrer", cache: "no-store" } as const;
    return [address, { method, headers: sent, ...(body && { body: JSON.stringify(body) }), ...rest }];
  }

  /** The address without parameters, which may contain texts of people. */
  #name(call: Call<unknown>): string {
    return `${call.method} ${this.#sending.url}/api/v1/${call.path}`;
  }

  #explained(error: unknown, call: Call<unknown>, deadline: Deadline): unknown {
    if (deadline.signal.aborted) return deadline.signal.reason;
    if (error instanceof KonstructError) return error;
    const cause = (error as { cause?: { code?: string; message?: string } }).cause;
    const why = cause?.code ?? cause?.message ?? String(error);
    const wasSent = !NEVER_SENT.has(cause?.code ?? "");
    return new ConnectionFailed(`no answer from ${this.#name(call)}: ${why}`, { cause: error }, wasSent);
  }

  /** Return the seconds until the call is sent again, undefined if it is not. */
  #waitBeforeNext(call: Call<unknown>, attempt: number, error: unknown): number | undefined {
    const { maxRetries, maxRetryAfterSeconds } = this.#sending;
    if (attempt > maxRetries || !mayRepeat(call, error)) return undefined;
    const asked = error instanceof Problem ? error.retryAfter : undefined;
    if (asked !== undefined) return asked <= maxRetryAfterSeconds ? asked : undefined;
    // Spread, so that those who were refused together do not come together again.
    const longest = Math.min(MAX_WAIT_SECONDS, FIRST_WAIT_SECONDS * 2 ** (attempt - 1));
    return (longest * (1 + Math.random())) / 2;
  }
}

function mayRepeat(call: Call<unknown>, error: unknown): boolean {
  const isRepeatable = call.isRepeatable ?? true;
  if (error instanceof ConnectionFailed) return isRepeatable || !error.wasSent;
  if (!(error instanceof Problem)) return false;
  if (error.status === 429) return true; // a refused request has done nothing
  if (error.status === 409) return error.retryAfter !== undefined; // the same is still at work
  return isRepeatable && PASSING.has(error.status);
}

function parameter(value: unknown): string {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
