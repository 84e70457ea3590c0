/**
 * Publishes records by dynamic updates of the zone's primary server (RFC 2136), signed with TSIG.
 *
 * Owns: which zone a name is in, and the size of messages. Does not own: what is published.
 */
import { randomInt } from 'node:crypto'
import type { Clock } from '#lib/clock.ts'
import type { ListenAddress } from '#lib/option-types.ts'
import { encodeTextUpdate, encodeUpdate, encodeZoneQuery, rcodes, readRcode, readZone, updateBytes } from './dns-message.ts'
import { rfc2136Limits } from './limits.ts'
import { type DnsProvider, type RecordChange, RecordsRejected, type TextRecord } from './provider.ts'
import { splitBySize } from './split.ts'
import { exchange } from './tcp-exchange.ts'
import { findSignatureProblem, signMessage, type TsigKey } from './tsig.ts'
import { Turns } from './turns.ts'

export type Rfc2136Options = {
  readonly server: ListenAddress
  readonly key: TsigKey
  readonly clock: Clock
  readonly intervalMs?: number
}

const sizesOf = (change: RecordChange) => [updateBytes(change)]

export class Rfc2136Provider implements DnsProvider {
  readonly target: string
  readonly applyTimeoutMs = rfc2136Limits.applyTimeoutMs
  readonly settleSeconds = rfc2136Limits.settleSeconds
  readonly #options: Rfc2136Options
  readonly #server: string
  readonly #turns: Turns
  /** Zones of names, by what follows the first label: endpoints of a region share it. */
  readonly #zones = new Map<string, string>()

  constructor(options: Rfc2136Options) {
    const { server, clock, intervalMs = rfc2136Limits.intervalMs } = options
    this.#options = options
    this.#server = `DNS server ${server.host}:${server.port}`
    this.#turns = new Turns(intervalMs, clock)
    this.target = `rfc2136 ${server.host}:${server.port}`
  }

  async apply(changes: readonly RecordChange[], signal: AbortSignal): Promise<void> {
    const byZone = new Map<string, RecordChange[]>()
    for (const change of changes) {
      const zone = await this.#zoneOf(change.name, signal)
      byZone.set(zone, [...(byZone.get(zone) ?? []), change])
    }
    for (const [zone, inZone] of byZone)
      for (const some of splitBySize(inZone, sizesOf, [rfc2136Limits.messageBytesMax]))
        await this.#update(zone, (id) => encodeUpdate(id, zone, some), signal)
  }

  async setText(record: TextRecord, isPublished: boolean, signal: AbortSignal): Promise<void> {
    const zone = await this.#zoneOf(record.name, signal)
    await this.#update(zone, (id) => encodeTextUpdate(id, zone, record, isPublished), signal)
  }

  close(): void {
    // Each message has a connection of its own.
  }

  async #update(zone: string, encode: (id: number) => Buffer, signal: AbortSignal): Promise<void> {
    const response = await this.#ask(encode, signal)
    const rcode = readRcode(response)
    if (rcode === rcodes.noError) return
    // The server may have other zones than before.
    this.#zones.clear()
    if (rcode === rcodes.refused)
      throw new RecordsRejected(
        `${this.#server} refused the change of ${zone}: allow the TSIG key ${this.#options.key.name} to update it (BIND: allow-update or update-policy)`,
      )
    if (rcode === rcodes.notInZone) throw new RecordsRejected(`a name is not in zone ${zone} of ${this.#server}`)
    if (rcode === rcodes.notAuthoritative) throw this.#notPrimary(zone)
    throw new Error(`${this.#server} could not change zone ${zone} (RCODE ${rcode}): its log says why`)
  }

  async #zoneOf(name: string, signal: AbortSignal): Promise<string> {
    const parent = name.slice(name.indexOf('.') + 1)
    const known = this.#zones.get(parent)
    if (known !== undefined) return known
    const response = await this.#ask((id) => encodeZoneQuery(id, parent), signal)
    const zone = readZone(response)
    if (zone === undefined || !`.${parent}`.toLowerCase().endsWith(`.${zone}`)) throw this.#notPrimary(parent)
    this.#zones.set(parent, zone)
    return zone
  }

  #notPrimary(name: string): Error {
    return new Error(`${this.#server} has no zone for ${name}: INLET_DNS_SERVER must be the zone's primary server`)
  }

  async #ask(encode: (id: number) => Buffer, signal: AbortSignal): Promise<Buffer> {
    const { key, clock } = this.#options
    const id = randomInt(0x1_0000)
    const { signed, mac } = signMessage(encode(id), key, clock.now())
    try {
      const response = await this.#turns.run(() => this.#exchange(signed, signal), signal)
      const problem = findSignatureProblem(response, mac, key, clock.now())
      if (problem !== undefined) throw new Error(problem)
      return response
    } catch (error) {
      signal.throwIfAborted()
      throw new Error(`${this.#server} cannot be used`, { cause: error })
    }
  }

  async #exchange(message: Buffer, signal: AbortSignal): Promise<Buffer> {
    const deadline = AbortSignal.timeout(rfc2136Limits.exchangeTimeoutMs)
    try {
      return await exchange(this.#options.server, message, AbortSignal.any([signal, deadline]))
    } catch (error) {
      throw deadline.aborted ? new Error('it did not respond in time') : error
    }
  }
}
