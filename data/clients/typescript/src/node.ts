/** Files, which browsers do not have. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";

import type { Client, Schemas } from "./client.js";
import { DamagedFile } from "./errors.js";

/**
 * Downloads a dated file into a folder, unless it is there, and returns its path.
 *
 * An interrupted download is continued, also by a later call. The file has its name only once its
 * checksum is right.
 */
export async function download(
  client: Client,
  file: Schemas["ExportFile"],
  folder = ".",
): Promise<string> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, basename(file.name));
  if ((await sha256(path)) === file.sha256) return path;
  const part = `${path}.${file.sha256.slice(0, 16)}.part`;
  const out = await open(part, "a");
  try {
    const { size } = await out.stat();
    for await (const chunk of client.bytes(file, size)) await out.writeFile(chunk);
  } finally {
    await out.close();
  }
  if ((await sha256(part)) !== file.sha256) {
    await rm(part);
    throw new DamagedFile(`${file.name} has not the listed checksum; download it again`);
  }
  await rename(part, path);
  return path;
}

/** The checksum of a file; nothing if there is none. */
async function sha256(path: string): Promise<string | undefined> {
  const digest = createHash("sha256");
  try {
    for await (const chunk of createReadStream(path)) digest.update(chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return digest.digest("hex");
}
