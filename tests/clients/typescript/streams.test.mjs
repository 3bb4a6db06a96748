// Replies that are read while they are written, also from servers that write something else.
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionFailed, KonstructError, TimedOut, errors } from "konstruct-client";
import { client, problem, serve } from "./loopback.mjs";

const event = (name, data) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
const ACCEPTED = event("accepted", { id: "m1", reply: null });
const ANSWERED = event("message", { id: "m1", reply: { content: "Tea it is." } });
const TEXTS = event("text", { text: "Tea " }) + event("text", { text: "it is." });

/** An answer that is written piece by piece, and then ends or not. */
const written = (pieces, { ends = true } = {}) => async (response) => {
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  for (const piece of pieces) {
    response.write(piece);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  if (ends) response.end();
};

async function read(server, params = {}, options = {}) {
  const stream = client(server, { maxRetries: 1 }).messages.stream(
    { content: "Tea?", agent: "Ada", user_id: "maria", ...params },
    options,
  );
  const pieces = [];
  for await (const piece of stream) pieces.push(piece);
  return [pieces, stream];
}

test("a reply is read piece by piece", async (t) => {
  const unavailable = problem(503, "unavailable", { "Retry-After": "0" });
  const server = await serve(t, unavailable, written([": waiting\n\n", ACCEPTED, TEXTS, ANSWERED]));
  const [pieces, stream] = await read(server);
  assert.deepEqual(pieces, ["Tea ", "it is."]);
  assert.deepEqual([stream.accepted.id, stream.message.reply.content], ["m1", "Tea it is."]);
  assert.deepEqual(server.requests.map((each) => each.headers.accept), Array(2).fill("text/event-stream"));
  assert.equal(new Set(server.requests.map((each) => each.headers["idempotency-key"])).size, 1);
});

test("a reply that comes as a whole is one piece", async (t) => {
  const [pieces] = await read(await serve(t, written([ACCEPTED, ANSWERED])));
  assert.deepEqual(pieces, ["Tea it is."]);
});

test("bytes may be split anywhere, and lines end in any way", async (t) => {
  const text = event("text", { text: "Grüße 🌰 " }) + event("text", { text: "an alle" }) + ANSWERED;
  for (const end of ["\n", "\r\n", "\r"]) {
    const bytes = Buffer.from(`\ufeff${text.replaceAll("\n", end)}`);
    const [pieces] = await read(await serve(t, written([...bytes].map((byte) => Buffer.from([byte])))));
    assert.deepEqual(pieces, ["Grüße 🌰 ", "an alle"], JSON.stringify(end));
  }
});

test("data of several lines, without a space, and of unknown events", async (t) => {
  const odd = 'retry: 1\nid: 7\nfoo\nevent:text\ndata:{"text":\ndata:"T"}\n\nevent: of-tomorrow\ndata: no JSON\n\n';
  assert.deepEqual((await read(await serve(t, written([odd, ANSWERED]))))[0], ["T"]);
});

test("a stream that breaks off is an error that names the message", async (t) => {
  const [pieces, cut] = [[ACCEPTED, event("text", { text: "T" })], (response) => response.destroy()];
  await assert.rejects(read(await serve(t, written(pieces))), (error) => {
    assert.ok(error instanceof ConnectionFailed);
    assert.match(error.message, /broke off; ask for message m1/);
    return true;
  });
  const server = await serve(t, async (response) => {
    await written(pieces, { ends: false })(response);
    cut(response);
  });
  await assert.rejects(read(server), ConnectionFailed);
  assert.equal(server.requests.length, 1);
});

test("a stream that ends with a problem throws it", async (t) => {
  const body = { type: "urn:konstruct:problem:reply-interrupted", status: 503, detail: "Broken." };
  await assert.rejects(read(await serve(t, written([ACCEPTED, event("error", body)]))), errors.ReplyInterrupted);
  await assert.rejects(read(await serve(t, problem(422, "unknown-agent"))), errors.UnknownAgent);
});

test("events that are no documents are errors", async (t) => {
  for (const data of ["{", "null", "[", "7"]) {
    await assert.rejects(read(await serve(t, written([`event: text\ndata: ${data}\n\n`]))), (error) => {
      assert.ok(error instanceof KonstructError, String(error));
      return true;
    });
  }
});

test("an event without an end does not fill the memory", async (t) => {
  const huge = "x".repeat(1024 * 1024);
  for (const piece of [huge, `data: ${huge}\n`]) {
    let isClosed = false;
    const server = await serve(t, (response) => {
      response.on("close", () => (isClosed = true));
      response.writeHead(200);
      const more = () => {
        while (!isClosed && response.write(piece));
        if (!isClosed) response.once("drain", more);
      };
      more();
    });
    await assert.rejects(read(server), /an event of the stream is too long/);
  }
});

test("a stream without an end, silent or not, ends in time", async (t) => {
  await assert.rejects(
    read(await serve(t, written([ACCEPTED], { ends: false })), {}, { timeoutSeconds: 0.1 }),
    TimedOut,
  );
  const forever = (response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write(": waiting\n\n"), 20);
    response.on("close", () => clearInterval(timer));
  };
  await assert.rejects(read(await serve(t, forever), { wait: 0.2 }, { timeoutSeconds: 0.2 }), TimedOut);
});

test("a reader who stops closes the connection", async (t) => {
  let closed;
  const isClosed = new Promise((resolve) => (closed = resolve));
  const server = await serve(t, (response) => {
    response.on("close", closed);
    written([ACCEPTED, TEXTS], { ends: false })(response);
  });
  for await (const piece of client(server).messages.stream({ content: "Tea?", agent: "Ada", user_id: "maria" })) {
    assert.equal(piece, "Tea ");
    break;
  }
  await isClosed;
});

test("a signal ends a stream", async (t) => {
  const stop = new AbortController();
  const reading = read(await serve(t, written([ACCEPTED], { ends: false })), {}, { signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 50);
  await assert.rejects(reading, /enough/);
});
