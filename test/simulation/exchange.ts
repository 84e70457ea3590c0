/**
 * One request at the gate, as the handler of HTTP brings it: its head, then its body, then one outcome.
 *
 * Law: a client that has left learns nothing more.
 */
import type { Admitted, Responder } from '#ingest/gate/admitted.ts'
import type { Stored } from '#ingest/gate/receipt.ts'
import type { Rejection } from '#ingest/gate/rejection.ts'
import type { KeySender, Sender } from '#ingest/gate/sender.ts'
import { Intake } from '#ingest/http/body/intake.ts'
import { MiB } from '#lib/bytes.ts'
import { encodeEnvelope } from '#model/record-envelope.ts'
import { secretOf } from '../support/ingest-node.ts'
import type { Ingest } from './node.ts'

export type Request = {
  readonly endpoint: string
  readonly body: Buffer
  readonly key: string | undefined
}

/** Nobody counts connections: the gate sees one that always has a place. */
export function senderTo(endpoint: string, protocol: Sender['protocol']): KeySender {
  return {
    ...{ protocol, host: undefined, query: `endpoint=${endpoint}`, remote: { address: '192.0.2.1' } },
    slot: { claim: () => undefined, force: () => undefined },
    authenticate: (verifier) => verifier.verifyKey(secretOf('a'), undefined),
  }
}

export type ExchangeOptions = {
  readonly ingest: Ingest
  readonly request: Request
  /** How long the body takes. */
  readonly bodyMs: number
  /** The gate appends, or looks for an earlier append. */
  readonly onAppending: () => void
  /** The gate must say it once. Not called once the client has left. */
  readonly onOutcome: (outcome: Stored | Rejection) => void
}

export class Exchange implements Responder {
  readonly #options: ExchangeOptions
  #admitted: Admitted | undefined
  #hasLeft = false

  constructor(options: ExchangeOptions) {
    this.#options = options
    const { ingest, bodyMs } = options
    ingest.listener.begin(this)
    try {
      const intake = this.#admit()
      ingest.life.after(bodyMs, 'body', () => this.#receive(intake))
    } catch (error) {
      this.reject(error)
    }
  }

  /** The client is gone. What it sent may be stored still. */
  leave(): void {
    this.#hasLeft = true
    this.#admitted?.end()
    this.#options.ingest.listener.end(this)
  }

  appending(): void {
    this.#options.onAppending()
  }

  appended(): void {}

  awaitingCommit(): void {}

  acknowledge(stored: Stored): void {
    this.#end(stored)
  }

  reject(error: unknown): void {
    this.#end(this.#options.ingest.gate.rejectionOf(error))
  }

  #admit(): Intake {
    const { ingest, request } = this.#options
    const admitted = ingest.gate.admit(senderTo(request.endpoint, 'http'))
    this.#admitted = admitted
    admitted.announce(request.body.length)
    const intake: Intake = new Intake({
      format: { type: 'lines', encoding: 'identity' },
      declaredBytes: request.body.length,
      maxBytes: MiB,
      moreBytes: this.#envelope().byteLength,
      memory: admitted,
      done: (error) => (error === undefined ? this.#store(admitted, intake) : this.reject(error)),
    })
    return intake
  }

  #receive(intake: Intake): void {
    if (this.#hasLeft) return
    intake.push(this.#options.request.body)
    intake.end()
  }

  #store(admitted: Admitted, body: Intake): void {
    admitted.append({ body, envelope: this.#envelope(), key: this.#options.request.key }, this)
  }

  #envelope(): Uint8Array {
    const { key } = this.#options.request
    return encodeEnvelope({ protocol: 'http', ...(key === undefined ? {} : { idempotency_key: key }) })
  }

  #end(outcome: Stored | Rejection): void {
    this.#admitted?.end()
    if (!this.#hasLeft) this.#options.onOutcome(outcome)
    this.#options.ingest.listener.end(this)
  }
}
