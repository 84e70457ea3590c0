/**
 * Clients over HTTP: they lose requests and answers, and send again, with and without a key.
 *
 * Owns: what was sent and acknowledged, and that each answer fits the ones before. Does not own: what is stored at the end (laws.ts).
 */
import type { Stored } from '#ingest/gate/receipt.ts'
import { type Outcome, Rejection } from '#ingest/gate/rejection.ts'
import { firstMachine } from './control.ts'
import { Exchange, type Request } from './exchange.ts'
import type { Faults } from './faults.ts'
import type { Draw, Kernel } from './kernel.ts'
import type { Sent } from './laws.ts'
import type { SimulatedNode } from './node.ts'

export type ClientsOptions = {
  readonly node: SimulatedNode
  readonly kernel: Kernel
  readonly faults: Faults
  readonly endpoints: readonly string[]
  /** How often one begins a request, on average. */
  readonly everyMs: number
  /** The share of requests, and of answers, that get lost. */
  readonly lost: number
  /** Whether the node may refuse requests for ever: there are more keys than it remembers for a day, or damage that takes room. */
  readonly mayLackRoom: () => boolean
  /** Whether a disk failed so that the node may have forgotten keys. */
  readonly mayLackKeys: () => boolean
}

/** Reasons to refuse a request for now: a later attempt may be accepted. */
const passing: ReadonlySet<Outcome> = new Set([
  ...(['no_room', 'not_stored', 'not_copied', 'quota_exceeded', 'not_configured', 'fenced'] as const),
])

const networkMs = 5
const slowMs = 200
const bodyMs = 5
const shares = { keyed: 0.6, again: 0.2, twins: 0.2, reuse: 0.05, repeatUnkeyed: 0.5 } as const
/** A client that is refused so often after the faults sends the request no more, if the node may have no more room. */
const refusalsMax = 3

type Sending = {
  readonly request: Request
  readonly sent: Sent
  attempts: number
  refusals: number
}

export class Clients {
  readonly sent: Sent[] = []
  /** Answers that do not fit. */
  readonly problems: string[] = []
  readonly #options: ClientsOptions
  readonly #draw: Draw
  /** Records and keys of clients of other machines have other names. */
  readonly #prefix: string
  readonly #isLost: () => boolean
  #open = 0
  #isSlow = false
  #isOver = false

  constructor(options: ClientsOptions) {
    const { node, kernel, faults, everyMs, lost } = options
    this.#options = options
    this.#prefix = node.name === firstMachine ? '' : `${node.name}.`
    this.#draw = kernel.draw(`${this.#prefix}clients`)
    const fault = faults.of('client', lost, ['message lost'] as const)
    this.#isLost = () => fault() !== undefined
    const begin = () => {
      if (this.#isOver) return
      kernel.after(this.#draw.delay(this.#isSlow ? Math.max(slowMs, everyMs) : everyMs), 'client', begin)
      if (node.ingest !== undefined) this.#begin()
    }
    kernel.after(500, 'client', begin)
  }

  /** A few requests go on. */
  slowDown(): void {
    this.#isSlow = true
  }

  /** No client begins anything from now on. Those that wait for an answer go on. */
  end(): void {
    this.#isOver = true
  }

  /** Whether nobody waits for an answer, or is about to send again. */
  get areIdle(): boolean {
    return this.#open === 0
  }

  /** Whether the machine may have forgotten keys. */
  get mayLackKeys(): boolean {
    return this.#options.mayLackKeys()
  }

  /** The memory of requests is bounded, and free once none is left. */
  findHeldMemory(mostBytes: number): readonly string[] {
    const { inFlightBytes = 0 } = this.#options.node.ingest?.nodeRoom ?? {}
    return inFlightBytes > mostBytes ? [`${inFlightBytes} bytes of requests are in memory, more than ${mostBytes}`] : []
  }

  #begin(): void {
    const draw = this.#draw
    const key = draw.chance(shares.keyed) ? `${this.#prefix}k${this.sent.length}` : undefined
    const sending = this.#newSending(draw.pick(this.#options.endpoints), key)
    this.#attempt(sending)
    if (key === undefined) return
    if (draw.chance(shares.twins)) this.#attempt(sending)
    // A client that makes keys badly.
    if (draw.chance(shares.reuse)) this.#later(this.#newSending(sending.request.endpoint, key), draw.delay(200))
  }

  #newSending(endpoint: string, key: string | undefined): Sending {
    const draw = this.#draw
    const count = this.sent.length
    const ids = Array.from({ length: draw.between(1, 4) }, (_, at) => `${this.#prefix}${count}.${at}-${draw.between(0, 1e9)}`)
    const lines = ids.map((id) => `{"id":"${id}","endpoint":"${endpoint}","pad":"${'x'.repeat(draw.between(0, 200))}"}`)
    const { name: machine } = this.#options.node
    const sent: Sent = { machine, endpoint, ids, lines, key, appends: 0, isAcknowledged: false, receipts: [] }
    this.sent.push(sent)
    return { request: { endpoint, key, body: Buffer.from(lines.join('\n')) }, sent, attempts: 0, refusals: 0 }
  }

