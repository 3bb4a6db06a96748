// How the client sends: once or again, with which headers, and what it makes of answers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { Client, ConnectionFailed, KonstructError, TimedOut, errors } from "konstruct-client";
import { KEY, client, problem, serve } from "./loopback.mjs";

const FACT = { memory_id: "f1", content: "Tea." };
const CREATED = { status: 201, body: FACT };
const keep = (konstruct, options) => konstruct.facts.create({ content: "Tea.", user_id: "maria" }, options);
const broken = (response) => response.socket.destroy();
const silent = () => undefined;
const NOW = { "Retry-After": "0" };

async function thrown(promise) {
  try {
    await promise;
  } catch (error) {
    assert.ok(!inspect(error, { depth: 10, showHidden: true }).includes(KEY), "the error shows the key");
    return error;
  }
  assert.fail("nothing was thrown");
}

test("a request says who asks and what", async (t) => {
  const server = await serve(t, CREATED);
  assert.deepEqual(await keep(client(server)), FACT);
  const [{ method, path, headers, body }] = server.requests;
  assert.deepEqual([method, path, JSON.parse(body)], ["POST", "/api/v1/facts/", { content: "Tea.", user_id: "maria" }]);
  assert.equal(headers.authorization, `Bearer ${KEY}`);
  assert.match(headers["user-agent"], /^konstruct-client\/\d/);
  assert.match(headers["idempotency-key"], /^[0-9a-f]{32}$/);
});

test("the address may have a path, and the one of the API", async (t) => {
  const server = await serve(t, CREATED, CREATED, CREATED);
  for (const path of ["/konstruct", "/konstruct/", "/konstruct/api/v1/"]) {
    await keep(client(server, { url: server.url + path }));
  }
  assert.deepEqual([...new Set(server.requests.map((each) => each.path))], ["/konstruct/api/v1/facts/"]);
});

test("a wrong address or key is refused, and not shown", async () => {
  const made = (options) => thrown((async () => new Client(options))());
  for (const url of ["localhost:8000", "http://maria:hunter2@h/", "http://h/?token=hunter2", "http://h/#hunter2", "http://"]) {
    const error = await made({ url, key: KEY });
    assert.ok(error instanceof KonstructError, url);
    assert.ok(!inspect(error).includes("hunter2"));
  }
  assert.match((await made({ url: "http://h", key: `${KEY}\nks_two` })).message, /characters that no key has/);
  assert.match((await made({ url: "http://h" })).message, /set KONSTRUCT_API_KEY/);
  assert.match((await made({ key: KEY })).message, /set KONSTRUCT_URL/);
});

test("no log of a client, a list or a stream shows the key", () => {
  const konstruct = new Client({ url: "http://h", key: KEY });
  const all = [konstruct, konstruct.facts.list(), konstruct.messages.stream({ agent: "a", user_id: "m", content: "Hi" })];
  assert.ok(!inspect(all, { depth: 10, showHidden: true }).includes(KEY));
  assert.ok(!JSON.stringify(all).includes(KEY));
});

test("it waits as the server says, and repeats the same request", async (t) => {
  const server = await serve(
    t,
    problem(429, "too-many-requests", NOW),
    problem(409, "idempotency-key-in-use", NOW),
    problem(503, "unavailable", { "Retry-After": "Sun, 06 Nov 1994 08:49:37 GMT" }),
    broken,
    CREATED,
  );
  assert.deepEqual(await keep(client(server, { maxRetries: 4 })), FACT);
  assert.equal(new Set(server.requests.map((each) => each.headers["idempotency-key"])).size, 1);
  assert.equal(new Set(server.requests.map((each) => each.body)).size, 1);
  assert.equal(server.requests.length, 5);
});

test("a wait that is too long is left to the caller, in seconds or as a date", async (t) => {
  const later = new Date(Date.now() + 3_600_000).toUTCString();
  const server = await serve(t, ...["31", later].map((wait) => problem(429, "too-many-requests", { "Retry-After": wait })));
  const inSeconds = await thrown(keep(client(server)));
  assert.ok(inSeconds instanceof errors.TooManyRequests);
  assert.equal(inSeconds.retryAfter, 31);
  const asDate = await thrown(keep(client(server)));
  assert.ok(asDate.retryAfter > 3500 && asDate.retryAfter <= 3600);
  assert.equal(server.requests.length, 2);
});

test("a wait that is no number and no date is as none", async (t) => {
  for (const odd of ["-1", "1.5", "soon", "31 GMT"]) {
    const server = await serve(t, problem(429, "too-many-requests", { "Retry-After": odd }));
    assert.equal((await thrown(keep(client(server, { maxRetries: 0 })))).retryAfter, undefined, odd);
  }
});

test("what would be done twice is not repeated", async (t) => {
  const request = (konstruct) => konstruct.extractions.retry("e");
  for (const answer of [problem(503, "unavailable"), broken]) {
    const server = await serve(t, answer);
    await thrown(request(client(server)));
    assert.equal(server.requests.length, 1);
  }
  let attempts = 0;
  const refusing = async () => {
    attempts += 1;
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("refused"), { code: "ECONNREFUSED" }) });
  };
  const konstruct = new Client({ url: "http://h", key: KEY, maxRetries: 1, fetch: refusing });
  assert.match((await thrown(request(konstruct))).message, /^no answer from POST http:\/\/h\/api\/v1\/extractions\/e\/retry\/: ECONNREFUSED$/);
  assert.equal(attempts, 2);
});

test("an answer that does not come in time is an error of its own", async (t) => {
  const half = (response) => response.writeHead(200, { "Content-Length": "10" }).write("{");
  for (const answer of [silent, half]) {
    const server = await serve(t, answer);
    const error = await thrown(keep(client(server, { maxRetries: 0 }), { timeoutSeconds: 0.1 }));
    assert.ok(error instanceof TimedOut, String(error));
  }
});

