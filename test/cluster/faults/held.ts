/** Reads what a node holds on its disk, and whether control knows all of it. */

import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { until } from '../../support/until.ts'
import { recordsIn } from '../../torture/ledger.ts'
import { findSegments } from '../../torture/segments.ts'
import type { Cluster } from '../cluster.ts'
import { type NodeName, regionOf } from '../layout.ts'
import { type Stored, storeRecords } from '../load/direct.ts'

/** A report comes every two seconds, and a segment is sealed after two. */
const reportMsMax = 30_000

export type Held = { readonly segments: readonly string[]; readonly records: number; readonly requests: ReadonlySet<number> }

/** Returns what is in the segments of a data directory, by endpoint. Copies of a record count as often as they are there. */
export function readHeld(data: string): ReadonlyMap<string, Held> {
  const byLog = Map.groupBy(findSegments(join(data, 'node/wal')), (path) => basename(dirname(path)))
  const held = [...byLog].map(([log, segments]): [string, Held] => {
    const found = segments.flatMap((path) => [...recordsIn(readFileSync(path, 'latin1'))])
    return [log, { segments, records: found.length, requests: new Set(found.map(({ id }) => id)) }]
  })
  return new Map(held)
}

/**
 * Sends to a node that does not reach the store, until control knows that it holds segments of each endpoint of its region. Returns what it
 * acknowledged.
 */
export async function untilHolding(cluster: Cluster, name: NodeName): Promise<readonly Stored[]> {
  const endpoints = cluster.endpointsIn(regionOf(name))
  const stored = await storeRecords(cluster, name)
  const storedAt = Date.now()
  const holdsAll = async () => {
    // A report from before may name segments that are delivered by now.
    if (!((await cluster.seenAt(cluster.nodeId(name))) > storedAt)) return false
    const reported = await cluster.reportedBy(cluster.nodeId(name))
    return endpoints.every(({ id }) => {
      const log = reported.find(({ endpoint_id }) => endpoint_id === id)
      return log !== undefined && log.sealed_segments > 0 && log.records !== null
    })
  }
  await until(`control to know what ${name} holds`, holdsAll, reportMsMax)
  return stored
}

/** Waits until control knows every record on the disk of a node that gets no more of them. */
export async function untilAllReported(cluster: Cluster, name: NodeName): Promise<void> {
  const isAllReported = async () => {
    const reported = await cluster.reportedBy(cluster.nodeId(name))
    const held = readHeld(cluster.path(name))
    return [...held].every(([id, { segments, records }]) => {
      const log = reported.find(({ endpoint_id }) => endpoint_id === id)
      return log?.open_segments === 0 && log.sealed_segments === segments.length && log.records === records
    })
  }
  await until(`control to know every record on ${name}`, isAllReported, reportMsMax)
}
