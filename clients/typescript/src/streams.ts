/** Replies that are read while they are written. */

import type { Call } from "./calls.js";
import { ConnectionFailed, KonstructError } from "./errors.js";
import { problemIn } from "./problems.js";
import type { Sender } from "./sending.js";
import type { CallOptions, Message } from "./types.js";

/** A longer event is no reply: one that never ends must not fill the memory. */
export const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024;

/** An event that a server has sent. */
export interface ServerSentEvent {
  name: string;
  data: string;
}

/** A reply, piece by piece: iterate over it once, by `for await`. */
export class Stream implements AsyncIterable<string> {
  /** The message, once it is accepted. It is answered, whether or not you read on. */
  accepted: Message | undefined;
  /** The message as it is at the end. Its reply counts, and not the pieces. */
  message: Message | undefined;
  readonly #sender: Sender;
  readonly #call: Call<unknown>;
  readonly #options: CallOptions;

  constructor(sender: Sender, call: Call<unknown>, options: CallOptions) {
    this.#sender = sender;
    this.#call = call;
    this.#options = options;
  }

  /** Yield the reply's text as it is written. Throws a Problem if it ends with an error. */
  async *[Symbol.asyncIterator](): AsyncGenerator<string, void, void> {
    let hasText = false;
    for await (const { name, data } of eventsIn(this.#sender.bytes(this.#call, this.#options))) {
      if (!["accepted", "text", "message", "error"].includes(name)) continue;
      const found = read(data);
      if (name === "error") throw problemIn(found);
      if (name === "accepted") this.accepted = found;
      if (name === "text" && found.text) {
        hasText = true;
        yield String(found.text);
      }
      if (name === "message") {
        this.message = found as Message;
        // Without pieces, the reply comes as a whole.
        if (!hasText && this.message.reply?.content) yield this.message.reply.content;
        return;
      }
    }
    const remedy = this.accepted ? `; ask for message ${this.accepted.id}` : "";
    throw new ConnectionFailed(`the stream broke off${remedy}`);
  }
}

/** Yield the events in bytes, by the rules of the HTML standard for event streams. */
export async function* eventsIn(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerSentEvent, void, void> {
  const decoder = new TextDecoder();
  let [name, data, rest, endsInReturn] = ["", [] as string[], "", false];
  let size = 0;
  for await (const chunk of chunks) {
    let text = decoder.decode(chunk, { stream: true });
    if (!text) continue;
    // A line may end in "\r\n", the halves of which come apart.
    if (endsInReturn && text.startsWith("\n")) text = text.slice(1);
    endsInReturn = text.endsWith("\r");
    const lines = text.split(/\r\n|\r|\n/);
    lines[0] = rest + lines[0];
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") {
        if (data.length) yield { name: name || "message", data: data.join("\n") };
        [name, data, size] = ["", [], 0];
      }
      const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/su.exec(line) ?? [];
      if (field === "event") name = value;
      if (field === "data") {
        data.push(value);
        size += value.length + 1;
      }
    }
    if (size + rest.length > MAX_EVENT_CHARACTERS) throw new KonstructError("an event of the stream is too long");
  }
}

function read(data: string): any {
  try {
    const found: unknown = JSON.parse(data);
    if (typeof found === "object" && found !== null) return found;
  } catch {
    // The error below omits the text: it may contain texts of people.
  }
  throw new KonstructError("the stream has an event that is no JSON object");
}
