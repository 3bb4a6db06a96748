import { type Call, document, nothing, page, type Page, type Request } from "../calls.js";
import { Pages } from "../pages.js";
import type { Sender } from "../sending.js";
import type { CallOptions, Operation, Result, Row } from "../types.js";

type Method = Call<unknown>["method"];

/** The calls of one resource. */
export class Resource {
  constructor(protected readonly sender: Sender) {}

  /** Send a call that is answered with a document. */
  protected call<O extends Operation>(
    method: Method,
    path: string,
    request: Request,
    options: CallOptions,
  ): Promise<Result<O>> {
    return this.sender.send<Result<O>>({ method, path, ...request, parse: document }, options);
  }

  /** Send a call that is answered with nothing. */
  protected done(method: Method, path: string, request: Request, options: CallOptions): Promise<void> {
    return this.sender.send<void>({ method, path, ...request, parse: nothing }, options);
  }

  protected pages<O extends Operation>(path: string, query: object, options: CallOptions): Pages<Row<O>> {
    const first: Call<Page<Row<O>>> = { method: "GET", path, query: { ...query }, parse: page };
    return new Pages(this.sender, first, options);
  }
}
