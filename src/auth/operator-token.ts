import { randomBytes } from 'node:crypto'
import { readOrCreate } from '#lib/read-or-create.ts'
import { UserError } from '#lib/user-error.ts'

/** Returns the secret of the operator of this installation. The first start of control creates it. */
export async function readOrCreateOperatorToken(path: string): Promise<string> {
  const token = await readOrCreate(path, () => randomBytes(32).toString('base64url'))
  if (token.length < 32)
    throw new UserError(
      `${path} is not an operator token: it has fewer than 32 characters. Delete the file and start control, which creates a new one`,
    )
  return token
}
