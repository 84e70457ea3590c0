/**
 * The adoption of this node's log by another machine: the files that it delivers have its id in their keys.
 *
 * Owns: `node/adoption`. Law: two machines that have the same log never write the same object, but for markers, which the store takes once. So
 * each adoption has an id of its own. One that is stopped and run again keeps it, because the same files would stand in the bucket twice.
 */
import { type Files, writeDurably } from '#lib/files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'
import { adoptionPattern } from '#model/patterns.ts'

/** Behind the id, once the adoption is over. A later one of a copy of this disk gets another id. */
const over = ' over'

/** Returns the id of the last adoption of this log. Undefined if there was none. Throws UserError if the file is damaged. */
export async function readAdoption(files: Files, path: string): Promise<string | undefined> {
  return (await read(files, path))?.id
}

/** Gives this adoption an id, or continues one that was stopped. */
export async function beginAdoption({ files, random }: Pick<System, 'files' | 'random'>, path: string): Promise<void> {
  if ((await read(files, path))?.isOver === false) return
  await writeDurably(files, path, Buffer.from(`${random.bytes(4).toString('hex')}\n`))
}

/** Ends the adoption, if there is one that has not ended. */
export async function endAdoption(files: Files, path: string): Promise<void> {
  const adoption = await read(files, path)
  if (adoption?.isOver === false) await writeDurably(files, path, Buffer.from(`${adoption.id}${over}\n`))
}

async function read(files: Files, path: string): Promise<{ readonly id: string; readonly isOver: boolean } | undefined> {
  const text = await readTrimmed(files, path)
  if (text === undefined) return undefined
  const isOver = text.endsWith(over)
  const id = isOver ? text.slice(0, -over.length) : text
  if (adoptionPattern.test(id)) return { id, isOver }
  throw new UserError(
    `${path} is damaged: it is not the id of an adoption; delete it, and adopt the log again (inlet node --adopt)`,
  )
}
