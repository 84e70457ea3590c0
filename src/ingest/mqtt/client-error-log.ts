/**
 * Logs why clients are refused or disconnected. Operators need this because MQTT 3.1.1 has no way to tell the client.
 *
 * Law: one short line per minute and reason, however many clients are affected. API keys never reach the log.
 */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/telemetry.ts'
import { sessionLimits } from './limits.ts'
import type { Reason } from './packets/reason.ts'

/** The known properties of a client. */
export type ClientIdentity = {
  readonly address: string | undefined
  readonly clientId: string | undefined
  readonly username: string | undefined
}

/** Caused by the operator, or normal for healthy clients. */
const unloggedReasons: ReadonlySet<Reason> = new Set(['server_shutting_down', 'administrative_action', 'keep_alive_timeout'])

export class ClientErrorLog {
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #lines = new Map<Reason, { readonly at: number; suppressed: number }>()

  constructor({ clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#clock = clock
    this.#logger = logger
  }

  add(reason: Reason, message: string, { address, clientId, username }: ClientIdentity): void {
    if (unloggedReasons.has(reason)) return
    const now = this.#clock.monotonic()
    const last = this.#lines.get(reason)
    if (last !== undefined && now - last.at < sessionLimits.clientErrorLogMs) {
      last.suppressed += 1
      return
    }
    this.#lines.set(reason, { at: now, suppressed: 0 })
    const client = { address, clientId: redact(clientId), username: redact(username) }
    this.#logger.warn(
      { reason, why: redact(message), ...client, suppressed: last?.suppressed || undefined },
      'MQTT client refused or disconnected',
    )
  }
}

function redact(text: string | undefined): string | undefined {
  return text?.replaceAll(/ing_live_\w*/g, 'ing_live_[redacted]').slice(0, sessionLimits.clientErrorLogCharsMax)
}
