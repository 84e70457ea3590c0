import { randomBytes } from 'node:crypto'
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { errorCode, removeLeftovers, systemFiles } from './files.ts'
import { UserError } from './user-error.ts'

/**
 * Returns the text of a file. Creates the file with the text from `generate` if it is missing. Only its owner can read it.
 * Concurrent processes all get the same complete text, and it is durable.
 */
export async function readOrCreate(path: string, generate: () => string): Promise<string> {
  await systemFiles.makeDirectory(dirname(path))
  const known = (await readTrimmed(path)) ?? (await create(path, generate))
  // Also if another process created it and may have been stopped before it synced the name.
  await systemFiles.syncDirectory(dirname(path))
  return known
}

/** Returns the text of a small file without spaces around it, or undefined if the file is missing. */
export async function readTrimmed(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    // The error of the system does not have the path.
    if (errorCode(error) === 'EISDIR')
      throw new UserError(`${path} is a directory, but has to be a file: move it away, and restore the file if there was one`)
    throw error
  }
}

async function create(path: string, generate: () => string): Promise<string> {
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`
  await writeFile(draft, `${generate()}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    // Creating a hard link fails if the name exists, and never exposes a half-written file.
    await link(draft, path)
  } catch (error) {
    // ENOENT: another process has created the file, and took the draft for one that a kill left.
    if (!['EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) throw error
  } finally {
    await rm(draft, { force: true })
  }
  // Drafts of processes that were killed, or that now find the file.
  await removeLeftovers(systemFiles, dirname(path), (name) => name === basename(path))
  const text = await readTrimmed(path)
  if (text === undefined) throw new Error(`${path} was removed while it was created`)
  return text
}
