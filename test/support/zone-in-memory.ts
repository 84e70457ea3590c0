import type { DnsProvider, RecordChange } from '#naming/dns/provider.ts'

/** A DNS service in memory, with faults that tests switch on. */
export class ZoneInMemory implements DnsProvider {
  target = 'memory'
  readonly applyTimeoutMs = 10_000
  readonly settleSeconds = 5
  readonly sets = new Map<string, RecordChange>()
  readonly calls: (readonly RecordChange[])[] = []
  /** Throws instead of applying. */
  before: (changes: readonly RecordChange[]) => void = () => undefined
  /** Throws after applying: the confirmation is lost. */
  after: (changes: readonly RecordChange[], signal: AbortSignal) => void | Promise<void> = () => undefined

  async apply(changes: readonly RecordChange[], signal: AbortSignal): Promise<void> {
    this.calls.push(changes)
    this.before(changes)
    for (const change of changes) {
      const key = `${change.type} ${change.name}`
      if (change.values.length === 0) this.sets.delete(key)
      else this.sets.set(key, change)
    }
    await this.after(changes, signal)
  }

  async setText(): Promise<void> {
    throw new Error('this zone has addresses only')
  }

  /** Returns the addresses of each set. */
  get addresses(): Readonly<Record<string, readonly string[]>> {
    return Object.fromEntries([...this.sets].map(([key, { values }]) => [key, values]))
  }

  close(): void {
    // Nothing is open.
  }
}
