/** A machine is lost with its disk, and everything that it acknowledged has a second copy. Another node delivers that. */
import { once } from 'node:events'
import { readFileSync, renameSync } from 'node:fs'
import { until } from '../../support/until.ts'
import { within } from '../../support/within.ts'
import { findSegments } from '../../torture/segments.ts'
import type { Cluster } from '../cluster.ts'
import { type NodeName, regionOf } from '../layout.ts'
import { storeRecords } from '../load/direct.ts'
import { type Fault, unnoticed } from './fault.ts'
import { readHeld } from './held.ts'

/** The other node waits until this one is silent for long enough, and until control knows what it delivered: a minute each. */
const adoptionMsMax = 240_000
const appliedMsMax = 20_000
/** A segment that began right after the change lasts for its age. */
const deliveryMsMax = 90_000
/** Long enough that much is acknowledged and not delivered. */
const copied = { copies: 2, segment_max_age_seconds: 60 }
const notCopied = { copies: 1, segment_max_age_seconds: 2 }
/** Records of each endpoint that the test itself stores on the machine. */
const storedMin = 20

/** Its region has another node, which goes on running. */
export function loseCopied(name: 'fra-1' | 'fra-2'): Fault {
  const rescuer: NodeName = name === 'fra-1' ? 'fra-2' : 'fra-1'
  let adoption: Promise<readonly unknown[]> = Promise.resolve([])
  let lostId = ''
  return {
    ...unnoticed,
    kind: 'lose-copied',
    text: `lose ${name} with its disk while its endpoints have two copies, and adopt these on ${rescuer}`,
    missing: [name],
    parts: { breaks: [name], needs: [rescuer, 'database', 'storage'] },
    stopsServing: true,
    async begin(cluster) {
      lostId = cluster.nodeId(name)
      await changeEndpoints(cluster, name, copied)
      await untilAllCopied(cluster, name)
      for (let stored = 0; stored < storedMin; stored += 1) await storeRecords(cluster, name)
      await cluster.program(name).kill()
      const disk = cluster.newPath(`lost-copied-disk-of-${name}`)
      renameSync(cluster.path(name), disk)
      for (const [id, { records }] of readHeld(disk)) cluster.note(`endpoint ${id}: ${records} records were on the disk`)
      adoption = once(cluster.program(rescuer).runBeside(['node', '--adopt-copy', lostId]), 'close')
      return async () => {
        await changeEndpoints(cluster, rescuer, notCopied)
        await cluster.removeNode(lostId)
        await cluster.join(name)
        await cluster.untilReady(name)
      }
    },
    async check() {
      const [code, signal] = await within(adoptionMsMax, adoption)
      return code === 0 ? [] : [`the adoption of the copies ended with ${signal ?? `code ${code}`}`]
    },
    async checkAfter(cluster) {
      // Losses are noted when another machine takes over, and recovered as it delivers.
      const losses = (await cluster.lossesOf(lostId)).filter(({ state }) => state !== 'recovered')
      return losses.map((loss) => `is told as a loss, although it had a copy: ${JSON.stringify(loss)}`)
    },
  }
}

/** Changes all endpoints of a region, and waits until the node works by it: ingest applies what it has stored. */
async function changeEndpoints(cluster: Cluster, name: NodeName, change: typeof copied): Promise<void> {
  const endpoints = cluster.endpointsIn(regionOf(name))
  for (const { id } of endpoints) await cluster.management.ok('PATCH', `/v1/endpoints/${id}`, change)
  const isApplied = () => {
    const lines = readFileSync(cluster.path(`${name}/node/ingest-snapshot.ndjson`), 'utf8').split('\n')
    const wanted = `"copies":${change.copies}`
    return endpoints.every(({ id }) => lines.some((line) => line.includes(id) && line.includes(wanted)))
  }
  await until(`${name} to know of ${change.copies} copies`, isApplied, appliedMsMax)
}

/** Waits until nothing is on the disk that came before the change. */
async function untilAllCopied(cluster: Cluster, name: NodeName): Promise<void> {
  const wal = `${cluster.path(name)}/node/wal`
  const earlier = findSegments(wal).map(withoutState)
  // Open segments are sealed by the next record.
  await storeRecords(cluster, name)
  const isDelivered = () => {
    const left = new Set(findSegments(wal).map(withoutState))
    return earlier.every((path) => !left.has(path))
  }
  await until(`${name} to deliver what has no copy`, isDelivered, deliveryMsMax)
}

function withoutState(path: string): string {
  return path.replace(/\.[a-z]+$/, '')
}
