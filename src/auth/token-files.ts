/** The secrets that an installation keeps in files, and that its processes share. */
import { readOrCreate } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'

const charsMin = 32

/** Returns the secret that control and the nodes of a data directory share. The first start creates it. Throws UserError. */
export async function readOrCreateNodeToken(system: Pick<System, 'files' | 'random'>, path: string): Promise<string> {
  const token = await readOrCreateToken(system, path)
  if (token.length >= charsMin) return token
  const problem = token === '' ? 'empty' : `not a node token: it has fewer than ${charsMin} characters`
  throw new UserError(
    `${path} is ${problem}. Restore it, or delete it on every machine and start control first, which creates a new one`,
  )
}

/** Returns the secret of the operator of this installation. The first start of control creates it. Throws UserError. */
export async function readOrCreateOperatorToken(system: Pick<System, 'files' | 'random'>, path: string): Promise<string> {
  const token = await readOrCreateToken(system, path)
  if (token.length >= charsMin) return token
  throw new UserError(
    `${path} is not an operator token: it has fewer than ${charsMin} characters. Delete the file and start control, which creates a new one`,
  )
}

function readOrCreateToken(system: Pick<System, 'files' | 'random'>, path: string): Promise<string> {
  return readOrCreate(system, path, () => system.random.bytes(32).toString('base64url'))
}
