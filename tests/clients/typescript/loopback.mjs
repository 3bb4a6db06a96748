// A server on loopback that answers requests one by one, and keeps them.
import { createServer } from "node:http";
import { Client } from "konstruct-client";

export const KEY = "ks_secret";

/** Serve as long as the test lasts. An answer is a function, or a status with headers and body. */
export async function serve(test, ...answers) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    requests.push({ method: request.method, path: request.url, headers: request.headers, body });
    const answer = answers.shift();
    if (typeof answer === "function") return answer(response, request);
    response.writeHead(answer.status, answer.headers);
    response.end(typeof answer.body === "object" ? JSON.stringify(answer.body) : answer.body);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  test.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${server.address().port}`, requests };
}

export function client(server, options = {}) {
  return new Client({ url: server.url, key: KEY, ...options });
}

export function problem(status, kind, headers = {}) {
  const body = { type: `urn:konstruct:problem:${kind}`, status, detail: "No." };
  return { status, headers: { "Content-Type": "application/problem+json", ...headers }, body };
}
