import { Buffer } from 'node:buffer'
import { basename, dirname } from 'node:path'
import { createFile, errorCode, type Files, removeLeftovers } from './files.ts'
import type { System } from './system.ts'
import { UserError } from './user-error.ts'

/**
 * Returns the text of a file. Creates the file with the text from `generate` if it is missing. Only its owner can read it.
 * Concurrent processes all get the same complete text, and it is durable.
 */
export async function readOrCreate(files: Files, path: string, generate: () => string): Promise<string> {
  await files.makeDirectory(dirname(path))
  const known = (await readTrimmed(files, path)) ?? (await create(files, path, generate))
  // Also if another process created it and may have been stopped before it synced the name.
  await files.syncDirectory(dirname(path))
  return known
}

/** As `readOrCreate`, for 32 random bytes. */
export function readOrCreateSecret({ files, random }: Pick<System, 'files' | 'random'>, path: string): Promise<string> {
  return readOrCreate(files, path, () => random.bytes(32).toString('base64url'))
}

/** Returns the text of a small file without spaces around it, or undefined if the file is missing. */
export async function readTrimmed(files: Files, path: string): Promise<string | undefined> {
  try {
    const bytes = await files.read(path)
    return bytes && Buffer.from(bytes).toString().trim()
  } catch (error) {
    // The error of the system does not have the path.
    if (errorCode(error) === 'EISDIR')
      throw new UserError(`${path} is a directory, but has to be a file: move it away, and restore the file if there was one`)
    throw error
  }
}

async function create(files: Files, path: string, generate: () => string): Promise<string> {
  const draft = files.temporaryPath(path)
  await createFile(files, draft, Buffer.from(`${generate()}\n`), true)
  try {
    // Creating a hard link fails if the name exists, and never exposes a half-written file.
    await files.link(draft, path)
  } catch (error) {
    // ENOENT: another process has created the file, and took the draft for one that a kill left.
    if (!['EEXIST', 'ENOENT'].includes(errorCode(error) ?? '')) throw error
  } finally {
    await files.remove(draft)
  }
  // Drafts of processes that were killed, or that now find the file.
  await removeLeftovers(files, dirname(path), (name) => name === basename(path))
  const text = await readTrimmed(files, path)
  if (text === undefined) throw new Error(`${path} was removed while it was created`)
  return text
}
