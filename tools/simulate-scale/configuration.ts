/** Costs of the configuration: a full snapshot, and a change on its way to every process of every node. */
import { digestSections } from '../../src/model/section-digest.ts'
import type { SectionKind } from '../../src/model/snapshot-sections.ts'
import type { Fleet, SimulatedNode } from './fleet.ts'
import type { Cost, Gauge } from './gauge.ts'
import type { Installation } from './installation.ts'
import { quantile, round, share, size, type Tables } from './tables.ts'

/** The kinds that the two processes of a node fetch: `ingest/app.ts`, `delivery/app.ts`. */
const processes: readonly { readonly name: string; readonly kinds: readonly SectionKind[] }[] = [
  { name: 'ingest', kinds: ['installation', 'keys', 'endpoints'] },
  { name: 'delivery', kinds: ['endpoints', 'views'] },
]
const waitMs = 60_000
const idlePolls = 200
const changes = 5

type Process = (typeof processes)[number]
/** Configuration that all processes of a kind in a region have. */
type Copy = { epoch: number; readonly have: Map<string, string>; digest: string; bytes: number }

export async function measureConfiguration(
  installation: Installation,
  fleet: Fleet,
  gauge: Gauge,
  tables: Tables,
): Promise<void> {
  const copies = new Map<string, Copy>()
  const rows: (readonly (string | number)[])[] = []
  const [region = ''] = installation.regions
  const first = fleet.nodes.find((node) => node.region === region)
  if (first === undefined) throw new Error('there are no nodes')
  for (const process of processes) {
    const empty = (): Copy => ({ epoch: -1, have: new Map(), digest: '', bytes: 0 })
    let copy = empty()
    const built = await gauge.measure(async () => apply(copy, await poll(fleet, first, process, copy, 0)))
    const again = await gauge.measure(async () => {
      copy = empty()
      apply(copy, await poll(fleet, first, process, copy, 0))
    })
    for (const other of installation.regions) {
      const node = fleet.nodes.find((each) => each.region === other)
      const own = other === region ? copy : empty()
      if (node !== undefined && own !== copy) apply(own, await poll(fleet, node, process, own, 0))
      copies.set(`${process.name} ${other}`, own)
    }
    const full = copy.bytes
    rows.push(costRow(`full snapshot of ${process.name}, built`, full, full, built))
    rows.push(costRow(`full snapshot of ${process.name}, again`, full, full, again))
    const idle = await gauge.measure(async () => {
      for (let call = 0; call < idlePolls; call += 1) await poll(fleet, first, process, copy, 0)
    })
    const asked = Buffer.byteLength(requestOf(first, process, copy, 0))
    rows.push(costRow(`poll of ${process.name} without a change (its request)`, asked, full, divided(idle, idlePolls)))
  }
  tables.add('snapshots', ['', 'size', 'of the full one', 'CPU ms of control', 'CPU ms of Postgres', 'statements'], rows)
  await measureChanges(installation, fleet, gauge, { tables, copies })
}

