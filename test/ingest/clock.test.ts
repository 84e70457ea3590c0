/** A node whose clock is wrong, or jumps: it decides by the time of control, and says so. */
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { systemClock } from '#lib/clock.ts'
import { system } from '#lib/system.ts'
import { LocalSegmentSource } from '#log/local/segment-source.ts'
import { anEndpoint, aSnapshot, IngestNode, secretOf } from '../support/ingest-node.ts'
import { until } from '../support/until.ts'

const hourMs = 3_600_000

test.each([30 * hourMs, -30 * hourMs])(
  '%d ms off: keys are known, segments have the time of control, the status says so',
  async (off) => {
    let aheadMs = 0
    const clock = { ...systemClock, now: () => Date.now() + aheadMs }
    const endpoint = anEndpoint({ segment_max_age_seconds: 1 })
    await using node = await IngestNode.start({ snapshot: aSnapshot({ endpoints: [endpoint] }), clock })
    node.control.timeAheadMs = 0
    const send = async () => {
      const headers = { 'x-api-key': secretOf('a'), 'content-type': 'application/x-ndjson', 'idempotency-key': 'one' }
      const response = await fetch(`${node.url}/v1/ingest`, { method: 'POST', headers, body: '{"n":1}' })
      await response.arrayBuffer()
      return [response.status, response.headers.get('idempotent-replayed')]
    }
    aheadMs = off
    expect(await send()).toEqual([202, null])
    const segments = new LocalSegmentSource({ ...system, directory: join(node.directory, 'node/wal') })
    const sealed = async () => (await segments.list()).filter(({ state }) => state === 'sealed')
    await until('a sealed segment', async () => (await sealed()).length === 1)
    for (const segment of await sealed()) {
      const reader = await segments.open(segment)
      expect(Math.abs(reader.footer.sealedAtMicros / 1000 - Date.now())).toBeLessThan(60_000)
      await reader.close()
    }
    expect(await send()).toEqual([202, 'true'])
    const reason = `the clock of this machine is 108000 s ${off > 0 ? 'ahead of' : 'behind'} that of control, which is used: set both by NTP`
    await node.until('/readyz', ({ status }, body) => status === 200 && body.includes(reason))
    await until('control to know', () => node.control.heartbeats.at(-1)?.reasons.includes(reason) === true)
    expect(node.control.heartbeats.at(-1)?.healthy).toBe(true)
    aheadMs = 0
    await node.until('/readyz', (_, body) => !body.includes('clock'))
  },
)
