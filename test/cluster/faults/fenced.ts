/** A node that lost its place: docs/fencing.md says what is true of it. */
import { until } from '../../support/until.ts'
import type { Cluster } from '../cluster.ts'
import { type NodeName, regionOf } from '../layout.ts'
import { readinessOf, sendRecord } from '../load/direct.ts'

/** A heartbeat comes every two seconds, and the machine of the test is busy. */
const fenceMsMax = 10_000
const endMsMax = 10_000
/** Requests after the first refusal: none is acknowledged. */
const requestsAfter = 5

/**
 * Sends records to a node until it refuses them, and then ends it. Returns what is wrong: it acknowledges for too long or again, does not say
 * why it refuses, or does not end at once.
 */
export async function findWrongsOfFenced(cluster: Cluster, name: NodeName, reason: string): Promise<readonly string[]> {
  const [endpoint] = cluster.endpointsIn(regionOf(name))
  if (endpoint === undefined) return [`no endpoint in the region of ${name}`]
  const problems: string[] = []
  const isRefused = async () => (await sendRecord(cluster, name, endpoint))?.status === 503
  await until(`${name} to take no more data`, isRefused, fenceMsMax).catch((error) => problems.push(String(error)))
  for (let sent = 0; sent < requestsAfter; sent += 1) {
    const response = await sendRecord(cluster, name, endpoint)
    const isRight = response?.status === 503 && response.headers['retry-after'] !== undefined && response.body.includes(reason)
    if (!isRight) problems.push(`${name} must refuse data (${reason}): ${response?.status} ${response?.body}`)
  }
  const ready = await readinessOf(cluster.host(name)).catch(String)
  if (typeof ready === 'string' || ready.status !== 503 || !ready.body.includes(reason)) {
    problems.push(`${name} must not be ready (${reason}): ${typeof ready === 'string' ? ready : ready.body}`)
  }
  const since = performance.now()
  await cluster.program(name).stop()
  const endedMs = performance.now() - since
  if (endedMs > endMsMax) problems.push(`${name} ended ${Math.round(endedMs / 1_000)} s after SIGTERM`)
  return problems
}
