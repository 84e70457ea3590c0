/**
 * Ledger of the sent requests, and of their outcomes as far as the clients know.
 *
 * Law: `acknowledged` is noted when the response or the PUBACK has arrived, never before. A request whose response is missing may have been
 * stored or not; so may one that failed inside the server.
 */
export type Outcome = 'pending' | 'acknowledged' | 'refused' | 'unknown'

/** One request or MQTT message: `size` records that name it. It may be sent several times. */
export type Sent = {
  readonly id: number
  readonly endpointId: string
  readonly size: number
  readonly attempts: Outcome[]
}

/** `isSealed`: the segment was sealed, so what is lost must be counted. */
export type Damage = { readonly reason: string; readonly isSealed: boolean }

export class Ledger {
  readonly sent: Sent[] = []
  /** Requests that the harness damaged itself, by id. */
  readonly damaged = new Map<number, Damage>()
  acknowledgedRecords = 0
  /** When a request that began at `startedAt` was acknowledged. */
  onAcknowledged: (sent: Sent, startedAt: number) => void = () => undefined

  create(endpointId: string, size: number): Sent {
    const sent: Sent = { id: this.sent.length, endpointId, size, attempts: [] }
    this.sent.push(sent)
    return sent
  }

  /** Sends the request once more by `send`, and notes the outcome. If `send` throws, the outcome is unknown. */
  async attempt(sent: Sent, send: () => Promise<Exclude<Outcome, 'pending'>>): Promise<Outcome> {
    const index = sent.attempts.push('pending') - 1
    const startedAt = performance.now()
    const outcome = await send().catch((): Outcome => 'unknown')
    sent.attempts[index] = outcome
    if (outcome === 'acknowledged') {
      this.acknowledgedRecords += sent.size
      this.onAcknowledged(sent, startedAt)
    }
    return outcome
  }

  noteDamage(ids: Iterable<number>, damage: Damage): void {
    for (const id of ids) this.damaged.set(id, damage)
  }
}

/** Returns the record as its client sends it. Some are not valid JSON, some have a value that the views reject. */
export function recordText(id: number, index: number, padding: string): string {
  const start = `{"q":${id},"n":${index},"pad":"${padding}","v":`
  if ((id + index) % 29 === 0) return `${start}"rejected"}`
  return (id + index) % 31 === 0 ? `${start}` : `${start}${index}.5}`
}

/** Finds the records in a text: pairs of request and index, in order. */
export function* recordsIn(text: string): Iterable<{ readonly id: number; readonly index: number; readonly at: number }> {
  for (const match of text.matchAll(/\{"q":(\d+),"n":(\d+),"pad"/g)) {
    yield { id: Number(match[1]), index: Number(match[2]), at: match.index }
  }
}
