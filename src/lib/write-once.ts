import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { errorCode } from './files.ts'

/**
 * The text of a file that is written once and then only read, readable by its user alone. Whoever comes first makes it; a process
 * that comes at the same time reads the same text, whole.
 */
export async function writeOnce(path: string, make: () => string): Promise<string> {
  const known = await readText(path)
  if (known !== undefined) return known
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`
  await writeFile(draft, `${make()}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    // A hard link fails where the name is taken, and never shows a half-written file.
    await link(draft, path)
  } catch (error) {
    if (errorCode(error) !== 'EEXIST') throw error
  } finally {
    await unlink(draft)
  }
  const text = await readText(path)
  if (text === undefined) throw new Error(`${path} vanished while it was made`)
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
