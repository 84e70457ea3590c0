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
import { JoinRefused, type Registration } from '#node/registration.ts'

export type TakeOverOptions = {
  readonly control: Pick<Control, 'establishTrust' | 'fetchCommittedSeqs' | 'adopt'>
  readonly credential: Pick<NodeCredential, 'nodeId' | 'secret' | 'previousSecret' | 'replace'>
  readonly registration: Pick<Registration, 'join'>
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Ends the wait for control. Rejects with its reason. */
  readonly stopping: AbortSignal
}

type Standing = 'accepted' | 'unknown' | Fence

const waitMsMax = 60_000
const delays = { delayMsMin: 500, delayMsMax: 5_000 }
const unreached =
  'control was not reached, and it must refuse the machine that had this log before anything of it is delivered; try again'

/**
 * Returns once control accepts this machine in the place of the node, and no other one. Waits for control, a minute at most. Throws UserError
 * if the minute is over, or control refuses this machine.
 */
export async function takeOver(options: TakeOverOptions): Promise<void> {
  const { clock, random, logger, stopping } = options
  const backoff = new Backoff({ ...delays, random })
  const signal = AbortSignal.any([clock.timeout(waitMsMax), stopping])
  const claim = new Claim(options)
  for (let attempt = 0; ; attempt += 1) {
    try {
      while (!(await claim.advance(signal)));
      return
    } catch (error) {
      stopping.throwIfAborted()
      if (error instanceof UserError) throw error
      if (signal.aborted) throw new UserError(`${unreached}: ${errorMessage(error)}`)
      if (attempt === 0)
        logger.warn({ reason: errorMessage(error) }, 'the adoption waits for control, which must refuse the machine before')
      await sleep(clock, backoff.next(), signal)
    }
  }
}

/** The claim of this machine on the id of the node. Each step may be repeated: its answer may be lost. */
class Claim {
  readonly #options: TakeOverOptions
  /** Whether the present secret was made for this adoption, so that no other machine has it. */
  #isOwn = false
  /** Why control refuses the secret before; undefined if it was not asked. */
  #previousStanding: Standing | undefined

  constructor(options: TakeOverOptions) {
    this.#options = options
  }

  /** Takes the next step. Returns whether there is none left. Throws UserError if control refuses this machine. */
  async advance(signal: AbortSignal): Promise<boolean> {
    const { credential } = this.#options
    const standing = await askStanding(this.#options, signal)
    if (standing === 'accepted') {
      if (this.#isOwn) return true
      await credential.replace()
      this.#previousStanding = undefined
      await this.#replaceBefore(signal)
    } else if (standing === 'unknown' && credential.previousSecret !== null && this.#previousStanding === undefined) {
      await this.#replaceBefore(signal)
    } else {
      await this.#join(standing, signal)
    }
    return false
  }

  /** Has control accept the present secret instead of the one before, which another machine may have. */
  async #replaceBefore(signal: AbortSignal): Promise<void> {
    const { control, credential, logger } = this.#options
    const { nodeId: node_id, secret, previousSecret } = credential
    this.#isOwn = true
    try {
      await control.adopt({ secret }, printNodeCredential(node_id, previousSecret ?? ''), signal)
      logger.notice({ node_id }, 'control refuses the machine that had this log before')
    } catch (error) {
      if (!(error instanceof ControlError) || error.status !== 401) throw error
      this.#previousStanding = error.fence ?? 'unknown'
    }
  }

  /**
   * Gets the id of a node that was removed, revoked or released. The secret may be that of other copies of the disk, so the next step replaces
   * it.
   */
  async #join(standing: Standing, signal: AbortSignal): Promise<void> {
    const { registration, credential, logger } = this.#options
    try {
      await registration.join(signal)
    } catch (error) {
      if (!(error instanceof JoinRefused)) throw error
      const reason = standing === 'unknown' ? (this.#previousStanding ?? standing) : standing
      throw new UserError(describeRefusal(error, reason, credential.nodeId))
    }
    this.#isOwn = false
    logger.notice({ node_id: credential.nodeId }, 'control accepts the node again')
  }
}

const reasons: Readonly<Record<Standing, string>> = {
  accepted: '',
  unknown: 'control does not know the credential of this node: its id was released, or the database is an older copy',
  node_removed: 'an operator removed this node',
  node_revoked: 'an operator revoked the credential of this node',
  node_released: 'an operator released the id of this node',
  node_adopted: 'another machine has adopted the log of this node since this copy was made',
}

/** Says why control refuses this machine, and what to do. */
export function describeRefusal({ reason, message }: JoinRefused, standing: Standing, nodeId: string): string {
  if (reason === 'token_refused') return message
  const release = `release the id (inlet nodes release ${nodeId}), and try again with a join token (inlet join-tokens create)`
  if (standing === 'node_adopted') return `${reasons.node_adopted}: go on there; if it is lost, ${release}`
  if (reason === 'token_missing') return `${reasons[standing]}; ${message}`
  return `control has another credential for the id of this node, ${nodeId}: that of the lost machine, or of another one that adopts its log. If inlet nodes list shows that no machine uses it, ${release}`
}

/** Asks control whether it accepts the credential, and why not. */
async function askStanding(
  { control, credential }: Pick<TakeOverOptions, 'control' | 'credential'>,
  signal: AbortSignal,
): Promise<Standing> {
  await control.establishTrust(signal)
  try {
    await control.fetchCommittedSeqs(credential.nodeId, signal)
    return 'accepted'
  } catch (error) {
    if (error instanceof ControlError && error.status === 401) return error.fence ?? 'unknown'
    throw error
  }
}
