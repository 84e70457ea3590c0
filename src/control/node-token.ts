import { randomBytes } from 'node:crypto'
import { link, mkdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * The secret that control and nodes share, made at the first start. Whoever comes first makes it, readable only by its user; a
 * process that comes at the same time reads the same one, whole.
 */
export async function readOrMakeNodeToken(path: string): Promise<string> {
  const known = await readToken(path)
  if (known !== undefined) return known
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.tmp`
  await writeFile(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flag: 'wx', flush: true })
  try {
    // A hard link fails where the name is taken, and never shows a half-written file.
    await link(draft, path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
  } finally {
    await unlink(draft)
  }
  const token = await readToken(path)
  if (token === undefined) throw new Error(`${path} holds no node token`)
  return token
}

async function readToken(path: string): Promise<string | undefined> {
  try {
    const token = (await readFile(path, 'utf8')).trim()
    if (token.length < 32) throw new Error(`${path} holds no node token: it is shorter than 32 characters`)
    return token
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}
