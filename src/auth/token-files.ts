/** The secrets that an installation keeps in files, and that its processes share. */
import { readOrCreateSecret } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'

const charsMin = 32

type Machine = Pick<System, 'files' | 'random'>

/** Returns the secret that control and the nodes of a data directory share. The first start creates it. Throws UserError. */
export function readOrCreateNodeToken(system: Machine, path: string): Promise<string> {
  const remedy = 'Restore it, or delete it on every machine and start control first, which creates a new one'
  return readOrCreateToken(system, path, 'a node token', remedy)
}

/** Returns the secret of the operator of this installation. The first start of control creates it. Throws UserError. */
export function readOrCreateOperatorToken(system: Machine, path: string): Promise<string> {
  return readOrCreateToken(system, path, 'an operator token', 'Delete the file and start control, which creates a new one')
}

async function readOrCreateToken(system: Machine, path: string, what: string, remedy: string): Promise<string> {
  const token = await readOrCreateSecret(system, path)
  if (token.length >= charsMin) return token
  throw new UserError(`${path} is ${token === '' ? 'empty' : `not ${what}: it has fewer than ${charsMin} characters`}. ${remedy}`)
}