async function measureChanges(
  installation: Installation,
  fleet: Fleet,
  gauge: Gauge,
  { tables, copies }: { readonly tables: Tables; readonly copies: ReadonlyMap<string, Copy> },
): Promise<void> {
  const { apiUrl, apiKey, endpoints } = installation
  const { access_token } = (await api(apiUrl, 'POST', '/v1/token/exchange', { api_key: apiKey, scope: 'admin', ttl: '1h' })) as {
    access_token: string
  }
  const [endpoint] = endpoints
  const affected = fleet.nodes.filter(({ region }) => region === endpoint?.region)
  const kinds: readonly (readonly [string, readonly Process[], (turn: number) => Promise<unknown>])[] = [
    [
      'one changed endpoint',
      processes,
      (turn) => api(apiUrl, 'PATCH', `/v1/endpoints/${endpoint?.id}`, { segment_bytes: 9_000_000 + turn }, access_token),
    ],
    [
      'one new key',
      processes.slice(0, 1),
      (turn) => api(apiUrl, 'POST', '/v1/keys', { name: `key ${turn}`, scopes: ['ingest'] }, access_token),
    ],
  ]
  const rows: (readonly (string | number)[])[] = []
  for (const [name, receivers, change] of kinds) {
    const delays: number[] = []
    const costs: Cost[] = []
    let bytes = 0
    for (let turn = 0; turn < changes; turn += 1) {
      let startedAt = Number.NaN
      let turns = 0
      const waiting = affected.flatMap((node) =>
        receivers.map(async (process) => {
          const copy = copies.get(`${process.name} ${node.region}`)
          turns += 1
          const body = await fleet.longPoll(turns, node.token, requestOf(node, process, copy ?? emptyCopy, waitMs))
          delays.push(performance.now() - startedAt)
          return { process, node, body }
        }),
      )
      await fleet.untilPolled(waiting.length)
      await gauge.untilIdle()
      let received: Awaited<(typeof waiting)[number]>[] = []
      const spread = await gauge.measure(async () => {
        startedAt = performance.now()
        await change(turn)
        received = await Promise.all(waiting)
      })
      costs.push(spread)
      bytes = received.reduce((sum, { body }) => sum + body.byteLength, 0)
      for (const process of receivers) {
        const one = received.find((each) => each.process === process)
        const copy = one && copies.get(`${process.name} ${one.node.region}`)
        if (copy !== undefined && one !== undefined) apply(copy, one.body)
      }
    }
    const mean = divided(sum(costs), changes)
    const processesReached = affected.length * receivers.length
    rows.push([
      name,
      processesReached,
      size(bytes / processesReached),
      size(bytes),
      ...[0.5, 0.99, 1].map((at) => round(quantile(delays, at))),
      round(mean.controlCpuMs),
      round(mean.databaseCpuMs),
      round(mean.statements),
    ])
  }
  tables.add(
    'changes',
    [
      'change',
      'processes',
      'to each',
      'to all',
      'ms, median',
      'ms, 99 %',
      'ms, last',
      'CPU ms of control',
      'CPU ms of Postgres',
      'statements',
    ],
    rows,
  )
}

const emptyCopy: Copy = { epoch: -1, have: new Map(), digest: '', bytes: 0 }

async function poll(fleet: Fleet, node: SimulatedNode, process: Process, copy: Copy, wait: number): Promise<Buffer> {
  return (await fleet.call(node.token, 'snapshot', requestOf(node, process, copy, wait))).body
}

function requestOf({ id }: SimulatedNode, { kinds }: Process, { epoch, have, digest }: Copy, wait_ms: number): string {
  const request = { node_id: id, epoch, kinds, wait_ms }
  return JSON.stringify(epoch < 0 ? { ...request, have: Object.fromEntries(have) } : { ...request, digest })
}

/** Reads the names and versions of the sections, as a node does, and leaves out their content. */
function apply(copy: Copy, body: Buffer): void {
  copy.bytes = body.byteLength
  for (const line of body.toString().split('\n')) {
    if (line === '') continue
    const { kind, name, version, epoch, removed } = JSON.parse(line)
    if (kind === 'end') {
      copy.epoch = epoch
      for (const gone of removed) copy.have.delete(gone)
    } else copy.have.set(name, version)
  }
  copy.digest = digestSections([...copy.have].map(([name, version]) => ({ name, version })))
}

async function api(url: string, method: string, path: string, body: unknown, token?: string): Promise<unknown> {
  const headers = { 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }
  const response = await fetch(url + path, { method, headers, body: JSON.stringify(body) })
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`)
  return response.json()
}

function costRow(name: string, bytes: number, full: number, cost: Cost): readonly (string | number)[] {
  return [name, size(bytes), share(bytes, full), round(cost.controlCpuMs), round(cost.databaseCpuMs), round(cost.statements)]
}

function divided(cost: Cost, by: number): Cost {
  return {
    seconds: cost.seconds / by,
    controlCpuMs: cost.controlCpuMs / by,
    databaseCpuMs: cost.databaseCpuMs / by,
    statements: cost.statements / by,
    walBytes: cost.walBytes / by,
  }
}

function sum(costs: readonly Cost[]): Cost {
  const total = (field: keyof Cost) => costs.reduce((all, cost) => all + cost[field], 0)
  return {
    seconds: total('seconds'),
    controlCpuMs: total('controlCpuMs'),
    databaseCpuMs: total('databaseCpuMs'),
    statements: total('statements'),
    walBytes: total('walBytes'),
  }
}
