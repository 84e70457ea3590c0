import { parseJoinToken } from '#auth/join-token.ts'
import { readOrCreateNodeToken } from '#auth/token-files.ts'
import { readTrimmed } from '#lib/read-or-create.ts'
import type { System } from '#lib/system.ts'
import { UserError } from '#lib/user-error.ts'

type JoinSettings = {
  readonly joinToken: string | null
  readonly nodeToken: string | null
  readonly controlUrl: string | null
  readonly paths: { readonly nodeToken: string; readonly nodeCredential: string }
}

/** Returns what a node presents to join: null for one of a control process elsewhere that has its credential already. */
export async function readJoinToken(
  { joinToken, nodeToken, controlUrl, paths }: JoinSettings,
  system: Pick<System, 'files' | 'random'>,
): Promise<{ readonly secret: string | null; readonly pin: string | null }> {
  const parsed = joinToken === null ? undefined : parseJoinToken(joinToken)
  if (parsed !== undefined) return parsed
  if (nodeToken !== null) return { secret: nodeToken, pin: null }
  await assertCanJoin({ joinToken, nodeToken, controlUrl, paths }, system)
  if (controlUrl === null || (await readTrimmed(system.files, paths.nodeToken)) !== undefined)
    return { secret: await readOrCreateNodeToken(system, paths.nodeToken), pin: null }
  return { secret: null, pin: null }
}

/** Throws UserError for a node of a control process elsewhere that has neither a token nor a credential. */
export async function assertCanJoin(
  { joinToken, nodeToken, controlUrl, paths }: JoinSettings,
  { files }: Pick<System, 'files'>,
): Promise<void> {
  if (joinToken !== null || nodeToken !== null || controlUrl === null) return
  for (const path of [paths.nodeToken, paths.nodeCredential]) if ((await readTrimmed(files, path)) !== undefined) return
  throw new UserError(
    'INLET_JOIN_TOKEN (--join-token): required with INLET_CONTROL_URL until this node has joined; create a token where control runs: inlet join-tokens create',
  )
}
