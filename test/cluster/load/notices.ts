/**
 * Records failures that correct clients notice. They obey the time to live of DNS and `Retry-After`, connect again, and resend.
 *
 * Owns: what counts. A connection that fails although DNS names its address. A request that gets no response, or one that does not say when
 * to try again. An MQTT message that is refused. What does not count: 503 with `Retry-After`, and an MQTT connection that ends.
 * Law: it counts from when it began. An address that DNS could not confirm in time is the fault of DNS.
 */
export type Attempt = {
  readonly endpointId: string
  readonly startedAt: number
  /** Whether DNS names the address, by an answer that is not too old. */
  readonly isNamed: boolean
  readonly text: string
}

export class Notices {
  readonly #all: Attempt[] = []

  note(attempt: Attempt): void {
    if (attempt.isNamed) this.#all.push(attempt)
  }

  /** Returns what clients of an endpoint, or of all, noticed of requests and connections that they began at this time or later. */
  since(time: number, id?: string): readonly string[] {
    const matches = ({ startedAt, endpointId }: Attempt) => startedAt >= time && (id === undefined || endpointId === id)
    return this.#all.filter(matches).map(({ text }) => text)
  }
}
