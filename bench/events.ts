import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { forEachRecord } from '#log/records.ts'
import type { Definition } from '#model/definition.ts'
import { say } from './figures.ts'

/** Records for a benchmark, and a view of ten columns for them. */
export type Workload = {
  readonly name: string
  readonly lines: Buffer
  readonly records: number
  readonly definition: Definition
}

const eventColumns = [
  column('event_id', 'UUID', '$.event_id'),
  column('event_type', 'VARCHAR', '$.event_type'),
  column('created_at', 'TIMESTAMP', '$.created_at'),
  column('user_id', 'BIGINT', '$.user.id'),
  column('user_name', 'VARCHAR', '$.user.name'),
  column('country', 'VARCHAR', '$.user.country'),
  column('amount', 'DOUBLE', '$.amount'),
  column('ok', 'BOOLEAN', '$.ok'),
  column('referrer', 'VARCHAR', '$.referrer'),
  column('pages', 'INTEGER', '$.session.pages'),
]

/** Returns integers below a bound, the same in every run. */
function repeatableRandom(): (below: number) => number {
  let state = 1
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return state % below
  }
}

/** Generates events of about 275 bytes, the same in every run. */
export function generatedEvents(bytes: number): Workload {
  const random = repeatableRandom()
  const parts: string[] = []
  for (let size = 0, index = 0; size < bytes; index += 1) {
    const line = `${JSON.stringify({
      event_id: `${random(1e9).toString(16).padStart(8, '0')}-1111-4111-8111-${String(index).padStart(12, '0')}`,
      event_type: ['view', 'click', 'purchase', 'search'][random(4)],
      created_at: new Date(1.7e12 + index * 37).toISOString(),
      user: { id: random(1e6), name: `user${random(10_000)}`, country: ['DE', 'US', 'FR'][random(3)] },
      amount: random(100_000) / 100,
      ok: random(2) === 1,
      referrer: `https://example.com/${random(1e7)}`,
      session: { pages: random(50), ms: random(100_000) },
    })}\n`
    parts.push(line)
    size += line.length
  }
  return {
    name: 'generated events',
    lines: Buffer.from(parts.join('')),
    records: parts.length,
    definition: { columns: eventColumns },
  }
}

/** Items of an order. */
export const ITEMS = 10

/** Generates orders of ten items for a view that makes a row of each, and the same rows as records for the same view without. */
export function generatedOrders(bytes: number): { readonly orders: Workload; readonly items: Workload } {
  const random = repeatableRandom()
  const orders: string[] = []
  const lines: string[] = []
  for (let size = 0, index = 0; size < bytes; index += 1) {
    const order = {
      order_id: index * 7,
      created_at: new Date(1.7e12 + index * 37).toISOString(),
      customer: { name: `user${random(10_000)}`, country: ['DE', 'US', 'FR'][random(3)] },
    }
    const items = Array.from({ length: ITEMS }, (_, line) => ({
      line,
      sku: `sku-${random(1e6)}`,
      title: `A thing of some kind, number ${random(1e5)}`,
      quantity: 1 + random(9),
      price: random(100_000) / 100,
      gift: random(20) === 0,
    }))
    orders.push(`${JSON.stringify({ ...order, items })}\n`)
    for (const item of items) lines.push(`${JSON.stringify({ ...order, item })}\n`)
    size += orders.at(-1)?.length ?? 0
  }
  const view = (item: string): Definition => ({
    columns: [
      column('order_id', 'BIGINT', '$.order_id'),
      column('created_at', 'TIMESTAMP', '$.created_at'),
      column('customer', 'VARCHAR', '$.customer.name'),
      column('country', 'VARCHAR', '$.customer.country'),
      { ...column('line', 'INTEGER', `${item}.line`), required: true },
      column('sku', 'VARCHAR', `${item}.sku`),
      column('title', 'VARCHAR', `${item}.title`),
      column('quantity', 'INTEGER', `${item}.quantity`),
      column('price', 'DOUBLE', `${item}.price`),
      column('gift', 'BOOLEAN', `${item}.gift`),
    ],
  })
  const workload = (name: string, of: readonly string[], definition: Definition): Workload => ({
    ...{ name, definition, records: of.length },
    lines: Buffer.from(of.join('')),
  })
  return {
    orders: workload('orders of ten items', orders, { ...view('$item'), expand: '$.items[*]' }),
    items: workload('items', lines, view('$.item')),
  }
}

/** Reads public GitHub events and repeats them. If the file is missing, says so and returns undefined. */
export function githubEvents(bytes: number): Workload | undefined {
  const path = process.env['BENCH_GITHUB_EVENTS'] ?? join(import.meta.dirname, '../../shared/data/github-events.ndjson')
  if (!existsSync(path)) {
    say(`skipped: no GitHub events at ${path} (set BENCH_GITHUB_EVENTS)`)
    return undefined
  }
  const once = readFileSync(path)
  const lines = Buffer.concat(Array.from({ length: Math.ceil(bytes / once.length) }, () => once))
  return {
    name: 'GitHub events',
    lines,
    records: forEachRecord({ layout: 'lines', payload: lines }, () => undefined),
    definition: {
      columns: [
        column('id', 'BIGINT', '$.id'),
        column('type', 'VARCHAR', '$.type'),
        column('created_at', 'TIMESTAMP', '$.created_at'),
        column('actor_id', 'BIGINT', '$.actor.id'),
        column('actor', 'VARCHAR', '$.actor.login'),
        column('repo_id', 'BIGINT', '$.repo.id'),
        column('repo', 'VARCHAR', '$.repo.name'),
        column('public', 'BOOLEAN', '$.public'),
        column('push_id', 'BIGINT', '$.payload.push_id'),
        column('size', 'INTEGER', '$.payload.size'),
      ],
    },
  }
}

/** Returns another view of ten columns on the same records. Half of the columns differ. */
export function otherView({ columns }: Definition): Definition {
  return {
    columns: columns.map((each, index) => (index % 2 === 0 ? each : { ...each, name: `${each.name}_text`, type: 'VARCHAR' })),
    filters: [{ condition: `${JSON.stringify(columns[1]?.name)}_text <> 'PushEvent'`.replace('"_text', '_text"') }],
  }
}

/** Returns the view with five columns more that are computed from others. */
export function withComputedColumns({ columns }: Definition): Definition {
  const [, kind, time, id, name, , , isPublic] = columns.map((each) => JSON.stringify(each.name))
  const computed = [
    { name: 'lower_name', type: 'VARCHAR', value: `lower(${name})` },
    { name: 'by_hour', type: 'TIMESTAMP', value: `date_trunc('hour', ${time})` },
    { name: 'twice', type: 'BIGINT', value: `${id} * 2 + 1` },
    { name: 'shown', type: 'VARCHAR', value: `CASE WHEN ${isPublic} THEN ${kind} ELSE 'hidden' END` },
    { name: 'label', type: 'VARCHAR', value: `${kind} || '-' || ${name}` },
  ]
  return { columns: [...columns, ...computed] }
}

/** Returns the view with a file for each kind of event, in the order of time. */
export function withLayout(definition: Definition): Definition {
  const [, kind, time] = definition.columns.map(({ name }) => name)
  return { ...definition, partition_by: [kind ?? ''], sort_by: [time ?? ''] }
}

/** Returns the view with one row for each id. */
export function withoutDuplicates(definition: Definition): Definition {
  return { ...definition, dedupe_by: definition.columns.slice(0, 1).map(({ name }) => name) }
}

/** Returns views of the generated events as the teams of a company might have them: 5 to 10 of sixteen columns, every second view with a filter. */
export function viewsOfEvents(count: number): readonly Definition[] {
  const pool = [
    ...eventColumns,
    column('session_ms', 'BIGINT', '$.session.ms'),
    column('event_day', 'DATE', '$.created_at'),
    column('price', 'DECIMAL(18,2)', '$.amount'),
    column('user_key', 'VARCHAR', '$.user.id'),
    column('received_at', 'TIMESTAMP', '$$.ingested_at'),
    column('user', 'JSON', '$.user'),
  ]
  const conditions = [`event_type = 'purchase'`, `event_type IN ('view', 'click')`, `event_type <> 'search'`]
  return Array.from({ length: count }, (_, view) => {
    const chosen = Array.from(
      { length: 5 + ((view * 5) % 6) },
      (_, index) => pool[(view * 3 + index * (1 + (view % 3) * 2)) % pool.length],
    )
    const columns = [...new Set([pool[1], ...chosen])].filter((each) => each !== undefined)
    return { columns, ...(view % 2 === 1 ? { filters: [{ condition: conditions[(view >> 1) % 3] ?? '' }] } : {}) }
  })
}

function column(name: string, type: string, path: string) {
  return { name, type, path }
}
