/**
 * The adoption of this node's log by another machine: the files that it delivers have its id in their keys.
 *
 * Owns: `node/adoption`, with a line for each adoption, the last one last. Law: two machines that have the same log never write the same object,
 * but for markers, which the store takes once. So each adoption has an id of its own. One that is stopped and run again keeps it, because the
 * same files would stand in the bucket twice.
 */
import { type Files, writeDurably } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { adoptionPattern } from '#model/patterns.ts'

export type Adoption = {
  readonly id: string
  /** Ids of the adoptions before, whose files may be in the bucket without a marker. */
  readonly earlier: readonly string[]
}

/** Behind the id, once the adoption is over. A later one of a copy of this disk gets another id. */
const over = ' over'

/** Returns the last adoption of this log. Undefined if there was none. Throws UserError if the file is damaged. */
export async function readAdoption(files: Files, path: string): Promise<Adoption | undefined> {
  const { ids } = await read(files, path)
  const id = ids.at(-1)
  return id === undefined ? undefined : { id, earlier: ids.slice(0, -1) }
}

/** Gives this adoption an id, or continues one that was stopped. */
export async function beginAdoption({ files, random }: Pick<System, 'files' | 'random'>, path: string): Promise<void> {
  const { ids, isOver } = await read(files, path)
  if (isOver) await write(files, path, [...ids, random.bytes(4).toString('hex')], '')
}

/** Ends the adoption, if there is one that has not ended. */
export async function endAdoption(files: Files, path: string): Promise<void> {
  const { ids, isOver } = await read(files, path)
  if (!isOver) await write(files, path, ids, over)
}

function write(files: Files, path: string, ids: readonly string[], end: string): Promise<void> {
  return writeDurably(files, path, Buffer.from(`${ids.join('\n')}${end}\n`))
}

async function read(files: Files, path: string): Promise<{ readonly ids: readonly string[]; readonly isOver: boolean }> {
  const text = await readTrimmed(files, path)
  if (text === undefined) return { ids: [], isOver: true }
  const isOver = text.endsWith(over)
  const ids = (isOver ? text.slice(0, -over.length) : text).split('\n')
  if (ids.every((id) => adoptionPattern.test(id))) return { ids, isOver }
  throw new UserError(`${path} is damaged: it has no ids of adoptions; delete it, and adopt the log again (inlet node --adopt)`)
}
