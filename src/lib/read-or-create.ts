import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from './files.ts'

/**
 * Returns the text of a file. Creates the file with the text from `generate` if it is missing. Only its owner can read it.
 * Concurrent processes all get the same complete text.
 */
export async function readOrCreate(path: string, generate: () => string): Promise<string> {
  const known = await readText(path)
  if (known !== undefined) return known
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`
  await writeFile(draft, `${generate()}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    // Creating a hard link fails if the name exists, and never exposes a half-written file.
    await link(draft, path)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
  const text = await readText(path)
  if (text === undefined) throw new Error(`${path} was removed while it was created`)
  return text
}

async function readText(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw error
  }
}
