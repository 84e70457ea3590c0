/** Sends NDJSON to one endpoint, one request after the other, each until it is acknowledged, at whichever address takes it. */
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Agent, request } from 'node:https'
import { type Outcome, recordText, type Sent } from '../../torture/ledger.ts'
import { ports } from '../layout.ts'
import { type Sender, type SenderOptions, stopMsMax } from './sender.ts'

/** A client gives up an attempt after this. The server may still store the request. */
const timeoutMs = 3_000
const pauseMs = 200

type Settled = Exclude<Outcome, 'pending'>

export class HttpSender implements Sender {
  readonly #options: SenderOptions
  readonly #running: Promise<void>
  readonly #agent = new Agent({ keepAlive: true })
  #isStopping = false
  #giveUpAt = Number.POSITIVE_INFINITY
  /** Address that took the last request. */
  #address: string | undefined
  /** What a retrying client must not get: the status says that it is to blame. */
  readonly refusals: string[] = []

  constructor(options: SenderOptions) {
    this.#options = options
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
    const { ledger, random, addresses } = this.#options
    while ((await ledger.attempt(sent, () => this.#post(body))) !== 'acknowledged') {
      if (performance.now() > this.#giveUpAt) throw new Error(`request ${sent.id} was not acknowledged after everything healed`)
      await pause(pauseMs)
      const all = await addresses().catch(() => [])
      const others = all.filter((address) => address !== this.#address)
      this.#address = all.length === 0 ? undefined : random.pick(others.length > 0 ? others : all)
    }
  }

  async #post(body: string): Promise<Settled> {
    const { apiKey, addresses, ingestHost, random, ca } = this.#options
    this.#address ??= random.pick(await addresses())
    const outgoing = request({
      host: this.#address,
      servername: ingestHost,
      ca,
      port: ports.ingest,
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
    response.resume()
    const { statusCode = 0 } = response
    if (statusCode === 202) return 'acknowledged'
    if (statusCode >= 500) return 'unknown'
    this.refusals.push(`HTTP ${statusCode} from ${this.#address}`)
    return 'refused'
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
