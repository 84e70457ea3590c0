/** Costs of the reports of nodes: heartbeats, usage, questions for jobs, commits. */
import { setTimeout } from 'node:timers/promises'
import { newId } from '../../src/model/id.ts'
import { seriesItemsMax } from '../../src/model/node-protocol.ts'
import { dayOf } from '../../src/model/quota.ts'
import { commitBody } from './commits.ts'
import type { Fleet, SimulatedNode } from './fleet.ts'
import type { Cost, Gauge } from './gauge.ts'
import { round, size, type Tables } from './tables.ts'

const parallel = 16

/** The layout for 10 GB/s of docs/scale.md, in which each node reports all of its endpoints once a minute. */
const layout = { nodes: 50, activeEndpoints: 1000 }
/** A report has six buckets of each endpoint but the last, and writes a row of each length. */
const seriesEndpoints = Math.ceil(seriesItemsMax / 6)
const seriesRows = 4

type Report = {
  readonly name: string
  readonly path: string
  /** How many of them one node sends in a second; undefined for those that depend on its load. */
  readonly perSecond?: number
  readonly body: (node: SimulatedNode, call: number) => string
  /** Rows or commits in a call. */
  readonly items?: number
}

/** Returns the number of commits that were made. */
export async function measureReports(fleet: Fleet, gauge: Gauge, tables: Tables, seconds: number): Promise<number> {
  const reports: readonly Report[] = [
    { name: 'heartbeat of ingest', path: 'heartbeat', perSecond: 0.5, body: ingestHeartbeat },
    { name: 'heartbeat of delivery, nothing to deliver', path: 'heartbeat', perSecond: 0.5, body: deliveryHeartbeat(0) },
    { name: 'heartbeat of delivery, 100 logs that changed', path: 'heartbeat', body: deliveryHeartbeat(100), items: 100 },
    { name: 'usage report, 10 accounts', path: 'usage', body: usageReport(10), items: 10 },
    { name: 'usage report, 100 accounts', path: 'usage', body: usageReport(100), items: 100 },
    {
      name: `series report, ${seriesItemsMax} buckets of ${seriesEndpoints} endpoints`,
      path: 'series',
      body: seriesReport(seriesEndpoints),
      items: seriesItemsMax,
    },
    { name: 'question for jobs', path: 'jobs/lease', perSecond: 0.5, body: leaseRequest },
    { name: 'question before a conversion', path: 'snapshot/check', body: snapshotCheck },
    { name: 'one commit', path: 'commits', body: (node, call) => commitBody(node, call, 1), items: 1 },
    { name: '20 commits in one call', path: 'commits', body: (node, call) => commitBody(node, call, 20), items: 20 },
  ]
  const rows: (readonly (string | number)[])[] = []
  let commits = 0
  let [idleControl, idleDatabase, idleWal, idleStatements] = [0, 0, 0, 0]
  // The first heartbeat of a process is recorded by itself.
  for (const body of [ingestHeartbeat, deliveryHeartbeat(0)]) await fleet.callEach(parallel, 'heartbeat', body)
  const alone = await gauge.measure(() => setTimeout(seconds * 1000))
  for (const { name, path, perSecond, body, items } of reports) {
    let calls = 0
    const cost = await gauge.measure(async () => {
      calls = await fleet.callFor(seconds, parallel, path, body)
    })
    if (path === 'series') addSeries(perCall(cost, calls), tables)
    if (path === 'commits') commits += calls * (items ?? 0)
    const each = perCall(cost, calls)
    rows.push([
      name,
      round(calls / cost.seconds),
      round(each.controlCpuMs),
      round(each.databaseCpuMs),
      round(each.statements),
      size(each.walBytes),
      round(1000 / each.controlCpuMs),
    ])
    if (perSecond === undefined) continue
    const rate = perSecond * fleet.nodes.length
    idleControl += (each.controlCpuMs * rate) / 1000
    idleDatabase += (each.databaseCpuMs * rate) / 1000
    idleWal += each.walBytes * rate
    idleStatements += each.statements * rate
  }
  tables.add(
    'reports',
    ['call', 'a second, here', 'CPU ms of control', 'CPU ms of Postgres', 'statements', 'WAL', 'a second, per core of control'],
    rows,
  )
  const nodes = fleet.nodes.length
  tables.add(
    'idle fleet',
    ['', 'calls a second', 'cores of control', 'cores of Postgres', 'statements a second', 'WAL a second'],
    [
      ['what control does by itself', '0', ...perSecondOf(alone)],
      [
        `calls of ${nodes} nodes`,
        round(1.5 * nodes),
        round(idleControl),
        round(idleDatabase),
        round(idleStatements),
        size(idleWal),
      ],
    ],
  )
  tables.add('memory', ['memory of control'], [[size(gauge.controlBytes())]])
  return commits
}

