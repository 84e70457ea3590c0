/**
 * The last time for which this control process could not record heartbeats: it was not running, or could not reach the database.
 *
 * Owns: how long nodes are excused for being silent. Does not own: reading the database, which others do every second.
 * Law: only times that control itself was away count. A node that was silent before such a time is still silent after it.
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes/nodes.ts'

/** A control process that reached the database this recently could record the heartbeats of nodes. */
const controlContactMsMax = 4_000

/** In epoch ms. */
export type Outage = { readonly fromMs: number; readonly toMs: number }

export class ControlOutages {
  readonly #clock: Clock
  #contact: { readonly wallMs: number; readonly monotonicMs: number }
  #last: Outage

  /** `aliveAt`: the last heartbeat that any control process recorded, in epoch ms. */
  constructor(clock: Clock, aliveAt: number | null) {
    this.#clock = clock
    this.#contact = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    this.#last = { fromMs: aliveAt ?? this.#contact.wallMs, toMs: this.#contact.wallMs }
  }

  /** Call whenever the database has responded. */
  noteContact(): void {
    this.#last = this.last
    this.#contact = { wallMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() }
  }

  /** Ends now while it lasts. */
  get last(): Outage {
    const { wallMs, monotonicMs } = this.#contact
    const isAway = this.#clock.monotonic() - monotonicMs > controlContactMsMax
    return isAway ? { fromMs: wallMs, toMs: this.#clock.now() } : this.#last
  }
}

/** Moves the last heartbeats of nodes by the part of their silence for which control was away. */
export function discountControlOutage(nodes: readonly NodeFacts[], outage: Outage): readonly NodeFacts[] {
  return nodes.map((node) => {
    if (!isBefore(node.ingest, outage) && !isBefore(node.delivery, outage)) return node
    return { ...node, ingest: discount(node.ingest, outage), delivery: discount(node.delivery, outage) }
  })
}

function isBefore(process: ProcessFacts | null, { toMs }: Outage): boolean {
  return process !== null && Date.parse(process.last_seen_at) < toMs
}

function discount(process: ProcessFacts | null, { fromMs, toMs }: Outage): ProcessFacts | null {
  if (process === null) return null
  const move = (time: string) => {
    const ms = Date.parse(time)
    return ms >= toMs ? time : isoTimestamp(ms + Math.max(0, toMs - Math.max(fromMs, ms)))
  }
  const { last_seen_at, healthy_at } = process
  return { ...process, last_seen_at: move(last_seen_at), healthy_at: healthy_at === null ? null : move(healthy_at) }
}
