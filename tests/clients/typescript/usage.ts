// Requests and responses as a program writes and reads them: what must compile, and what must not.
import type { components, operations, paths } from "./api";

type Schemas = components["schemas"];

const sent: Schemas["Send"] = { agent: "ada", user_id: "maria", content: "Hello" };
const search: Schemas["Search"] = { agent: "ada", user_id: "maria", query: "Where?" };
const both: Schemas["Search"] = { ...search, include: ["messages", "facts"], filters: { order: 17 } };
const facts: Schemas["FactSearch"] = { query: "Where?" };
const history: Schemas["Import"] = {
  user_id: "maria",
  messages: [{ role: "user", content: "Hello" }, { role: "assistant", content: "Hello!", metadata: { order: 17 } }],
};
// @ts-expect-error  a role is one of two
const wrong: Schemas["Import"] = { messages: [{ role: "robot", content: "Hello" }] };
// @ts-expect-error  content is required
const empty: Schemas["Import"] = { messages: [{ role: "user" }] };

type Found = operations["search_memories"]["responses"][200]["content"]["application/json"];
type TooLong = operations["list_messages"]["responses"][414]["content"]["application/problem+json"];
type Erased = paths["/api/v1/messages/{message_id}/"]["delete"]["responses"][202]["content"]["application/json"];

export function told(found: Found, problem: TooLong, erased: Erased): string[] {
  const known: string[] = (found.facts ?? []).map((fact) => `${fact.content} ${fact.score}`);
  const said: string[] = found.results.map((each) => `${each.content} ${each.probability}`);
  return [...known, ...said, problem.detail, erased.state, erased.message_id ?? "", `${[sent, both, facts, history, wrong, empty].length}`];
}