/** Adds the reports of series of the whole layout, from the cost of one. */
function addSeries(each: Omit<Cost, 'seconds'>, tables: Tables): void {
  const calls = (layout.nodes * layout.activeEndpoints) / seriesEndpoints / 60
  tables.add(
    'series',
    ['', 'calls a second', 'cores of control', 'cores of Postgres', 'rows a second', 'statements a second', 'WAL a second'],
    [
      [
        `reports of ${layout.nodes} nodes with ${round(layout.activeEndpoints)} active endpoints each`,
        round(calls),
        round((each.controlCpuMs * calls) / 1000),
        round((each.databaseCpuMs * calls) / 1000),
        round(calls * seriesEndpoints * seriesRows),
        round(each.statements * calls),
        size(each.walBytes * calls),
      ],
    ],
  )
}

function perSecondOf({ seconds, controlCpuMs, databaseCpuMs, statements, walBytes }: Cost): readonly string[] {
  const rates = [controlCpuMs / 1000, databaseCpuMs / 1000, statements].map((value) => round(value / seconds))
  return [...rates, size(walBytes / seconds)]
}

function perCall(cost: Cost, calls: number): Omit<Cost, 'seconds'> {
  const { controlCpuMs, databaseCpuMs, statements, walBytes } = cost
  return {
    controlCpuMs: controlCpuMs / calls,
    databaseCpuMs: databaseCpuMs / calls,
    statements: statements / calls,
    walBytes: walBytes / calls,
  }
}

let heartbeats = 0

function stateOf() {
  heartbeats += 1
  return { applied_epoch: 1, healthy: true, reasons: [], order: { run: 'simulation', number: heartbeats } }
}

function ingestHeartbeat({ id }: SimulatedNode): string {
  return JSON.stringify({ process: 'ingest', node_id: id, ...stateOf(), disk_full: false, blocked: [] })
}

function deliveryHeartbeat(logs: number) {
  return ({ id, endpoints }: SimulatedNode, call: number): string => {
    const lag = endpoints.slice(0, logs).map((endpoint) => ({
      ...{ endpoint_id: endpoint.id, open_segments: 1, undelivered_segments: 1, parked_segments: 0, quarantined_segments: 0 },
      ...{
        undelivered_bytes: 1_000_000 + call,
        oldest_sealed_at: new Date().toISOString(),
        blocked_by: null,
        failing_view: null,
      },
      closed: false,
    }))
    return JSON.stringify({ process: 'delivery', node_id: id, ...stateOf(), event_loop_delay_ms: 3, lag })
  }
}

function usageReport(accounts: number) {
  return ({ id, endpoints }: SimulatedNode, call: number): string => {
    const day = dayOf(Date.now())
    const sent = [...new Set(endpoints.map(({ account }) => account))].slice(0, accounts)
    const used = sent.map((account_id) => ({ account_id, day, bytes: call * 1000, records: call, records_per_second: 100 }))
    return JSON.stringify({ node_id: id, run: 'simulation', accounts: used })
  }
}

/** Counts of a node with many active endpoints in a minute: buckets of ten seconds. Each report is about other endpoints. */
function seriesReport(endpointsMax: number) {
  return ({ id, endpoints }: SimulatedNode, call: number): string => {
    const minute = Math.floor(Date.now() / 60_000) * 60_000 - 60_000
    const first = (call * endpointsMax) % endpoints.length
    const some = [...endpoints.slice(first), ...endpoints].slice(0, endpointsMax)
    const items = some.flatMap((endpoint) =>
      Array.from({ length: 6 }, (_, bucket) => ({
        ...{ endpoint_id: endpoint.id, at: new Date(minute + bucket * 10_000).toISOString() },
        ...{
          records: 1000 + call,
          bytes: 200_000,
          requests: 10,
          refused: {},
          acknowledged_after: { 20: 6, 21: 2, 22: 1, 25: 1 },
        },
      })),
    )
    return JSON.stringify({ node_id: id, run: 'simulation', number: call, items: items.slice(0, seriesItemsMax) })
  }
}

function leaseRequest({ id }: SimulatedNode): string {
  return JSON.stringify({ node_id: id, incarnation: 'simulation', max: 4, holding: [] })
}

function snapshotCheck({ id }: SimulatedNode): string {
  return JSON.stringify({ node_id: id, kinds: ['endpoints', 'views'], digest: newId() })
}
