/** Ends of calls: by the caller's signal, or by time. */

import { TimedOut } from "./errors.js";

/** Aborts its signal after `seconds` without `restart`, after `longest` in any case, or with `outer`. */
export class Deadline {
  readonly #controller = new AbortController();
  readonly #forward = () => this.#controller.abort(this.outer?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #end: number;

  constructor(
    readonly seconds: number,
    longest: number,
    readonly what: string,
    readonly outer?: AbortSignal,
  ) {
    this.#end = performance.now() + longest * 1000;
    if (outer?.aborted) this.#forward();
    outer?.addEventListener("abort", this.#forward, { once: true });
    this.restart();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Begin to count anew, for something has come. */
  restart(): void {
    clearTimeout(this.#timer);
    const left = Math.max(0, Math.min(this.seconds * 1000, this.#end - performance.now()));
    const error = () => new TimedOut(`no answer in time from ${this.what}`);
    this.#timer = setTimeout(() => this.#controller.abort(error()), left);
  }

  /** Forget the timer and the caller's signal. */
  clear(): void {
    clearTimeout(this.#timer);
    this.outer?.removeEventListener("abort", this.#forward);
  }
}

/** Wait, or reject with the reason of the signal. */
export function sleep(seconds: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const aborted = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", aborted);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
