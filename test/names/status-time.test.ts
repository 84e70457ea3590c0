/** Reasons of a status that take minutes or an hour: real processes, and the clock of control moves. */
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { canMoveClocks, clockEnvironment, moveClock } from '../cluster/programs/host-clock.ts'
import { FaultProxy } from '../support/fault-proxy.ts'
import { Fleet } from '../support/fleet.ts'
import { describeNameServer } from '../support/name-server.ts'
import { until } from '../support/until.ts'

const minuteMs = 60_000

describeNameServer('the status of an endpoint over time', () => {
  const startFleet = async (directory: string) => ({
    fleet: await Fleet.start(clockEnvironment(directory, 'control')),
    advance: (seconds: number) => moveClock(directory, 'control', seconds),
  })

  test.skipIf(!canMoveClocks)('says that delivery is behind for more than five minutes', { timeout: 2 * minuteMs }, async () => {
    using scratch = mkdtempDisposableSync(join(tmpdir(), 'inlet-clock-'))
    const { fleet: started, advance } = await startFleet(scratch.path)
    await using fleet = started
    await using proxy = await FaultProxy.start(fleet.control.nodeApiUrl)
    const { id } = await fleet.newEndpoint({ segment_max_age_seconds: 1 })
    const node = await fleet.startNode('127.0.0.2', { INLET_CONTROL_URL: proxy.url })
    await node.untilReady()
    await fleet.told(id, 'active')
    const commits = '/internal/v1/commits'
    proxy.break(commits, { kind: 'answer', status: 503, code: 'busy' })
    await node.ingest(id, fleet.control.apiKey)
    const lag = async () => (await fleet.control.ok('GET', `/v1/endpoints/${id}`)).lag
    await until('a sealed segment to be reported', async () => (await lag()).undelivered_segments === 1, minuteMs)
    await fleet.told(id, 'active')
    advance(310)
    await fleet.told(id, 'degraded', [`delivery of node ${node.id} is 3`])
    proxy.heal(commits)
    await until('the segment to be delivered', async () => (await lag()).undelivered_segments === 0, minuteMs)
    await fleet.told(id, 'active')
  })

  test.skipIf(!canMoveClocks)(
    'counts a node that is gone for an hour only for what it holds',
    { timeout: 2 * minuteMs },
    async () => {
      using scratch = mkdtempDisposableSync(join(tmpdir(), 'inlet-clock-'))
      const { fleet: started, advance } = await startFleet(scratch.path)
      await using fleet = started
      const { id } = await fleet.newEndpoint({ segment_max_age_seconds: 3_600 })
      const { id: empty } = await fleet.newEndpoint()
      const kept = await fleet.startNode('127.0.0.2')
      const lost = await fleet.startNode('127.0.0.3')
      for (const node of [kept, lost]) await node.untilReady()
      await fleet.told(id, 'active')
      await lost.ingest(id, fleet.control.apiKey)
      const lag = async () => (await fleet.control.ok('GET', `/v1/endpoints/${id}`)).lag
      await until('the open segment to be reported', async () => (await lag()).open_segments === 1, minuteMs)
      await Promise.all([lost.kill('ingest'), lost.kill('delivery')])
      const silence = `node ${lost.id} has not sent a heartbeat for 7 s`
      await fleet.told(id, 'degraded', [silence])
      await fleet.told(empty, 'degraded', [silence])
      advance(3_700)
      const hasExpired = async () => (await fleet.control.request('GET', `/v1/endpoints/${id}`)).status === 401
      await until('the token to expire by the new time', hasExpired, minuteMs)
      const api = fleet.newClient()
      await fleet.told(empty, 'active', [], api)
      await fleet.told(id, 'degraded', [`node ${lost.id} last reported 1 segment (1 open`], api)
      expect((await api.ok('GET', `/v1/endpoints/${id}`)).status_reasons).toHaveLength(1)
    },
  )
})
