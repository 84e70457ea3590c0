import { z } from 'zod'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { Finding } from '#model/scrub.ts'
import { Timestamp } from '#model/timestamp.ts'

/** A summary of one pass. */
const Pass = z.object({
  started_at: Timestamp,
  completed_at: Timestamp,
  segments: z.int(),
  commits: z.int(),
  files: z.int(),
  read_bytes: z.int(),
})
export type Pass = z.infer<typeof Pass>

/** State kept over restarts: a pass may take longer than a process lives. */
const ScrubState = z.object({
  due_at: Timestamp,
  /** The pass in progress. Its endpoints up to `after` are done, and its own findings are `found`. */
  running: z
    .object({
      started_at: Timestamp,
      after: z.string().nullable(),
      found: z.array(Finding),
      unlisted: z.int(),
      tally: z.object({ segments: z.int(), commits: z.int(), files: z.int(), read_bytes: z.int() }),
    })
    .nullable(),
  completed: Pass.nullable(),
  /** Findings of the last completed pass. */
  findings: z.array(Finding),
  /** Its findings that are not listed because there are so many. */
  unlisted: z.int(),
})
export type ScrubState = z.infer<typeof ScrubState>

/** Returns undefined if there is none, or it is damaged: a pass then starts anew, and finds everything again. */
export async function readScrubState(files: Files, path: string): Promise<ScrubState | undefined> {
  const bytes = await files.read(path).catch(() => undefined)
  return ScrubState.safeParse(parseJson(Buffer.from(bytes ?? []).toString('utf8'))).data
}

export async function writeScrubState(files: Files, path: string, state: ScrubState): Promise<void> {
  await writeDurably(files, path, Buffer.from(`${JSON.stringify(state)}\n`))
}
