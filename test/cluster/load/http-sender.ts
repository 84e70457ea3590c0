/** Sends NDJSON to one endpoint over a connection that is kept, one request after the other, each until it is acknowledged. */
import { once } from 'node:events'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { text } from 'node:stream/consumers'
import { type Outcome, recordText, type Sent } from '../../torture/ledger.ts'
import { Dialer } from './dialer.ts'
import { type Sender, type SenderOptions, stopMsMax } from './sender.ts'

/** A client gives up an attempt after this. The server may still store the request. */
const timeoutMs = 3_000
const pauseMs = 200

type Answer = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string }

type Settled = Exclude<Outcome, 'pending'>

export class HttpSender implements Sender {
  readonly #options: SenderOptions
  readonly #running: Promise<void>
  readonly #agent = new Agent({ keepAlive: true })
  #isStopping = false
  #giveUpAt = Number.POSITIVE_INFINITY
  /** Pause before the next attempt. */
  #pauseMs = pauseMs
  readonly #dialer: Dialer
  /** Responses that a retrying client must not get: the status blames the client. */
  readonly refusals: string[] = []

  constructor(options: SenderOptions) {
    this.#options = options
    this.#dialer = new Dialer(options.resolve, options.random)
    this.#running = this.#run()
  }

  async stop(): Promise<void> {
    this.#isStopping = true
    this.#giveUpAt = performance.now() + stopMsMax
    await this.#running
    this.#agent.destroy()
  }

  async #run(): Promise<void> {
    const { ledger, random, endpointId, waits } = this.#options
    while (!this.#isStopping) {
      const sent = ledger.create(endpointId, random.isLuckyIn(40) ? random.between(500, 2_000) : random.between(1, 40))
      const padding = 'x'.repeat(random.between(0, 200))
      const body = Array.from({ length: sent.size }, (_, index) => `${recordText(sent.id, index, padding)}\n`).join('')
      const acknowledged = waits.begin(endpointId)
      await this.#repeat(sent, body)
      acknowledged()
      await pause(random.between(50, 200))
    }
  }

  async #repeat(sent: Sent, body: string): Promise<void> {
    const { ledger } = this.#options
    while ((await ledger.attempt(sent, () => this.#try(body))) !== 'acknowledged') {
      if (performance.now() > this.#giveUpAt) throw new Error(`request ${sent.id} was not acknowledged after everything healed`)
      await pause(this.#pauseMs)
    }
  }

  async #try(body: string): Promise<Settled> {
    const startedAt = performance.now()
    this.#pauseMs = pauseMs
    const note = (what: string) => {
      const { address, isNamed } = this.#dialer
      this.#options.notices.note({
        endpointId: this.#options.endpointId,
        startedAt,
        isNamed,
        text: `HTTP at ${address}: ${what}`,
      })
    }
    try {
      const { status: statusCode, headers, body: answer } = await this.#post(body)
      if (statusCode === 202) return 'acknowledged'
      if (isRefusedForNow(statusCode, headers)) {
        this.#pauseMs = Math.max(pauseMs, Number(headers['retry-after']) * 1_000)
        return mayBeStored(answer) ? 'unknown' : 'refused'
      }
      note(String(statusCode))
      if (statusCode >= 500) return 'unknown'
      this.refusals.push(`HTTP ${statusCode} from ${this.#dialer.address}`)
      return 'refused'
    } catch (error) {
      note(String(error))
      this.#dialer.avoid()
      throw error
    }
  }

  async #post(body: string): Promise<Answer> {
    const { apiKey, ingestHost, port, ca } = this.#options
    const outgoing = request({
      host: ingestHost,
      lookup: this.#dialer.lookup,
      ca,
      port,
      method: 'POST',
      path: '/v1/ingest',
      agent: this.#agent,
      headers: { host: ingestHost, 'x-api-key': apiKey, 'content-type': 'application/x-ndjson' },
      signal: AbortSignal.timeout(timeoutMs),
    })
    // Once the response is there, an error of the connection changes nothing.
    outgoing.on('error', () => undefined)
    outgoing.end(body)
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    response.on('error', () => undefined)
    return { status: response.statusCode ?? 0, headers: response.headers, body: await text(response).catch(() => '') }
  }
}

/** Whether a node says that records without their second copy may be on its disk. */
export function mayBeStored(answer: string): boolean {
  return answer.includes('may be delivered') || answer.includes('the copies of the endpoint have just been changed')
}

/** Whether a node says to try again. No disk fails in the cluster, so it has stored nothing. */
export function isRefusedForNow(status: number, { 'retry-after': retryAfter }: IncomingHttpHeaders): boolean {
  return status === 503 && Number(retryAfter) >= 0
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
