/** Compares what is published with what should be, and says what to change now. Pure. */
import type { DnsRecord, NamedEndpoint } from '#store/naming/dns-records.ts'
import type { NodeFacts } from '#store/nodes/nodes.ts'
import { LastAddresses } from './last-addresses.ts'
import { dnsLimits } from './limits.ts'
import { WantedAddresses } from './wanted.ts'

export type PlanOptions = {
  readonly endpoints: readonly NamedEndpoint[]
  /** Nodes that serve the endpoints that they know. */
  readonly nodes: readonly NodeFacts[]
  /** Nodes whose credential is valid, healthy or not. */
  readonly trusted: readonly NodeFacts[]
  readonly records: readonly DnsRecord[]
  readonly baseDomain: string
  readonly ttl: number
  readonly nowMs: number
}

export type PlannedChange = Pick<DnsRecord, 'name' | 'type' | 'endpoint_id' | 'region' | 'published' | 'sent' | 'failures'> & {
  /** Empty if the set should go. */
  readonly values: readonly string[]
}

export type Plan = {
  /** Changes that may be sent now, in the order in which to send them. */
  readonly due: readonly PlannedChange[]
  /** When the next other change may be sent (epoch ms); infinity if there is none. */
  readonly nextAt: number
  readonly pending: number
}

const addressTypes = ['A', 'AAAA'] as const

export function planChanges({ endpoints, nodes, trusted, records, baseDomain, ttl, nowMs }: PlanOptions): Plan {
  const wanted = new WantedAddresses(nodes)
  const last = new LastAddresses(trusted)
  const remaining = new Map(records.map((record) => [`${record.type} ${record.name}`, record]))
  const changes: (PlannedChange & { readonly retry_at: number | null })[] = []
  const plan = (record: DnsRecord | undefined, change: Omit<PlannedChange, 'published' | 'sent' | 'failures'>) => {
    const { published = null, sent = null, failures = 0, retry_at = null } = record ?? {}
    changes.push({ ...change, published, sent, failures, retry_at })
  }
  for (const endpoint of endpoints) {
    const { id: endpoint_id, label, region } = endpoint
    const name = `${label}.${region}.${baseDomain}`
    const found = addressTypes.flatMap((type) => remaining.get(`${type} ${name}`) ?? [])
    const addresses = wanted.of(endpoint) ?? last.replacing(found, endpoint)
    for (const type of addressTypes) {
      const record = remaining.get(`${type} ${name}`)
      remaining.delete(`${type} ${name}`)
      const values = addresses?.[type]
      if (values === undefined || (record === undefined && values.length === 0)) continue
      const isConfirmed = record?.ttl === ttl && record.sent === null
      if (!(isConfirmed && isSame(record.published, values))) plan(record, { name, type, endpoint_id, region, values })
    }
  }
  // Remaining records belong to endpoints that are gone, or to another base domain.
  for (const record of remaining.values()) {
    const { name, type, endpoint_id, region } = record
    plan(record, { name, type, endpoint_id, region, values: [] })
  }
  const publishedAt = new Map(records.map(({ type, name, published_at }) => [`${type} ${name}`, published_at ?? '']))
  const lastTimeOf = ({ type, name }: PlannedChange) => publishedAt.get(`${type} ${name}`) ?? ''
  const isDue = ({ retry_at }: { readonly retry_at: number | null }) =>
    retry_at === null || retry_at <= nowMs || retry_at > nowMs + 2 * dnsLimits.rejectedDelayMsMax
  return {
    // The newest last: a region whose nodes come and go all the time must not keep the others waiting.
    due: changes.filter(isDue).toSorted((a, b) => a.failures - b.failures || compare(lastTimeOf(a), lastTimeOf(b))),
    nextAt: Math.min(...changes.filter((change) => !isDue(change)).map(({ retry_at }) => retry_at ?? 0)),
    pending: changes.length,
  }
}

/** Changes that were rejected before go in smaller batches each time, until the one that is wrong is alone. */
export function* batchesOf(changes: readonly PlannedChange[]): Generator<readonly PlannedChange[]> {
  for (const [failures, some] of Map.groupBy(changes, (change) => change.failures)) {
    const size = Math.max(1, Math.floor(dnsLimits.batchChangesMax / 4 ** failures))
    for (let start = 0; start < some.length; start += size) yield some.slice(start, start + size)
  }
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1
}

function isSame(published: readonly string[] | null, values: readonly string[]): boolean {
  return published !== null && published.length === values.length && values.every((value, index) => published[index] === value)
}
