// Pages through the drops with openapi-fetch and the types of openapi-typescript, then reads two errors.

import createClient from "openapi-fetch";
import type { paths } from "./dropdex.js";

const { DROPDEX_URL: baseUrl, DROPDEX_KEY: key } = process.env;
const client = createClient<paths>({
  baseUrl,
  headers: { Authorization: `Bearer ${key}` },
  querySerializer: { array: { style: "form", explode: false } },
});

const page = (cursor?: string) =>
  client.GET("/api/v1/drops", { params: { query: { tld: ["com", "org"], limit: 200, cursor } } });

async function refused() {
  const { error, response } = await page("x");
  return { ...error, status: response.status };
}

const names: (string | undefined)[] = [];
let cursor: string | undefined;
do {
  const { data, error } = await page(cursor);
  if (!data) throw new Error(error?.error);
  names.push(...data.drops.map((drop) => drop.name));
  cursor = data.nextCursor ?? undefined;
} while (cursor);
console.log(JSON.stringify({ names, errors: [await refused(), await refused()] }));
