/** A test event that was sent, as it stands in the address: who opens it later follows the same record. */
export type SentEvent = {
  readonly node: string
  readonly segment: number
  /** A text that the record has, by which its row is found in the segment. */
  readonly mark: string
  readonly after: number
  readonly at: string
}

/** Returns nothing for an address that was changed by hand. */
export function testSearch(search: Record<string, unknown>): Partial<SentEvent> {
  const { node, segment, mark, after, at } = search
  if (typeof node !== 'string' || typeof segment !== 'number' || typeof mark !== 'string') return {}
  return {
    ...{ node, segment, mark },
    after: typeof after === 'number' ? after : 0,
    at: typeof at === 'string' && !Number.isNaN(Date.parse(at)) ? at : new Date().toISOString(),
  }
}

/** The longest text that a search for records takes. */
const markCharsMax = 256

/** Returns what finds the record again: the id that Inlet gave it, or its beginning. */
export function markOf(record: string): string {
  const [, id] = /"id":"([0-9a-f-]{36})"/.exec(record) ?? []
  return id ?? record.slice(0, markCharsMax).toWellFormed()
}
