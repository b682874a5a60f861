import { ApiError, DamagedFile, NetworkError } from "./errors.js";
import type { components, paths } from "./schema.js";

/** Bodies of requests and responses, by their names in the OpenAPI document. */
export type Schemas = components["schemas"];
type Method = "get" | "post" | "put" | "patch" | "delete";
/** Paths that support a method. */
type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, object> ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>;
type Parameters<O, K extends "path" | "query"> = O extends { parameters: infer A }
  ? K extends keyof A ? NonNullable<A[K]> : never
  : never;
/** Parameters of the query of a GET. */
export type Query<P extends PathOf<"get">> = Parameters<Operation<P, "get">, "query">;
type Body<O> = O extends { requestBody?: { content: infer C } } ? C[keyof C] : never;
type Content<R> = R extends { content: { "application/json": infer J } } ? J : string;
type Result<O> = O extends { responses: infer R }
  ? { [S in keyof R & (200 | 201 | 202)]: Content<R[S]> }[keyof R & (200 | 201 | 202)]
  : never;
interface Given<O> {
  path?: Parameters<O, "path">;
  query?: Parameters<O, "query">;
  /** Sent as JSON; a text is sent as it is, and needs a `Content-Type` among the headers. */
  body?: Body<O>;
  headers?: Record<string, string>;
}

export interface Options {
  /** Seconds without a byte from the server after which a connection counts as broken: 60. */
  timeout?: number;
  /** How often a request that fails for now is repeated: 5 times. */
  retries?: number;
  /** A longer `Retry-After` than these seconds is an error at once: 120. */
  maxWait?: number;
  /** Called before each repeated request. */
  onRetry?: (failure: ApiError | NetworkError, seconds: number) => void;
  /** Ends all calls of the client. */
  signal?: AbortSignal;
}

const CHANGES = "/api/v1/changes";
/** Statuses after which the same request may succeed: a limit, or a server or proxy that is busy. */
const TEMPORARY = [429, 502, 503, 504];

/**
 * Calls a dropdex server with a key.
 *
 * A request that fails for now is repeated: after `Retry-After`, or with growing pauses.
 */
export class Client {
  readonly #url: string;
  readonly #key: string;
  readonly #options: Options;
  readonly #retries: number;

  constructor(url: string, key: string, options: Options = {}) {
    this.#url = url.replace(/\/+$/, "");
    this.#key = key;
    this.#options = options;
    this.#retries = options.retries ?? 5;
  }

  /** Iterates over the drop list. With `fields`, rows have only these members. */
  drops(query: Query<"/api/v1/drops"> = {}): AsyncGenerator<Schemas["Drop"]> {
    return this.rows("/api/v1/drops", "drops", { limit: 1000, ...query });
  }

  /** Iterates over the names that a search finds, up to 10,000. */
  search(query: Query<"/api/v1/search">): AsyncGenerator<Schemas["SearchResult"]> {
    return this.rows("/api/v1/search", "results", { limit: 100, ...query });
  }

  /** Iterates over the watched names. */
  watchlist(query: Query<"/api/v1/watchlist"> = {}): AsyncGenerator<Schemas["WatchEntry"]> {
    return this.rows("/api/v1/watchlist", "watchlist", { limit: 1000, ...query });
  }

  /** Watches up to 1,000 names. The result has the reason for each name that was refused. */
  watch(domainNames: string[]): Promise<Schemas["WatchBatch"]> {
    return this.request("post", "/api/v1/watchlist/batch", { body: { domainNames } });
  }

  /** Returns what is known about a name. A name that is not in the data raises a 404. */
  domain(name: string): Promise<Schemas["Dossier"]> {
    return this.request("get", "/api/v1/domain/{name}", { path: { name } });
  }

