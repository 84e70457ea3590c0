import { randomBytes } from 'node:crypto'
import { readOrCreate } from '#lib/read-or-create.ts'
import { UserError } from '#lib/user-error.ts'

/** Returns the secret that control and the nodes of a data directory share. The first start creates it. */
export async function readOrCreateNodeToken(path: string): Promise<string> {
  const token = await readOrCreate(path, () => randomBytes(32).toString('base64url'))
  if (token.length < 32)
    throw new UserError(
      `${path} is ${token === '' ? 'empty' : 'not a node token: it has fewer than 32 characters'}. Restore it, or delete it on every machine and start control first, which creates a new one`,
    )
  return token
}
