/** Lists, which come in pages. */

import type { Call, Page } from "./calls.js";
import { KonstructError } from "./errors.js";
import type { Sender } from "./sending.js";
import type { CallOptions } from "./types.js";

/** A list: `for await` asks for one page after the other. Each iteration begins anew. */
export class Pages<T> implements AsyncIterable<T> {
  readonly #sender: Sender;
  readonly #first: Call<Page<T>>;
  readonly #options: CallOptions;

  constructor(sender: Sender, first: Call<Page<T>>, options: CallOptions) {
    this.#sender = sender;
    this.#first = first;
    this.#options = options;
  }

  /** Yield the rows of all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, void> {
    for await (const page of this.pages()) yield* page.results;
  }

  /** Yield the pages. */
  async *pages(): AsyncGenerator<Page<T>, void, void> {
    let call = this.#first;
    // Ends: with the last page of the server, which has no cursor.
    for (;;) {
      const page = await this.#sender.send(call, this.#options);
      yield page;
      if (page.cursor === undefined) return;
      if (page.cursor === call.query?.["cursor"]) throw new KonstructError("a page names itself as the next one");
      call = { ...call, query: { ...call.query, cursor: page.cursor } };
    }
  }
}
