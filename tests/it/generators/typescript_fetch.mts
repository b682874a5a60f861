// Pages through the drops with the client that openapi-generator generated, then reads two errors.

import { Configuration, ModelErrorFromJSON, NamesApi, ResponseError } from "./client/index.js";

const { DROPDEX_URL: basePath, DROPDEX_KEY: accessToken } = process.env;
const api = new NamesApi(new Configuration({ basePath, accessToken }));
const page = (cursor?: string) => api.listDrops({ tld: ["com", "org"], limit: 200, cursor });

async function refused() {
  try {
    await page("x");
  } catch (error) {
    if (!(error instanceof ResponseError)) throw error;
    return { ...ModelErrorFromJSON(await error.response.json()), status: error.response.status };
  }
}

const names: (string | undefined)[] = [];
let cursor: string | undefined;
do {
  const drops = await page(cursor);
  names.push(...drops.drops.map((drop) => drop.name));
  cursor = drops.nextCursor ?? undefined;
} while (cursor);
console.log(JSON.stringify({ names, errors: [await refused(), await refused()] }));