  /**
   * Iterates over the changes after number `since`, up to the newest one. Without `since`, it begins
   * with the oldest change that is kept.
   */
  changes(query: Query<typeof CHANGES> = {}): Changes {
    return new Changes(query.since ?? 0, (changes) => this.#pages(changes, query));
  }

  /**
   * Iterates over the changes after number `since`, and over future ones as they happen. Without
   * `since`, it begins with the next change. The iterator does not end: when the connection breaks or
   * the server restarts, it connects again and continues after the last change. An error of the API
   * that does not pass is thrown.
   */
  follow(query: Query<typeof CHANGES> = {}): Changes {
    return new Changes(query.since, (changes) => this.#stream(changes, query));
  }

  /** Returns the dated files, the newest first. */
  async files(
    kind?: "pipeline" | "changes",
    format?: "ndjson" | "csv" | "parquet",
  ): Promise<Schemas["ExportFile"][]> {
    const files: Schemas["ExportFile"][] = [];
    const listed = this.rows<Schemas["ExportFile"]>("/api/export/files", "files", { limit: 1000 });
    for await (const file of listed) {
      if (file.kind === (kind ?? file.kind) && file.format === (format ?? file.format)) {
        files.push(file);
      }
    }
    return files;
  }

  /**
   * The bytes of a dated file from an offset on, over as many connections as it takes. The caller
   * compares their checksum; `download` of `dropdex/node` does.
   */
  async *bytes(file: Schemas["ExportFile"], start = 0): AsyncGenerator<Uint8Array> {
    let [at, tag, failures] = [start, "", 0];
    while (at < file.bytes) {
      const headers: Record<string, string> = { Range: `bytes=${at}-` };
      if (tag) headers["If-Range"] = tag;
      const before = at;
      const { response, idle } = await this.#retry(() => this.#open("GET", file.url, { headers }));
      try {
        if (response.status !== 206) {
          throw new DamagedFile(`${file.name} has changed; list the files again`);
        }
        tag = response.headers.get("etag") ?? "";
        for await (const chunk of chunks(response, idle)) {
          at += chunk.length;
          yield chunk;
        }
      } catch (error) {
        if (!(error instanceof NetworkError)) throw error;
      } finally {
        idle.stop();
      }
      failures = at === before ? failures + 1 : 0;
      if (failures > this.#retries) throw new NetworkError(`${file.name}: the connection breaks`);
    }
  }

  /** Sends any request of the API and returns the body: JSON, or else text. */
  request<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    { path: values, query, body, headers }: Given<Operation<P, M>> = {},
  ): Promise<Result<Operation<P, M>>> {
    const value = (name: string) => encodeURIComponent(String((values as any)?.[name]));
    const filled = path.replace(/\{(\w+)\}/g, (_, name) => value(name));
    const sent = { ...headers };
    // The same in every attempt, so that the server runs the request once.
    if (method === "post") sent["Idempotency-Key"] ??= crypto.randomUUID();
    return this.#retry(async () => {
      const given = { query, body, headers: sent };
      const { response, idle } = await this.#open(method.toUpperCase(), filled, given);
      try {
        const type = response.headers.get("content-type") ?? "";
        return await received(type.startsWith("application/json") ? response.json() : response.text());
      } finally {
        idle.stop();
      }
    });
  }

  /** Iterates over the rows of any list, which pages have in `member`. */
  async *rows<T>(path: PathOf<"get">, member: string, query: object): AsyncGenerator<T> {
    let position = {};
    for (;;) {
      const given = { query: { ...query, ...position } } as any;
      const page: any = await this.request("get", path, given);
      const rows: T[] = page[member];
      yield* rows;
      if ("nextCursor" in page) {
        if (page.nextCursor === null) return;
        position = { cursor: page.nextCursor, offset: undefined };
      } else {
        const offset = page.offset + rows.length;
        if (rows.length === 0 || offset >= page.total) return;
        position = { offset };
      }
    }
  }

