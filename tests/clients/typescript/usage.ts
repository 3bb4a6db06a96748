// Requests and responses as a program writes and reads them: what must compile, and what must not.
import { Client, errors, type Params, type Result, type Row, type Schemas } from "konstruct-client";

const konstruct = new Client();
const sent: Schemas["Send"] = { agent: "ada", user_id: "maria", content: "Hello" };
const search: Params<"search_memories"> = { agent: "ada", user_id: "maria", query: "Where?" };
const both: Params<"search_memories"> = { ...search, include: ["messages", "facts"], filters: { order: 17 } };
const history: Params<"import_messages"> = {
  user_id: "maria",
  messages: [{ role: "user", content: "Hello" }, { role: "assistant", content: "Hello!", metadata: { order: 17 } }],
};
// @ts-expect-error  a role is one of two
const wrong: Params<"import_messages"> = { messages: [{ role: "robot", content: "Hello" }] };
// @ts-expect-error  content is required
const empty: Params<"import_messages"> = { messages: [{ role: "user" }] };

export async function use(): Promise<string[]> {
  await konstruct.messages.send({ ...sent, wait: 30 }, { idempotencyKey: "k", timeoutSeconds: 5 });
  await konstruct.facts.search({ query: "Where?" });
  // @ts-expect-error  an agent is required
  await konstruct.messages.send({ user_id: "maria", content: "Hello" });
  // @ts-expect-error  there is no such parameter
  konstruct.facts.list({ usr: "maria" });
  // @ts-expect-error  there is no such state
  konstruct.facts.list({ state: "forgotten" });
  const found: Result<"search_memories"> = await konstruct.memories.search(both);
  const facts: Row<"list_facts">[] = [];
  for await (const fact of konstruct.facts.list({ filters: { topic: { in: ["food"] } } })) facts.push(fact);
  for await (const page of konstruct.facts.list().pages()) facts.push(...page.results);
  const { document, etag } = await konstruct.facts.getTagged("f1");
  const nothing: void = await konstruct.facts.delete("f1", { ifMatch: etag });
  const stream = konstruct.messages.stream(sent);
  for await (const piece of stream) piece.toUpperCase();
  const erased = await konstruct.messages.erase("m1");
  try {
    await konstruct.messages.importHistory(history);
  } catch (error) {
    if (error instanceof errors.InvalidFields) return error.errors.map((each) => each.field);
    throw error;
  }
  const known = (found.facts ?? []).map((fact) => `${fact.content} ${fact.score}`);
  const recalled = found.results.map((each) => `${each.content} ${each.probability}`);
  return [...known, ...recalled, document.content, stream.message?.status ?? "", erased.message_id ?? "", `${[nothing, wrong, empty].length}`];
}
