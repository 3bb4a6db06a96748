// The client against the server as it is deployed. The environment has its address, and a key.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, errors } from "konstruct-client";

const { KONSTRUCT_BOUND_KEY, KONSTRUCT_OTHER_KEY, KONSTRUCT_URL } = process.env;
const konstruct = new Client();
const maria = { agent: "ada", user_id: "maria" };

async function all(list) {
  const rows = [];
  for await (const row of list) rows.push(row);
  return rows;
}

test("messages, their replies and memories", async () => {
  const said = await konstruct.messages.send({ ...maria, content: "My sister lives in Porto.", metadata: { order: 17 }, wait: 30 });
  assert.deepEqual([said.status, said.thread_id], ["answered", "maria"]);
  assert.deepEqual((await konstruct.messages.get(said.id)).reply, said.reply);
  const stream = konstruct.messages.stream({ ...maria, content: "Where does my sister live?" });
  const pieces = await all(stream);
  assert.equal(pieces.join(""), stream.message.reply.content);
  assert.deepEqual((await all(konstruct.messages.list({ filters: { order: 17 } }))).map((each) => each.id), [said.id]);
  const history = [
    { role: "user", content: "I sold the piano." },
    { role: "assistant", content: "To whom?" },
    { role: "user" },
  ];
  const imported = await konstruct.messages.importHistory({ ...maria, thread_id: "2025", messages: history });
  assert.deepEqual([imported.created, imported.invalid], [2, 1]);
  const turns = await all(konstruct.conversations.transcript({ ...maria, thread_id: "2025", limit: 1 }));
  assert.deepEqual(turns.map((each) => each.content), ["I sold the piano.", "To whom?"]);
  const once = { idempotencyKey: "k" };
  const [first, second] = [await konstruct.messages.send({ ...maria, content: "Once." }, once), await konstruct.messages.send({ ...maria, content: "Once." }, once)];
  assert.equal(first.id, second.id);
  while ((await konstruct.users.usage()).pending_embeddings) await new Promise((resolve) => setTimeout(resolve, 50));
  const found = await konstruct.memories.search({ ...maria, query: "Where does my sister live?" });
  assert.equal(found.results[0].content, "My sister lives in Porto.");
  await assert.rejects(konstruct.messages.send({ agent: "nobody", user_id: "maria", content: "Hi" }), errors.UnknownAgent);
  const erasure = await konstruct.messages.erase(said.id, { reason: "a password" });
  assert.equal((await konstruct.erasures.get(erasure.id)).reason, "a password");
});

test("facts, their versions and changes", async () => {
  const nuts = await konstruct.facts.create({ ...maria, content: "Maria is allergic to walnuts.", metadata: { n: 1 } });
  const { etag } = await konstruct.facts.getTagged(nuts.memory_id);
  await konstruct.facts.change(nuts.memory_id, { content: "She may." }, { ifMatch: etag });
  await assert.rejects(konstruct.facts.change(nuts.memory_id, { content: "No." }, { ifMatch: etag }), errors.ChangedSince);
  const versions = await all(konstruct.facts.history(nuts.memory_id));
  assert.deepEqual(versions.map((each) => each.content), ["She may.", "Maria is allergic to walnuts."]);
  assert.equal((await all(konstruct.facts.list({ ...maria, filters: { n: { gte: 1 } } }))).length, 1);
  assert.ok((await konstruct.facts.search({ ...maria, query: "What may she eat?" })).results[0].score > 0);
  await konstruct.facts.delete(nuts.memory_id);
  await assert.rejects(konstruct.facts.get(nuts.memory_id), errors.NotFound);
  await assert.rejects(konstruct.agents.create({ name: "ada" }), errors.NameTaken);
  assert.deepEqual((await all(konstruct.agents.list())).map((each) => each.name), ["ada"]);
});

test("nothing crosses", async () => {
  const of = (key) => new Client({ url: KONSTRUCT_URL, key });
  const [bound, other] = [of(KONSTRUCT_BOUND_KEY), of(KONSTRUCT_OTHER_KEY)];
  const { memory_id: beas } = await konstruct.facts.create({ agent: "ada", user_id: "bea", content: "Of bea." });
  for (const reader of [bound, other]) {
    assert.deepEqual((await all(reader.facts.list())).map((each) => each.content), []);
    await assert.rejects(reader.facts.delete(beas), errors.NotFound);
  }
  await assert.rejects(bound.memories.search({ agent: "ada", user_id: "bea", query: "Who?" }), errors.OutsideOfKey);
  await assert.rejects(of("ks_nonsense").users.usage(), errors.Unauthenticated);
});
