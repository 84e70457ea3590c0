/**
 * Takes the place of a node whose disk, or a copy of it, is here: control gives its id a new credential and refuses the one before.
 *
 * Law: nothing of the adopted log is sealed or delivered before control knows. So control refuses a machine that still runs on the other copy,
 * and that machine ends its work at its next call.
 */

import { printNodeCredential } from '#auth/node-credential.ts'
import type { Fence } from '#errors.ts'
import { type Clock, sleep } from '#lib/clock.ts'
import { errorMessage } from '#lib/error-message.ts'
import type { Random } from '#lib/random.ts'
import { Backoff } from '#lib/retry.ts'
import type { Logger } from '#lib/telemetry.ts'
import { UserError } from '#lib/user-error.ts'
import { type Control, ControlError } from '#node/control-client.ts'
import type { NodeCredential } from '#node/credential.ts'

export type TakeOverOptions = {
  readonly control: Pick<Control, 'establishTrust' | 'fetchCommittedSeqs' | 'adopt'>
  readonly credential: Pick<NodeCredential, 'nodeId' | 'secret' | 'previousSecret' | 'replace'>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

const waitMsMax = 60_000
const delays = { delayMsMin: 500, delayMsMax: 5_000 }
const unreached =
  'control was not reached, and it must refuse the machine that had this log before anything of it is delivered; try again'
const adoptedElsewhere =
  'another machine has adopted the log of this node since this copy was made: go on there; if it is lost, release the id (inlet nodes release) and try again'

/**
 * Waits for control, a minute at most. A credential that control does not know is left to the registration, which joins again. Throws
 * UserError if the minute is over, or another machine has adopted the log.
 */
export async function takeOver(options: TakeOverOptions): Promise<void> {
  const { credential, clock, random, logger } = options
  const backoff = new Backoff({ ...delays, random })
  const signal = clock.timeout(waitMsMax)
  let hasReplaced = false
  for (let attempt = 0; ; attempt += 1) {
    try {
      const standing = await askStanding(options, signal)
      if (standing === 'node_adopted') throw new UserError(adoptedElsewhere)
      if (standing !== 'accepted') return await replaceBefore(options, signal)
      // The answer to an earlier attempt was lost.
      if (hasReplaced) return
      await credential.replace()
      hasReplaced = true
      return await replaceBefore(options, signal)
    } catch (error) {
      if (error instanceof UserError) throw error
      if (signal.aborted) throw new UserError(`${unreached}: ${errorMessage(error)}`)
      if (attempt === 0)
        logger.warn({ reason: errorMessage(error) }, 'the adoption waits for control, which must refuse the machine before')
      await sleep(clock, backoff.next(), signal)
    }
  }
}

/** Has control accept the present credential instead of the one before. */
async function replaceBefore({ control, credential, logger }: TakeOverOptions, signal: AbortSignal): Promise<void> {
  const { nodeId: node_id, secret, previousSecret } = credential
  if (previousSecret === null) return
  try {
    await control.adopt({ secret }, printNodeCredential(node_id, previousSecret), signal)
    logger.notice({ node_id }, 'control refuses the machine that had this log before')
  } catch (error) {
    if (!(error instanceof ControlError)) throw error
    if (error.fence === 'node_adopted') throw new UserError(adoptedElsewhere)
    // A control of the release before has no such call. A credential that control does not know proves nothing.
    if (error.status !== 401 && error.status !== 404) throw error
  }
}

/** Asks control whether it accepts the credential, and why not. */
export async function askStanding(
  { control, credential }: Pick<TakeOverOptions, 'control' | 'credential'>,
  signal: AbortSignal,
): Promise<'accepted' | 'unknown' | Fence> {
  await control.establishTrust(signal)
  try {
    await control.fetchCommittedSeqs(credential.nodeId, signal)
    return 'accepted'
  } catch (error) {
    if (error instanceof ControlError && error.status === 401) return error.fence ?? 'unknown'
    throw error
  }
}
