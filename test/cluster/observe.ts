/** Collects what the law judges: the bucket, the API, and the disks of all nodes. */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Customer } from '../support/object-gateway.ts'
import { BucketContents } from '../torture/bucket-contents.ts'
import type { Observed, ObservedEndpoint, ViewCount } from '../torture/law.ts'
import { listReasons } from '../torture/listed.ts'
import { findLeftovers, findSegments, findWaitingCommits } from '../torture/segments.ts'
import type { Cluster, ClusterEndpoint } from './cluster.ts'
import { nodeEnvironment } from './environment.ts'
import { bucket, nodeNames } from './layout.ts'

/** How often the whole is looked at, if more is delivered meanwhile. */
const observationsMax = 5

export async function observe(cluster: Cluster): Promise<Observed> {
  for (let attempt = 1; ; attempt += 1) {
    const keys = await download(cluster)
    const observed = await observeOnce(cluster)
    // A message that a cut held up may still be stored, long after its client gave up. Then what was seen is of two moments.
    if (attempt === observationsMax || (await listKeys(cluster)).length === keys.length) return observed
  }
}

async function observeOnce(cluster: Cluster): Promise<Observed> {
  await using contents = await BucketContents.open(cluster.path('buckets'))
  const endpoints: ObservedEndpoint[] = []
  for (const endpoint of cluster.endpoints) endpoints.push(await observeEndpoint(cluster, endpoint, contents))
  const leftovers = []
  for (const name of nodeNames) {
    const environment = nodeEnvironment(cluster.installation, cluster.host(name))
    leftovers.push(...findLeftovers(cluster.path(name), await listReasons({ environment })))
  }
  return { sent: cluster.ledger.sent, damaged: cluster.ledger.damaged, endpoints, leftovers, troubles: cluster.troubles }
}

/** Returns what is not delivered yet, or undefined if everything is. */
export async function findUnrest(cluster: Cluster): Promise<string | undefined> {
  for (const name of nodeNames) {
    const data = cluster.path(name)
    const [left] = [...findSegments(join(data, 'node/wal')), ...findWaitingCommits(data)]
    if (left !== undefined) return `${left} is left`
  }
  for (const { id, region } of cluster.endpoints) {
    const { status, status_reasons, lag } = await cluster.management.ok('GET', `/v1/endpoints/${id}`)
    if (status !== 'active') return `an endpoint in ${region} is ${status}: ${status_reasons.join('; ')}`
    if (lag.undelivered_segments > 0) return `an endpoint in ${region} has ${lag.undelivered_segments} undelivered segments`
  }
  return undefined
}

async function listKeys({ services: { gateway } }: Cluster): Promise<readonly string[]> {
  return (await new Customer(gateway).list(bucket)).map(({ key }) => key)
}

/** Copies what is new in the bucket into a directory, as the customer who owns it. Returns all keys. */
async function download(cluster: Cluster): Promise<readonly string[]> {
  const customer = new Customer(cluster.services.gateway)
  const keys = await listKeys(cluster)
  for (const key of keys) {
    const path = join(cluster.path('buckets'), bucket, key)
    if (existsSync(path)) continue
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, (await customer.get(bucket, key)) ?? '')
  }
  return keys
}

async function observeEndpoint(
  { management, viewId }: Cluster,
  { id }: ClusterEndpoint,
  contents: BucketContents,
): Promise<ObservedEndpoint> {
  const { status, status_reasons } = await management.ok('GET', `/v1/endpoints/${id}`)
  const { endpoints } = await management.ok('GET', `/v1/views/${viewId}/metrics`)
  const rows = endpoints as readonly { readonly endpoint_id: string; readonly all_time: ViewCount }[]
  const row = rows.find(({ endpoint_id }) => endpoint_id === id)
  return {
    id,
    isDeleted: false,
    delivered: await contents.of(id),
    commits: await management.commits(id),
    counters: new Map(row === undefined ? [] : [[viewId, row.all_time]]),
    status,
    statusReasons: status_reasons,
    hasDirectory: true,
  }
}
