/** Collects what the law judges: the buckets, the API, the node's disk, and what the processes said. */
import { existsSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { BucketContents } from './bucket-contents.ts'
import type { Observed, ObservedEndpoint, ViewCount } from './law.ts'
import { listReasons } from './listed.ts'
import type { Rig, RigEndpoint } from './rig.ts'
import { findLeftovers, findSegments, findWaitingCommits } from './segments.ts'

export async function observe(rig: Rig, troubles: readonly string[]): Promise<Observed> {
  await using contents = await BucketContents.open(rig.buckets)
  const endpoints: ObservedEndpoint[] = []
  for (const endpoint of rig.endpoints) endpoints.push(await observeEndpoint(rig, endpoint, contents))
  return {
    sent: rig.ledger.sent,
    damaged: rig.ledger.damaged,
    endpoints,
    leftovers: findLeftovers(rig.data, await listReasons(rig)),
    troubles: [...rig.processes.troubles, ...troubles],
  }
}

/** Returns what is not quiet yet, or undefined if everything is. Segments that were set aside may stay; the law asks why. */
export async function findUnrest(rig: Rig): Promise<string | undefined> {
  if (!rig.processes.isEverythingReady) return 'a process is not ready'
  const segments = findSegments(rig.wal)
  const left = [...segments.filter((path) => !path.endsWith('.quarantine')), ...findWaitingCommits(rig.data)][0]
  if (left !== undefined) return `${left} is left`
  const setAside = new Set(segments.map((path) => basename(dirname(path))))
  for (const { id, isDeleted } of rig.endpoints) {
    const { status, body } = await rig.management.call('GET', `/v1/endpoints/${id}`)
    if (status === 404) {
      if (existsSync(join(rig.wal, id))) return `deleted endpoint ${id} has a directory on the node`
      continue
    }
    const unrest = `endpoint ${id} is ${body.status}: ${body.status_reasons.join('; ')}`
    const isHeld = setAside.has(id) && body.status === (isDeleted ? 'draining' : 'degraded')
    if (body.status !== 'active' && !isHeld) return unrest
    if (body.lag.undelivered_segments > 0) return `endpoint ${id} has ${body.lag.undelivered_segments} undelivered segments`
  }
  return undefined
}

async function observeEndpoint(rig: Rig, { id, isDeleted }: RigEndpoint, contents: BucketContents): Promise<ObservedEndpoint> {
  const { status, body } = await rig.management.call('GET', `/v1/endpoints/${id}`)
  const isKnown = status === 200
  return {
    id,
    isDeleted,
    delivered: await contents.of(id),
    commits: isKnown ? await rig.management.commits(id) : undefined,
    counters: isKnown ? await countersOf(rig, id) : undefined,
    status: isKnown ? body.status : undefined,
    statusReasons: isKnown ? body.status_reasons : [],
    hasDirectory: existsSync(join(rig.wal, id)),
  }
}

async function countersOf(rig: Rig, endpointId: string): Promise<ReadonlyMap<string, ViewCount>> {
  const counters = new Map<string, ViewCount>()
  for (const viewId of rig.viewIds) {
    const { endpoints } = await rig.management.ok('GET', `/v1/views/${viewId}/metrics`)
    const rows = endpoints as readonly { readonly endpoint_id: string; readonly all_time: ViewCount }[]
    const row = rows.find(({ endpoint_id }) => endpoint_id === endpointId)
    if (row !== undefined) counters.set(viewId, row.all_time)
  }
  return counters
}