  async *#pages(changes: Changes, query: object): AsyncGenerator<Schemas["Change"]> {
    for (;;) {
      const given = { limit: 1000, ...query, since: changes.position };
      const page = await this.request("get", CHANGES, { query: given });
      for (const change of page.data) {
        changes.position = change.seq;
        yield change;
      }
      changes.position = page.next;
      if (page.next >= page.newest) return;
    }
  }

  async *#stream(changes: Changes, query: object): AsyncGenerator<Schemas["Change"]> {
    let pause = 3;
    changes.position ??= (await this.request("get", CHANGES, { query: { limit: 1 } })).newest;
    for (;;) {
      const last = String(changes.position);
      const headers = { Accept: "text/event-stream", "Last-Event-ID": last };
      const given = { query: { ...query, since: undefined }, headers };
      const connect = (): Promise<Opened> => this.#open("GET", CHANGES, given);
      const { response, idle } = await this.#retry(connect, Infinity);
      try {
        for await (const event of events(chunks(response, idle))) {
          if (event.retry) pause = Number(event.retry) / 1000;
          if (event.id) changes.position = Number(event.id);
          if (event.data) yield JSON.parse(event.data);
        }
      } catch (error) {
        // An event that the connection cuts is sent again after the next connection.
        if (!(error instanceof NetworkError)) throw error;
      } finally {
        idle.stop();
      }
      await this.#sleep(pause);
    }
  }

  /** Sends a request once. Throws `ApiError` for a status that is not 2xx. */
  async #open(
    method: string,
    path: string,
    { query, body, headers }: { query?: object; body?: unknown; headers: Record<string, string> },
  ): Promise<Opened> {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query ?? {})) {
      if (value !== undefined && value !== null) parameters.set(name, text(value));
    }
    const search = parameters.size ? `?${parameters}` : "";
    const idle = new Idle(this.#options.timeout ?? 60, this.#options.signal);
    const response = await received(
      fetch(this.#url + path + search, {
        method,
        headers: {
          Authorization: `Bearer ${this.#key}`,
          ...(body === undefined ? {} : { "Content-Type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        // The key must not be sent to another host.
        redirect: "error",
        signal: idle.signal,
      }),
    ).catch((error) => {
      idle.stop();
      throw error;
    });
    if (response.ok) return { response, idle };
    // A proxy may send another body than JSON.
    const failure = await response.json().catch(() => ({}));
    idle.stop();
    throw new ApiError(response.status, response.headers, failure);
  }

  /** Repeats a call up to `retries` times while its errors are temporary. */
  async #retry<T>(call: () => Promise<T>, retries = this.#retries): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        this.#options.signal?.throwIfAborted();
        const isTemporary =
          error instanceof NetworkError ||
          (error instanceof ApiError && TEMPORARY.includes(error.status));
        if (!isTemporary || attempt >= retries) throw error;
        const asked = error instanceof ApiError ? (error.retryAfter ?? 0) : 0;
        if (asked > (this.#options.maxWait ?? 120)) throw error;
        const pause = 0.5 * 2 ** Math.min(attempt, 6) * (0.5 + Math.random() / 2);
        this.#options.onRetry?.(error, Math.max(asked, pause));
        await this.#sleep(Math.max(asked, pause));
      }
    }
  }

  #sleep(seconds: number): Promise<void> {
    const { signal } = this.#options;
    return new Promise((resolve, reject) => {
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        if (signal?.aborted) reject(signal.reason);
        else resolve();
      };
      const timer = setTimeout(done, seconds * 1000);
      signal?.addEventListener("abort", done);
    });
  }
}

/** Changes in order. Store `position` after each one, and continue with it as `since`. */
export class Changes implements AsyncIterable<Schemas["Change"]> {
  readonly #begin: (changes: Changes) => AsyncGenerator<Schemas["Change"]>;

  /** `position` is the number of the last change that was returned, or passed over by the filters. */
  constructor(
    public position: number | undefined,
    begin: (changes: Changes) => AsyncGenerator<Schemas["Change"]>,
  ) {
    this.#begin = begin;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Schemas["Change"]> {
    return this.#begin(this);
  }
}

/** A response whose body is yet to be read. */
interface Opened {
  response: Response;
  idle: Idle;
}

/** Aborts a request when the server sends no byte for some seconds. */
class Idle {
  readonly #controller = new AbortController();
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly signal: AbortSignal;

  constructor(
    readonly seconds: number,
    signal: AbortSignal | undefined,
  ) {
    const own = this.#controller.signal;
    this.signal = signal ? AbortSignal.any([own, signal]) : own;
    this.restart();
  }

  restart() {
    clearTimeout(this.#timer);
    const why = new Error(`no byte for ${this.seconds} seconds`);
    this.#timer = setTimeout(() => this.#controller.abort(why), this.seconds * 1000);
  }

  stop() {
    clearTimeout(this.#timer);
  }
}

/** Waits for a part of a response; what breaks it is a `NetworkError`. */
async function received<T>(part: Promise<T>): Promise<T> {
  try {
    return await part;
  } catch (cause) {
    const { message, cause: deeper } = cause as Error;
    throw new NetworkError(deeper instanceof Error ? deeper.message : message, { cause });
  }
}

/** The pieces of a body. */
async function* chunks(response: Response, idle: Idle): AsyncGenerator<Uint8Array> {
  const reader = response.body!.getReader();
  try {
    for (;;) {
      idle.restart();
      const { done, value } = await received(reader.read());
      if (done) return;
      yield value;
    }
  } finally {
    // The caller may have stopped early.
    await reader.cancel().catch(() => {});
  }
}

/** The fields of each server-sent event; the server sends each field on a line of its own. */
async function* events(pieces: AsyncIterable<Uint8Array>) {
  const decoder = new TextDecoder();
  let rest = "";
  let event: Record<string, string> = {};
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const [, name, value] = line.match(/^([^:\r]*):? ?([^\r]*)/) ?? [];
      if (name) event[name] = value ?? "";
      else if (!line.startsWith(":")) {
        yield event;
        event = {};
      }
    }
  }
}

/** A value of a query: items of a list have commas between them. */
function text(value: unknown): string {
  if (!Array.isArray(value)) return String(value);
  return value.map((item) => (String(item).includes(",") ? `"${item}"` : item)).join(",");
}
