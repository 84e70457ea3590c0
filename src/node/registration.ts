/**
 * Registers this node with control.
 *
 * Owns: joining with a join token or the join secret where control does not know the credential of this node, and saying so in one line.
 * Does not own: when to register and how often to retry (snapshot-feed.ts).
 * Law: only one process of a node does this.
 */
import type { Logger } from '#lib/telemetry.ts'
import type { Joined, Register } from '#model/node-protocol.ts'
import { type Control, ControlError } from './control-client.ts'
import { UnknownRootError } from './control-root.ts'
import type { NodeCredential } from './credential.ts'

export type RegistrationOptions = {
  readonly client: Control
  readonly credential: NodeCredential
  /** Secret of the join token or the installation. Null if there is none: then a lost credential cannot be replaced. */
  readonly joinSecret: string | null
  readonly node: Register
  readonly logger: Logger
}

const lostCredential =
  'control does not accept the credential of this node: it was revoked, the node was removed, or the database is an older copy'
const notJoined = 'control does not know this node: it has not joined yet'
const setRegion = 'set INLET_REGION to the region of the token, or create another one (inlet join-tokens create)'
const setRegionBack = 'set INLET_REGION to the region that this node joined'
const anotherToken = 'create a join token (inlet join-tokens create), set INLET_JOIN_TOKEN to it, and start again'

/**
 * Control does not let this node join. `token_missing`: there is no join token or join secret; `token_refused`: control does not accept it;
 * `taken`: control has another credential for the id. The message says what to do.
 */
export class JoinRefused extends Error {
  override readonly name = 'JoinRefused'
  readonly reason: 'token_missing' | 'token_refused' | 'taken'

  constructor(reason: JoinRefused['reason'], message: string, options: ErrorOptions = {}) {
    super(message, options)
    this.reason = reason
  }
}

export class Registration {
  readonly #options: RegistrationOptions
  /** Last logged state, so that each state is logged once. */
  #logged = ''

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * `wasConfigured`: control accepted this node before. `isRunning`: it did so since the start of this process, which then does not join
   * again after a removal or a release.
   */
  async register(signal: AbortSignal, wasConfigured: boolean, isRunning = false): Promise<void> {
    const { client, credential, node, joinSecret, logger } = this.#options
    try {
      await this.#establishTrust(signal)
      await client.register(node, signal)
    } catch (error) {
      if (!isRefused(error)) throw error
      // 403: the credential is for another region than the one that this node is configured for.
      const isElsewhere = error.status === 403
      const { fence } = error
      if (fence === 'node_adopted' || (isRunning && (fence === 'node_removed' || fence === 'node_released'))) throw error
      const reason = isElsewhere || fence !== undefined ? error.detail : wasConfigured ? lostCredential : notJoined
      if (joinSecret === null) {
        this.#logOnce(`${reason}; ${isElsewhere ? `${setRegionBack}, or ` : ''}${anotherToken}`)
        throw error
      }
      await this.join(signal).catch((joinError: unknown) => {
        if (!(joinError instanceof JoinRefused)) throw joinError
        this.#logOnce(joinError.message)
        throw fence === undefined ? (joinError.cause ?? joinError) : error
      })
      if (wasConfigured) logger.warn({ node_id: credential.nodeId }, `${reason}; it has registered again`)
      else logger.info({ node_id: credential.nodeId }, 'node registered')
    }
    this.#logged = ''
  }

  async #establishTrust(signal: AbortSignal): Promise<void> {
    try {
      await this.#options.client.establishTrust(signal)
    } catch (error) {
      if (error instanceof UnknownRootError) this.#logOnce(error.message)
      throw error
    }
  }

  /** Joins with the join token or the join secret. Throws JoinRefused. */
  async join(signal: AbortSignal): Promise<void> {
    const { credential, joinSecret } = this.#options
    if (joinSecret === null) throw new JoinRefused('token_missing', anotherToken)
    let answer = await this.#ask(joinSecret, signal)
    if (!answer.joined && answer.reason === 'revoked') {
      await credential.replace()
      answer = await this.#ask(joinSecret, signal)
    }
    if (answer.joined) return
    const { nodeId } = credential
    throw new JoinRefused(
      'taken',
      `control has another credential for the id of this node, ${nodeId}; if no other node uses the id, release it: inlet nodes release ${nodeId}`,
    )
  }

  async #ask(joinSecret: string, signal: AbortSignal): Promise<Joined> {
    const { client, credential, node } = this.#options
    const { nodeId: node_id, secret, previousSecret: previous_secret } = credential
    try {
      return await client.join({ ...node, node_id, secret, previous_secret }, joinSecret, signal)
    } catch (cause) {
      if (!isRefused(cause)) throw cause
      const next = cause.status === 403 ? setRegion : anotherToken
      throw new JoinRefused('token_refused', `control does not let this node join: ${cause.detail}; ${next}`, { cause })
    }
  }

  #logOnce(text: string): void {
    if (this.#logged !== text) this.#options.logger.error({ node_id: this.#options.credential.nodeId }, text)
    this.#logged = text
  }
}

/** Whether control does not accept the credential or the join token, or not for this region. */
export function isRefused(error: unknown): error is ControlError {
  return error instanceof ControlError && (error.status === 401 || error.status === 403)
}