test("a call ends with the caller's signal, also while it waits", async (t) => {
  const server = await serve(t, silent, problem(429, "too-many-requests", { "Retry-After": "20" }));
  const stop = new AbortController();
  const first = keep(client(server), { signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 50);
  assert.equal((await thrown(first)).message, "enough");
  assert.equal((await thrown(keep(client(server), { signal: stop.signal }))).message, "enough");
  assert.equal(server.requests.length, 1);
  const again = new AbortController();
  const second = keep(client(server), { signal: again.signal });
  setTimeout(() => again.abort(), 50);
  assert.equal((await thrown(second)).name, "AbortError");
});

test("a redirect is not followed, to this host or another", async (t) => {
  const other = await serve(t, CREATED);
  for (const status of [301, 302, 303, 307, 308]) {
    const server = await serve(t, { status, headers: { Location: `${other.url}/api/v1/facts/` } });
    assert.match((await thrown(keep(client(server)))).message, /is redirected/);
    assert.equal(server.requests.length, 1);
  }
  assert.equal(other.requests.length, 0);
});

test("a problem is thrown as its type", async (t) => {
  const cases = [
    [problem(409, "duplicate-fact"), errors.DuplicateFact, "409: No."],
    [problem(422, "of-tomorrow"), errors.Unprocessable, "422: No."],
    [problem(418, "of-tomorrow"), errors.Problem, "418: No."],
    [problem(400, "__proto__"), errors.BadRequest, "400: No."],
    [{ status: 502, body: "<h1>" }, errors.ServerError, "502: Bad Gateway: <h1>"],
    [{ status: 404, body: ["odd"] }, errors.NotFound, '404: Not Found: ["odd"]'],
    [{ status: 401, body: "" }, errors.Unauthenticated, "401: Unauthorized: "],
    [{ status: 400, body: { type: "a", status: 400, detail: "b", errors: "c" } }, errors.BadRequest, /^400: Bad Request/],
    [{ status: 500, body: "null" }, errors.ServerError, "500: Internal Server Error: null"],
  ];
  for (const [answer, kind, text] of cases) {
    const server = await serve(t, answer);
    const error = await thrown(keep(client(server, { maxRetries: 0 })));
    assert.equal(error.constructor, kind);
    if (typeof text === "string") assert.equal(error.message, text);
    else assert.match(error.message, text);
  }
});

test("an error names its fields", async (t) => {
  const wrong = [{ field: "content", detail: "May not be blank." }];
  const body = { type: "urn:konstruct:problem:invalid-fields", status: 400, detail: "Invalid: content.", errors: wrong, request_id: "r-1" };
  const error = await thrown(keep(client(await serve(t, { status: 400, body }))));
  assert.ok(error instanceof errors.InvalidFields);
  assert.equal(error.message, "400: Invalid: content. content: May not be blank.");
  assert.deepEqual([error.errors, error.requestId, error.name], [wrong, "r-1", "InvalidFields"]);
});

test("an empty answer is one only where nothing is answered", async (t) => {
  const server = await serve(t, { status: 204 }, { status: 200, body: "" }, { status: 204 }, { status: 200, body: "" });
  const konstruct = client(server);
  assert.equal(await konstruct.facts.delete("f1"), undefined);
  assert.equal(await konstruct.sessions.clear("s1"), undefined);
  assert.match((await thrown(konstruct.facts.get("f1"))).message, /does not come from Konstruct/);
  assert.match((await thrown(konstruct.facts.get("f1"))).message, /does not come from Konstruct/);
});

test("what is no Konstruct is not taken for one", async (t) => {
  const answers = ["Welcome!", "null", "7", '{"results": 1}'];
  const server = await serve(t, ...answers.map((body) => ({ status: 200, body })));
  for (const _ of answers) {
    const error = await thrown(client(server).facts.list()[Symbol.asyncIterator]().next());
    assert.ok(error instanceof KonstructError, String(error));
    assert.match(error.message, /does not come from Konstruct/);
  }
});

test("a list is followed at the address that the key is for", async (t) => {
  const next = "http://elsewhere.example/api/v1/facts/?cursor=c2&limit=1";
  const server = await serve(
    t,
    { status: 200, body: { next, previous: null, results: [{ n: 1 }] } },
    { status: 200, body: { next: null, previous: "…", results: [{ n: 2 }] } },
  );
  const found = [];
  for await (const each of client(server).facts.list({ filters: { topic: { in: ["a"] } }, limit: 1 })) found.push(each.n);
  assert.deepEqual(found, [1, 2]);
  const [first, second] = server.requests.map((each) => new URL(each.path, server.url).searchParams);
  assert.equal(first.get("filters"), '{"topic":{"in":["a"]}}');
  assert.equal(second.get("filters"), first.get("filters"));
  assert.equal(second.get("cursor"), "c2");
});

test("a list that never ends is an error", async (t) => {
  const page = { status: 200, body: { next: "/api/v1/facts/?cursor=same", results: [] } };
  const server = await serve(t, page, page);
  const read = async () => {
    for await (const _ of client(server).facts.list());
  };
  assert.match((await thrown(read())).message, /names itself as the next one/);
});

test("an id is one segment of the path", async (t) => {
  const server = await serve(t, { status: 204 });
  const konstruct = client(server);
  await konstruct.sessions.clear("../a b/ü?");
  assert.equal(server.requests[0].path, "/api/v1/sessions/..%2Fa%20b%2F%C3%BC%3F/");
  for (const id of ["", ".", ".."]) assert.throws(() => konstruct.sessions.clear(id), KonstructError);
});
