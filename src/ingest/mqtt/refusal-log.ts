/**
 * Tells the operator why clients are refused or cut off: those of MQTT 3.1.1 can't be told themselves.
 *
 * Law: one short line a minute for each reason, however many clients come; keys that stand where they should not never reach it.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { sessionLimits } from './limits.ts'
import type { Reason } from './reason.ts'

/** What is known of the client. */
export type Refused = {
  readonly address: string | undefined
  readonly clientId: string | undefined
  readonly username: string | undefined
}

/** What an operator does, or what happens to sound clients every day. */
const quiet: ReadonlySet<Reason> = new Set(['server_shutting_down', 'administrative_action', 'keep_alive_timeout'])

export class RefusalLog {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #lines = new Map<Reason, { readonly at: number; unsaid: number }>()

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock
    this.#logger = logger
  }

  refused(reason: Reason, message: string, { address, clientId, username }: Refused): void {
    if (quiet.has(reason)) return
    const now = this.#clock.monotonic()
    const last = this.#lines.get(reason)
    if (last !== undefined && now - last.at < sessionLimits.clientErrorLogMs) {
      last.unsaid += 1
      return
    }
    this.#lines.set(reason, { at: now, unsaid: 0 })
    const client = { address, clientId: shown(clientId), username: shown(username) }
    this.#logger.warn(
      { reason, why: shown(message), ...client, moreSinceLastLine: last?.unsaid ?? 0 },
      'an MQTT client is refused or cut off',
    )
  }
}

function shown(text: string | undefined): string | undefined {
  return text?.replaceAll(/ing_live_\w*/g, 'ing_live_[redacted]').slice(0, sessionLimits.clientErrorLogCharsMax)
}
