// Writes src/api.ts, the types of docs/openapi.yaml. Its first line holds the hash of that file, by
// which a test that needs no npm sees that the types are old.
import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import openapiTS, { astToString } from "openapi-typescript";

const source = new URL(process.argv[2] ?? "../../docs/openapi.yaml", import.meta.url);
const text = await readFile(source);
const hash = createHash("sha256").update(text).digest("hex");
const types = astToString(await openapiTS(text));
const head = `// Written by \`make typescript\` from docs/openapi.yaml, sha256 ${hash}\n`;
await writeFile(new URL("src/api.ts", import.meta.url), head + types);
