/** The errors that answers are. */

import * as errors from "./errors.js";
import { KonstructError, Problem, type ProblemDocument, ServerError } from "./errors.js";

const TYPE_PREFIX = "urn:konstruct:problem:";
const MAX_SHOWN_CHARACTERS = 200;

type ProblemClass = typeof Problem;

/** The class of each type of problem. */
export const BY_KIND = new Map<string, ProblemClass>(
  Object.values(errors as Record<string, unknown>)
    .filter((each): each is ProblemClass => typeof each === "function" && each.prototype instanceof Problem)
    .map((each) => [each.kind, each]),
);

const BY_STATUS = new Map<number, ProblemClass>([
  [400, errors.BadRequest],
  [401, errors.Unauthenticated],
  [403, errors.Forbidden],
  [404, errors.NotFound],
  [405, errors.MethodNotAllowed],
  [406, errors.NotAcceptable],
  [408, errors.RequestTimeout],
  [409, errors.Conflict],
  [412, errors.ChangedSince],
  [413, errors.BodyTooLarge],
  [414, errors.AddressTooLong],
  [415, errors.UnsupportedMediaType],
  [422, errors.Unprocessable],
  [429, errors.TooManyRequests],
  [503, errors.Unavailable],
]);

/** Return the error that a refusing answer is. */
export function problemOf(response: Response, text: string): Problem {
  const retryAfter = retryAfterOf(response.headers);
  try {
    return problemIn(JSON.parse(text), retryAfter);
  } catch {
    // Such as a proxy's page.
    const detail = `${response.statusText}: ${text.slice(0, MAX_SHOWN_CHARACTERS)}`;
    return problemIn({ type: "about:blank", status: response.status, detail }, retryAfter);
  }
}

/** Return the error that a problem document is. Throws KonstructError if it is no such document. */
export function problemIn(document: ProblemDocument, retryAfter?: number): Problem {
  const { type, status, detail, errors: fields } = document ?? {};
  if (typeof type !== "string" || typeof status !== "number" || typeof detail !== "string" || !areFields(fields)) {
    throw new KonstructError("this is no problem document");
  }
  const kind = type.startsWith(TYPE_PREFIX) ? type.slice(TYPE_PREFIX.length) : "";
  const found = BY_KIND.get(kind) ?? BY_STATUS.get(status) ?? (status < 500 ? Problem : ServerError);
  return new found(document, retryAfter);
}

/** Return the seconds of the Retry-After header, if there is one. */
export function retryAfterOf(headers: Headers): number | undefined {
  const value = headers.get("Retry-After")?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value);
  // A date as HTTP has it, for Date.parse reads nearly any text.
  const at = /^[A-Z][a-z]{2}, .* GMT$/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : Math.max(0, (at - Date.now()) / 1000);
}

function areFields(fields: unknown): boolean {
  return fields === undefined || (Array.isArray(fields) && fields.every((each) => typeof each === "object" && each));
}
