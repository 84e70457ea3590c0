/**
 * Tells the next start of control that `inlet restore` put back an older copy of the database on purpose.
 *
 * Owns: the file, and what follows from it in the database. Law: it takes effect once, also if the start is interrupted.
 */
import { z } from 'zod'
import { type Files, writeDurably } from '#lib/files.ts'
import { parseJson } from '#lib/json.ts'
import { UserError } from '#lib/user-error.ts'
import { Timestamp } from '#model/timestamp.ts'
import { beginGeneration, currentPosition, inNewEpoch } from '../cluster/epoch.ts'
import type { Store } from '../store.ts'
import { noteMissingCommits } from './missing-commits.ts'

const Restored = z.strictObject({
  generation: z.int().min(1),
  begun_at: Timestamp,
  /** The generation of the restored database; missing until a start has read it. It may be later than `generation` by another clock. */
  before: z.int().min(0).optional(),
})
type Restored = z.infer<typeof Restored>

export async function writeRestored(
  files: Files,
  path: string,
  { begun_at }: { readonly begun_at: string },
  now: number,
): Promise<void> {
  await write(files, path, { generation: now, begun_at })
}

async function write(files: Files, path: string, restored: Restored): Promise<void> {
  await writeDurably(files, path, Buffer.from(`${JSON.stringify(restored)}\n`))
}

/** Begins a generation for a restored database, and notes that it may lack commits. Returns whether it was restored. Throws a UserError. */
export async function applyRestore(store: Store, files: Files, path: string, now: number): Promise<boolean> {
  const bytes = await files.read(path)
  if (bytes === undefined) return false
  const { data } = Restored.safeParse(parseJson(Buffer.from(bytes).toString('utf8')))
  if (data === undefined) throw new UserError(`${path} is damaged: remove it, and run inlet database accept`)
  const { generation } = await currentPosition(store.db)
  const { before = generation } = data
  // Written first: a start that is interrupted must not begin another generation.
  if (data.before === undefined) await write(files, path, { ...data, before })
  if (generation === before)
    await inNewEpoch(store, async (db) => {
      await beginGeneration(db, data.generation)
      await noteMissingCommits(db, null, Date.parse(data.begun_at), now)
    })
  await files.remove(path)
  return true
}
