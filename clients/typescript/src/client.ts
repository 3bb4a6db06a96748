import { KonstructError } from "./errors.js";
import { Agents, Context, LanguageModels, Questions, Sessions } from "./resources/agents.js";
import { ExtractionRuns, Extractions, Facts } from "./resources/facts.js";
import { Conversations, Imports, Memories, Messages, Windows } from "./resources/messages.js";
import { Erasures, Escalations, Identities, ToolCalls, Users } from "./resources/people.js";
import { ClaudeCode, MemoryTool } from "./resources/codingAgents.js";
import { ApiKeys, Events, WebhookDeliveries, Webhooks } from "./resources/webhooks.js";
import { Sender } from "./sending.js";

export interface ClientOptions {
  /** Such as `http://localhost:8000`; by default the environment's KONSTRUCT_URL. */
  url?: string;
  /** An API key, which decides the tenant; by default the environment's KONSTRUCT_API_KEY. */
  key?: string;
  /** Seconds until a response, in addition to the wait of the call; 30 by default. */
  timeoutSeconds?: number;
  /** How often a request is sent again, if that is safe and may help; 3 by default. */
  maxRetries?: number;
  /** A server that asks for a longer wait is not waited for; 30 by default. */
  maxRetryAfterSeconds?: number;
  /** Sends requests instead of the global `fetch`. */
  fetch?: typeof fetch;
}

/** Talks with a Konstruct. */
export class Client {
  readonly agents: Agents;
  readonly apiKeys: ApiKeys;
  readonly context: Context;
  readonly conversations: Conversations;
  readonly erasures: Erasures;
  readonly escalations: Escalations;
  readonly events: Events;
  readonly extractionRuns: ExtractionRuns;
  readonly extractions: Extractions;
  readonly facts: Facts;
  readonly identities: Identities;
  readonly imports: Imports;
  readonly languageModels: LanguageModels;
  readonly memories: Memories;
  readonly messages: Messages;
  readonly questions: Questions;
  readonly sessions: Sessions;
  readonly toolCalls: ToolCalls;
  readonly users: Users;
  readonly webhookDeliveries: WebhookDeliveries;
  readonly webhooks: Webhooks;
  readonly claudeCode: ClaudeCode;
  readonly memoryTool: MemoryTool;
  readonly windows: Windows;

  constructor(options: ClientOptions = {}) {
    const sender = new Sender({
      url: urlOf(options.url ?? environment("KONSTRUCT_URL")),
      key: keyOf(options.key ?? environment("KONSTRUCT_API_KEY")),
      timeoutSeconds: options.timeoutSeconds ?? 30,
      maxRetries: options.maxRetries ?? 3,
      maxRetryAfterSeconds: options.maxRetryAfterSeconds ?? 30,
      // A browser's fetch is a method of the window.
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
    });
    this.agents = new Agents(sender);
    this.apiKeys = new ApiKeys(sender);
    this.context = new Context(sender);
    this.conversations = new Conversations(sender);
    this.erasures = new Erasures(sender);
    this.escalations = new Escalations(sender);
    this.events = new Events(sender);
    this.extractionRuns = new ExtractionRuns(sender);
    this.extractions = new Extractions(sender);
    this.facts = new Facts(sender);
    this.identities = new Identities(sender);
    this.imports = new Imports(sender);
    this.languageModels = new LanguageModels(sender);
    this.memories = new Memories(sender);
    this.messages = new Messages(sender);
    this.questions = new Questions(sender);
    this.sessions = new Sessions(sender);
    this.toolCalls = new ToolCalls(sender);
    this.users = new Users(sender);
    this.webhookDeliveries = new WebhookDeliveries(sender);
    this.webhooks = new Webhooks(sender);
    this.claudeCode = new ClaudeCode(sender);
    this.memoryTool = new MemoryTool(sender);
    this.windows = new Windows(sender);
  }
}

function urlOf(given: string): string {
  const text = given.trim();
  if (!text) throw new KonstructError("no url: pass one, or set KONSTRUCT_URL");
  if (!/^https?:\/\//.test(text)) throw new KonstructError("url is none: begin it with http:// or https://");
  if (!URL.canParse(text)) throw new KonstructError("url cannot be read");
  const url = new URL(text);
  // Not shown, for a password may be in it.
  if (url.username || url.password || url.search || url.hash) {
    throw new KonstructError("url has a user, a password, a query or a fragment: leave them out");
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, "").replace(/\/api\/v1$/, "");
}

function keyOf(given: string): string {
  const key = given.trim();
  if (!key) throw new KonstructError("no key: pass one, or set KONSTRUCT_API_KEY");
  // Not shown: it is a secret.
  if (!/^[\x21-\x7e]+$/.test(key)) {
    throw new KonstructError("the key has characters that no key has: pass it as you were given it");
  }
  return key;
}

function environment(name: string): string {
  const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
  return process?.env?.[name] ?? "";
}
