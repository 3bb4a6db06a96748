// Calls every method with all parameters of its operation; prints the requests that it would send.
// Its input is a list of operations: their method, path, and parameters by place.
import { text } from "node:stream/consumers";
import { Client } from "konstruct-client";

const operations = JSON.parse(await text(process.stdin));
const VALUES = { wait: 1, filters: { topic: "food" } };
const OPTIONS = { idempotencyKey: "x", ifMatch: "x", timeoutSeconds: 5 };

let sent = [];
const konstruct = new Client({
  url: "http://konstruct.test",
  key: "ks_test",
  maxRetries: 0,
  fetch: async (url, { method, headers, body }) => {
    const { pathname, searchParams } = new URL(url);
    const query = Object.fromEntries(searchParams);
    sent.push({ method, path: pathname, query, headers, body: body ? JSON.parse(body) : {} });
    return new Response("{}", { status: 422 });
  },
});

/** Call a method; return its request, and of which kind its answer is. */
async function requested(resource, method, names, params) {
  sent = [];
  const args = names.map((name) => ({ params, options: OPTIONS })[name] ?? "x");
  const answer = resource[method](...args);
  const kind = answer.constructor.name;
  await (kind === "Promise" ? answer : answer[Symbol.asyncIterator]().next()).catch(() => undefined);
  return { kind, ...sent[0] };
}

const found = {};
for (const [name, resource] of Object.entries(konstruct)) {
  const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(resource)).filter((each) => each !== "constructor");
  for (const method of methods) {
    const [, signature] = /^\w+\(([^)]*)\)/.exec(resource[method].toString());
    const names = signature.split(",").map((each) => each.split("=")[0].trim());
    const first = await requested(resource, method, names, {});
    const operation = operations.find((each) => each.method === first.method && each.path === first.path);
    const all = operation?.parameters.map((each) => [each, VALUES[each] ?? "x"]) ?? [];
    const request = await requested(resource, method, names, Object.fromEntries(all));
    found[`${name}.${method}`] = { ...request, id: operation?.id, position: names.indexOf("params") };
  }
}
console.log(JSON.stringify(found));