  #later(sending: Sending, delayMs: number): void {
    if (this.#options.node.isLost) return
    this.#open += 1
    this.#options.kernel.after(delayMs, 'client again', () => {
      this.#open -= 1
      this.#attempt(sending)
    })
  }

  /** One attempt, on a connection of its own. */
  #attempt(sending: Sending): void {
    const { kernel, node } = this.#options
    const draw = this.#draw
    sending.attempts += 1
    this.#open += 1
    let leave: () => void = () => undefined
    let isOver = false
    const end = (): boolean => {
      if (isOver) return false
      isOver = true
      this.#open -= 1
      cancel()
      return true
    }
    const cancel = kernel.after(draw.pick([100, 1_000, 10_000]), 'client gives up', () => {
      if (!end()) return
      leave()
      this.#afterSilence(sending)
    })
    const isRequestLost = this.#isLost()
    kernel.after(draw.delay(networkMs), 'request', () => {
      const { ingest } = node
      if (isRequestLost || ingest === undefined || isOver) return
      let outcomes = 0
      ingest.life.reach('request', () => {
        const exchange = new Exchange({
          ...{ ingest, request: sending.request, bodyMs: draw.delay(bodyMs) },
          onAppending: () => {
            sending.sent.appends += 1
          },
          onOutcome: (outcome) => {
            // Nothing of a process that was killed is heard of.
            if (!ingest.life.isAlive) return
            outcomes += 1
            if (outcomes > 1) this.problems.push(`a request had ${outcomes} outcomes`)
            this.#check(sending, outcome)
            const what = outcome instanceof Rejection ? outcome.outcome : 'acknowledged'
            const answer = () => end() && this.#afterAnswer(sending, outcome)
            if (!this.#isLost()) ingest.life.after(draw.delay(networkMs), `answer: ${what}`, answer)
          },
        })
        leave = () => ingest.life.reach('client leaves', () => exchange.leave())
        // While the process stood still.
        if (isOver) leave()
      })
    })
  }

  /** The node has answered, whether the client learns of it or not. */
  #check({ sent }: Sending, outcome: Stored | Rejection): void {
    const who = `request ${sent.ids[0]}${sent.key === undefined ? '' : ` with the key ${sent.key}`}`
    if (outcome instanceof Rejection) {
      const isReuse = outcome.outcome === 'idempotency_key_reused' && this.#hasRival(sent)
      // The log ended while it was written to.
      const isFenced = outcome.outcome === 'failed' && outcome.message.startsWith('this node has just lost its place')
      if (!passing.has(outcome.outcome) && !isReuse && !isFenced)
        this.problems.push(`${who} was refused: ${outcome.outcome}, ${outcome.message}`)
      return
    }
    const { seq, records, bytes, isRepeated } = outcome
    const [first] = sent.receipts
    if (records !== sent.ids.length) this.problems.push(`${who} was acknowledged with ${records} records`)
    if (isRepeated && sent.key === undefined) this.problems.push(`${who} was taken for another one`)
    if (sent.key !== undefined && first !== undefined && !this.#options.mayLackKeys()) {
      if (first.seq !== seq || first.bytes !== bytes)
        this.problems.push(`${who} has the receipt of segment ${first.seq}, and then of ${seq}`)
      if (!isRepeated) this.problems.push(`${who} was acknowledged as a new one again`)
    }
    sent.isAcknowledged = true
    sent.receipts.push({ seq, records, bytes })
  }

  #hasRival(sent: Sent): boolean {
    return this.sent.some((other) => other !== sent && other.key === sent.key && other.endpoint === sent.endpoint)
  }

  #afterSilence(sending: Sending): void {
    const { sent } = sending
    if (sent.key !== undefined || this.#draw.chance(shares.repeatUnkeyed)) this.#later(sending, this.#backOff(sending))
  }

  #afterAnswer(sending: Sending, outcome: Stored | Rejection): void {
    const draw = this.#draw
    const { sent } = sending
    if (outcome instanceof Rejection) {
      if (outcome.outcome === 'idempotency_key_reused' || (this.#isOver && this.#givesUp(sending, outcome))) return
      const waitMs = (outcome.retryAfterSeconds ?? 0) * 1_000
      if (sent.key !== undefined || draw.chance(shares.repeatUnkeyed))
        this.#later(sending, waitMs * (1 + draw.random.fraction()) + this.#backOff(sending))
    } else if (sent.key !== undefined && !this.#isOver && draw.chance(shares.again)) this.#later(sending, draw.delay(2_000))
  }

  #givesUp(sending: Sending, { outcome }: Rejection): boolean {
    sending.refusals += 1
    return outcome === 'fenced' || (this.#options.mayLackRoom() && sending.refusals > refusalsMax)
  }

  #backOff({ attempts }: Sending): number {
    return this.#draw.delay(Math.min(5_000, 20 * 2 ** attempts))
  }
}

/** The clients of all machines. */
export class Crews {
  readonly #all: readonly Clients[]

  constructor(all: readonly Clients[]) {
    this.#all = all
  }

  get sent(): readonly Sent[] {
    return this.#all.flatMap(({ sent }) => sent)
  }

  get problems(): readonly string[] {
    return this.#all.flatMap(({ problems }) => problems)
  }

  get areIdle(): boolean {
    return this.#all.every(({ areIdle }) => areIdle)
  }

  get mayLackKeys(): boolean {
    return this.#all.some(({ mayLackKeys }) => mayLackKeys)
  }

  findHeldMemory(mostBytes: number): readonly string[] {
    return this.#all.flatMap((clients) => clients.findHeldMemory(mostBytes))
  }

  slowDown(): void {
    for (const clients of this.#all) clients.slowDown()
  }

  end(): void {
    for (const clients of this.#all) clients.end()
  }
}
