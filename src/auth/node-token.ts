import { randomBytes } from 'node:crypto'
import { readOrCreate } from '#lib/read-or-create.ts'

/** The secret that control and the nodes of one data directory share, made at the first start. */
export async function readOrMakeNodeToken(path: string): Promise<string> {
  const token = await readOrCreate(path, () => randomBytes(32).toString('base64url'))
  if (token.length < 32) throw new Error(`${path} holds no node token: it is shorter than 32 characters`)
  return token
}
