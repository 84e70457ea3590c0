import { randomBytes } from 'node:crypto'
import { readOrCreate } from '#lib/read-or-create.ts'

/** Returns the secret that control and the nodes of a data directory share. The first start creates it. */
export async function readOrCreateNodeToken(path: string): Promise<string> {
  const token = await readOrCreate(path, () => randomBytes(32).toString('base64url'))
  if (token.length < 32)
    throw new Error(`${path} is not a valid node token: it has fewer than 32 characters; delete the file to create a new one`)
  return token
}
