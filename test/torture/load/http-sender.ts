/** Sends requests of NDJSON to one endpoint, one after the other, until it is stopped. Resends some that failed. */
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { type Ledger, type Outcome, recordText, type Sent } from '../ledger.ts'
import type { Random } from '../random.ts'

const compress = promisify(gzip)

/** A client gives up after this. The server may still store the request. */
const timeoutMs = 4_000

export type SenderOptions = {
  readonly ledger: Ledger
  readonly random: Random
  readonly ingestUrl: string
  readonly apiKey: string
  readonly endpointId: string
}

export interface Sender {
  /** Resolves when the last request has an outcome. */
  stop(): Promise<void>
}

export class HttpSender implements Sender {
  readonly #options: SenderOptions
  readonly #running: Promise<void>
  #isStopping = false
  /** The endpoint refused a request for good: it is unknown to the node, or being deleted. */
  isRefused = false

  constructor(options: SenderOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    await this.#running
  }

  async #run(): Promise<void> {
    const { ledger, random, endpointId } = this.#options
    while (!this.#isStopping) {
      const isLarge = random.isLuckyIn(40)
      const sent = ledger.create(endpointId, isLarge ? random.between(500, 2_000) : random.between(1, 40))
      const padding = 'x'.repeat(random.between(0, 200))
      const body = Array.from({ length: sent.size }, (_, index) => `${recordText(sent.id, index, padding)}\n`).join('')
      const resends = random.isLuckyIn(3) ? 2 : 0
      await this.#deliver(sent, body, { isCompressed: random.isLuckyIn(5), resends })
      await new Promise((resolve) => setTimeout(resolve, random.between(20, 140)))
    }
  }

  async #deliver(
    sent: Sent,
    body: string,
    { isCompressed, resends }: { readonly isCompressed: boolean; readonly resends: number },
  ): Promise<void> {
    const { ledger } = this.#options
    for (let left = resends; ; left -= 1) {
      const outcome = await ledger.attempt(sent, () => this.#post(body, isCompressed))
      if (outcome !== 'unknown' || left === 0) return
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  async #post(body: string, isCompressed: boolean): Promise<Exclude<Outcome, 'pending'>> {
    const { ingestUrl, apiKey, endpointId } = this.#options
    const response = await fetch(`${ingestUrl}/v1/ingest?endpoint=${endpointId}`, {
      method: 'POST',
      headers: {
        'x-api-key': apiKey,
        'content-type': 'application/x-ndjson',
        ...(isCompressed ? { 'content-encoding': 'gzip' } : {}),
      },
      body: isCompressed ? new Uint8Array(await compress(body)) : body,
      signal: AbortSignal.timeout(timeoutMs),
    })
    await response.body?.cancel()
    if (response.status === 202) return 'acknowledged'
    this.isRefused = response.status === 404
    // A 5xx may come after the write: whether the records are stored is not known.
    return response.status < 500 ? 'refused' : 'unknown'
  }
}
