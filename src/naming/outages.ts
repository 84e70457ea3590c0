/**
 * The last times for which this control process could not record heartbeats: it was not running, or could not reach the database.
 *
 * Owns: how long nodes are excused for being silent. Does not own: reading the database, which others do every second.
 * Law: only times that control itself was away count. A node that was silent before such a time is still silent after it.
 */
import { type Clock, isoTimestamp } from '#lib/clock.ts'
import type { NodeFacts, ProcessFacts } from '#store/nodes/nodes.ts'

/**
 * A control process that reached the database this recently could record the heartbeats of nodes. It asks twice a second. A node needs up to five
 * seconds after an outage for its next heartbeat, so one of two seconds already makes it seem silent.
 */
const controlContactMsMax = 1_000
/** A database that fails over may be away several times. */
const outagesMax = 16

/** In epoch ms. */
export type Outage = { readonly fromMs: number; readonly toMs: number }

export class ControlOutages {
  readonly #clock: Clock
  #contact: { readonly wallMs: number; readonly monotonicMs: number }
  #ended: readonly Outage[]

  /** `aliveAt`: the last heartbeat that any control process recorded, in epoch ms. */
  constructor(clock: Clock, aliveAt: number | null) {
    this.#clock = clock
    this.#contact = { wallMs: clock.now(), monotonicMs: clock.monotonic() }
    this.#ended = [{ fromMs: aliveAt ?? this.#contact.wallMs, toMs: this.#contact.wallMs }]
  }

  /** Call whenever the database has responded. */
  noteContact(): void {
    this.#ended = this.recent
    this.#contact = { wallMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() }
  }

  /** In the order of time. One that lasts ends now. */
  get recent(): readonly Outage[] {
    const { wallMs, monotonicMs } = this.#contact
    const isAway = this.#clock.monotonic() - monotonicMs > controlContactMsMax
    return isAway ? [...this.#ended, { fromMs: wallMs, toMs: this.#clock.now() }].slice(-outagesMax) : this.#ended
  }
}

/** Moves the last heartbeats of nodes by the part of their silence for which control was away. */
export function discountControlOutages(nodes: readonly NodeFacts[], outages: readonly Outage[]): readonly NodeFacts[] {
  return outages.reduce(discountFrom, nodes)
}

function discountFrom(nodes: readonly NodeFacts[], outage: Outage): readonly NodeFacts[] {
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
