/** The database follows the reports of a node about many logs, whatever gets lost in between. */
import fc from 'fast-check'
import { expect } from 'vitest'
import { LagReports } from '#delivery/report/lag-report.ts'
import { seededRandom } from '#lib/random.ts'
import { newId } from '#model/id.ts'
import type { EndpointLag } from '#model/node-protocol.ts'
import { listLags } from '#store/nodes/node-reports.ts'
import { recordHeartbeat, registerNode } from '#store/nodes/nodes.ts'
import { isQuiet, recordQuietHeartbeats } from '#store/nodes/quiet-heartbeats.ts'
import { transact } from '#store/store.ts'
import { aLag } from '../support/lags.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { describeStores, t0 } from './fixtures.ts'

const beat = { process: 'delivery' as const, applied_epoch: 1, healthy: true, reasons: [] }
const logs = 60

const step = fc.record({
  /** New state of each log: nothing, which removes its row, or a row with these numbers. */
  changes: fc.array(fc.record({ log: fc.nat(5), parked: fc.nat(2), bytes: fc.nat(5), isGone: fc.boolean() }), {
    maxLength: 20,
  }),
  /** The request is lost, or the response. */
  loss: fc.constantFrom('none', 'none', 'none', 'request', 'response'),
  waitMs: fc.constantFrom(2_000, 70_000),
})

describeStores('reports of many logs', (test) => {
  test('leave the database with every row, and with what a drain or a status depends on', async ({ store }) => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const [node_id, ids] = [newId(), Array.from({ length: logs }, newId)]
      await registerNode(store.db, { node_id, region: 'loc', ipv4: [], ipv6: [], ingest_address: 'node:1' }, t0)
      const clock = new ManualClock()
      const reports = new LagReports({ clock, random: seededRandom(1) })
      const disk = new Map(ids.map((id) => [id, aLag(id)]))
      /** As the service of control does it. */
      const send = (report: ReturnType<LagReports['next']>) =>
        transact(store, async (db) => {
          const heartbeat = { ...beat, node_id, ...report }
          const isRecorded = isQuiet(heartbeat) && (await recordQuietHeartbeats(db, [heartbeat], clock.now())).has(heartbeat)
          if (!isRecorded) await recordHeartbeat(db, heartbeat, clock.now())
        })
      const history: { readonly at: number; readonly bytes: ReadonlyMap<string, number> }[] = []
      /** Each row is one that the disk had at the time that the database names, or since. */
      const areAsOf = async () => {
        const process = await store.db.selectFrom('node_processes').selectAll().where('node_id', '=', node_id).execute()
        const since = Math.max(
          0,
          history.findLastIndex(({ at }) => at <= (process[0]?.counted_at ?? 0)),
        )
        const stored = new Map((await listLags(store.db, ids)).map((lag) => [lag.endpoint_id, lag.undelivered_bytes]))
        const wrong = ids.filter((id) => !history.slice(since).some(({ bytes }) => bytes.get(id) === stored.get(id)))
        expect(wrong).toEqual([])
      }
      let wasRejected = false
      for (const { changes, loss, waitMs } of steps) {
        for (const { log, parked, bytes, isGone } of changes) {
          const id = ids[log] ?? ''
          if (isGone) disk.delete(id)
          else disk.set(id, aLag(id, { parked_segments: parked, undelivered_bytes: bytes }))
        }
        clock.advance(waitMs)
        history.push({ at: clock.now(), bytes: new Map([...disk].map(([id, lag]) => [id, lag.undelivered_bytes])) })
        const report = reports.next([...disk.values()], clock.now())
        const isStored =
          loss !== 'request' &&
          (await send(report).then(
            () => true,
            () => false,
          ))
        if (isStored) await areAsOf()
        if (loss !== 'none') continue
        if (!isStored) {
          expect(wasRejected).toBe(false)
          wasRejected = true
          reports.reject()
          continue
        }
        wasRejected = false
        reports.accept()
        const stored = await listLags(store.db, ids)
        const what = ({ endpoint_id, parked_segments, closed }: EndpointLag) => `${endpoint_id} ${parked_segments} ${closed}`
        expect(stored.map(what).toSorted()).toEqual([...disk.values()].map(what).toSorted())
        if (waitMs > 60_000) expect(stored).toMatchObject(stored.map(({ endpoint_id }) => disk.get(endpoint_id)))
      }
    })
    await fc.assert(property, { numRuns: 40 })
  })
})
