// Does what client.py does, with the package for TypeScript.
import { ApiError, Client, DamagedFile, InvalidWebhook, verifyWebhook } from "dropdex";
import { download } from "dropdex/node";
import { text } from "node:stream/consumers";

const waits: number[] = [];
const { DROPDEX_URL = "", DROPDEX_KEY = "" } = process.env;
const client = new Client(DROPDEX_URL, DROPDEX_KEY, {
  onRetry: (_, seconds) => waits.push(seconds),
});
const print = (value: unknown) => console.log(JSON.stringify(value));

async function calls() {
  const [names, watched]: string[][] = [[], []];
  const tomorrow = { release_from: "tomorrow", release_to: "tomorrow" };
  for await (const drop of client.drops({ ...tomorrow, tld: ["com", "net"], limit: 90 })) {
    names.push(drop.name);
  }
  const error = await client.request("get", "/api/v1/drops", { query: { min_dqs: 101 } }).then(
    () => "none",
    (refused: unknown) => {
      if (!(refused instanceof ApiError)) throw refused;
      return [refused.status, refused.code, refused.parameter, refused.message];
    },
  );
  for (let at = 0; at < 15; at++) {
    await client.request("post", "/api/v1/watchlist", { body: { domainName: `watched${at}.com` } });
  }
  for await (const entry of client.watchlist({ limit: 5 })) watched.push(entry.domain);
  print({ names, error, watched, waits });
}

async function verify(secret: string) {
  const results: string[] = [];
  for (const { headers, body } of JSON.parse(await text(process.stdin))) {
    try {
      const message = await verifyWebhook(secret, headers, body);
      results.push(message.type);
    } catch (refused) {
      if (!(refused instanceof InvalidWebhook)) throw refused;
      results.push(`refused: ${refused.message}`);
    }
  }
  print(results);
}

switch (process.argv[2]) {
  case "calls":
    await calls();
    break;
  case "follow":
    for await (const change of client.follow({ since: 0 })) console.log(change.seq);
    break;
  case "verify":
    await verify(process.argv[3] ?? "");
    break;
  case "download": {
    const [newest] = await client.files("pipeline", "parquet");
    if (!newest) throw new Error("there is no file");
    const done = download(client, newest);
    print(await done.catch((error) => (error instanceof DamagedFile ? "damaged" : Promise.reject(error))));
  }
}
