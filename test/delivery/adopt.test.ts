/** A node whose machine is gone is delivered from its data directory by another machine. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startAdoption } from '#cli/serve/adopt.ts'
import { readConfig } from '#config/config.ts'
import { startDelivery } from '#delivery/app.ts'
import { startAdoptedIngest } from '#ingest/adopted/app.ts'
import { systemClock } from '#lib/clock.ts'
import { lockExclusively } from '#lib/exclusive.ts'
import { system } from '#lib/system.ts'
import { createLogger } from '#lib/telemetry.ts'
import { NodeCredential } from '#node/credential.ts'
import { readOrCreateNodeId } from '#node/identity.ts'
import { aDestination, DeliveryNode } from '../support/delivery-node.ts'
import { anEndpoint } from '../support/ingest-node.ts'

const hooks = { logger: createLogger('adoption', 'silent'), clock: systemClock, startIngest: startAdoptedIngest, startDelivery }
const running = new AbortController().signal

async function adopting(node: DeliveryNode) {
  const data = await mkdtemp(join(tmpdir(), 'inlet-adopting-'))
  const config = readConfig({
    INLET_DATA_DIR: data,
    INLET_CONTROL_URL: node.control.url,
    INLET_REGION: 'oth',
    INLET_LOG_LEVEL: 'silent',
  })
  return { config, data, [Symbol.asyncDispose]: () => rm(data, { recursive: true }) }
}

test('everything is committed under the id of the node, which is never healthy, and the adoption ends', async () => {
  const endpoint = anEndpoint({ destination: aDestination() })
  const deleted = anEndpoint({ desired_state: 'draining', destination: aDestination() })
  await using node = await DeliveryNode.create(endpoint, deleted)
  const { paths } = node.config
  const id = await readOrCreateNodeId(paths, system)
  await NodeCredential.open(id, paths.nodeCredential, system)
  await node.seal(endpoint.id, '{"n":1}', '{"n":2}')
  await node.seal(deleted.id, '{"n":3}')
  await using machine = await adopting(node)
  const app = await startAdoption({ ...hooks, config: machine.config, directory: node.directory, isRegionGiven: false }, running)
  expect(await app.finished).toBe(0)
  await app.stop(AbortSignal.timeout(10_000))
  expect(node.commits.map(({ node_id, endpoint_id }) => [node_id, endpoint_id]).toSorted()).toEqual(
    [endpoint.id, endpoint.id, deleted.id].map((endpointId) => [id, endpointId]).toSorted(),
  )
  const { heartbeats } = node.control
  const ingest = heartbeats.filter((beat) => beat.process === 'ingest')
  expect(ingest.length).toBeGreaterThan(0)
  for (const beat of ingest) expect(beat).toMatchObject({ node_id: id, healthy: false, leaving: true })
  const last = heartbeats.findLast((beat) => beat.process === 'delivery')
  expect(last).toMatchObject({ node_id: id, lag: [{ endpoint_id: deleted.id, closed: true, undelivered_segments: 0 }] })
})

test.each(['node_removed', 'node_adopted'] as const)('it ends as failed if control refuses it meanwhile: %s', async (fence) => {
  const endpoint = anEndpoint({ destination: aDestination() })
  await using node = await DeliveryNode.create(endpoint)
  const { paths } = node.config
  await NodeCredential.open(await readOrCreateNodeId(paths, system), paths.nodeCredential, system)
  await node.seal(endpoint.id, '{"n":1}')
  await using machine = await adopting(node)
  node.control.refusesCommits = true
  const adoption = { ...hooks, config: machine.config, directory: node.directory, isRegionGiven: false }
  const app = await startAdoption(adoption, running)
  node.control.fence = fence
  expect(await app.finished).toBe(1)
  await app.stop(running)
})

test('is refused while the node runs', async () => {
  await using node = await DeliveryNode.create()
  await node.sealAll([])
  await using machine = await adopting(node)
  using _running = lockExclusively(node.config.paths.ingestLock)
  const adoption = { ...hooks, config: machine.config, directory: node.directory, isRegionGiven: true }
  await expect(startAdoption(adoption, running)).rejects.toThrow('is locked by another process')
})

test('of a log without its credential needs the region of the node', async () => {
  await using node = await DeliveryNode.create()
  await node.sealAll([])
  await using machine = await adopting(node)
  const adoption = { ...hooks, config: machine.config, directory: node.config.paths.wal, isRegionGiven: false }
  await expect(startAdoption(adoption, running)).rejects.toThrow(
    /^--region: needed to adopt .*; inlet nodes list shows its region$/,
  )
})

test.each([
  ['delivery', 'markerKey'],
  ['ingest', 'nodeFence'],
] as const)('is begun again in the same process if %s could not start', async (_, unreadable) => {
  const endpoint = anEndpoint({ destination: aDestination() })
  await using node = await DeliveryNode.create(endpoint)
  const { paths } = node.config
  await NodeCredential.open(await readOrCreateNodeId(paths, system), paths.nodeCredential, system)
  await node.seal(endpoint.id, '{"n":1}')
  await using machine = await adopting(node)
  const adoption = { ...hooks, config: machine.config, directory: node.directory, isRegionGiven: false }
  await rm(paths[unreadable], { force: true })
  await mkdir(paths[unreadable])
  await expect(startAdoption(adoption, running)).rejects.toThrow('is a directory, but has to be a file')
  await rm(paths[unreadable], { recursive: true })
  const app = await startAdoption(adoption, running)
  expect(await app.finished).toBe(0)
  await app.stop(AbortSignal.timeout(10_000))
  expect(node.commits).toHaveLength(1)
})
