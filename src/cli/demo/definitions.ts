import { parseJson } from '#lib/json.ts'
import type { Column, Definition } from '#model/definition.ts'

export type DemoView = { readonly name: string; readonly definition: Definition }

/** View for the generated events. `value` is sometimes a word; those rows go to the DLQ. */
const generated: DemoView = {
  name: 'activity',
  definition: {
    columns: [
      { name: 'sent_at', type: 'TIMESTAMP', path: '$.at', required: true },
      { name: 'type', type: 'VARCHAR', path: '$.type', required: true },
      { name: 'user_id', type: 'INTEGER', path: '$.session.user.id' },
      { name: 'page', type: 'VARCHAR', path: '$.page.path' },
      { name: 'order_total', type: 'DECIMAL(12,2)', path: '$.order.total' },
      { name: 'device', type: 'VARCHAR', path: '$.device.id' },
      { name: 'value', type: 'DOUBLE', path: '$.value', cast_failures: 'dlq' },
      { name: 'plan', type: 'VARCHAR', path: '$.session.user.plan' },
      { name: 'browser', type: 'VARCHAR', path: '$.browser' },
      { name: 'protocol', type: 'VARCHAR', path: '$$.protocol' },
    ],
    filters: [{ condition: "browser IS NULL OR browser NOT LIKE 'HealthCheck/%'", description: 'our own health checks' }],
  },
}

/** View for events of the GitHub archive. An organisation without a picture has an empty id, which is not a UUID. */
const github: DemoView = {
  name: 'github_events',
  definition: {
    columns: [
      { name: 'created_at', type: 'TIMESTAMP', path: '$.created_at', required: true },
      { name: 'id', type: 'BIGINT', path: '$.id', required: true },
      { name: 'type', type: 'VARCHAR', path: '$.type', required: true },
      { name: 'actor', type: 'VARCHAR', path: '$.actor.login' },
      { name: 'repo', type: 'VARCHAR', path: '$.repo.name' },
      { name: 'commits', type: 'INTEGER', path: '$.payload.size' },
      { name: 'authors', type: 'VARCHAR[]', path: '$.payload.commits[*].author.name' },
      { name: 'org', type: 'VARCHAR', path: '$.org.login' },
      { name: 'org_picture', type: 'UUID', path: '$.org.gravatar_id', cast_failures: 'dlq' },
    ],
    filters: [{ condition: "type != 'WatchEvent'", description: 'stars are noise here' }],
  },
}

const columnsMax = 24

/** Returns a view that suits the lines: the one above for generated or GitHub events, otherwise one with a column per scalar found. */
export function viewFor(lines: readonly string[], isGenerated: boolean): DemoView {
  if (isGenerated) return generated
  const records = lines.map(parseJson).filter((record) => isObject(record))
  if (records.some((record) => 'actor' in record && 'repo' in record && 'created_at' in record)) return github
  const found = new Map<string, Column['type']>()
  for (const record of records) collect(record, [], found)
  const columns = [...found].slice(0, columnsMax).map(([key, type]): Column => {
    const path = JSON.parse(key) as readonly string[]
    return { name: path.join('_').slice(0, 200), type, path: `$${path.map((part) => `.${JSON.stringify(part)}`).join('')}` }
  })
  const unique = columns.filter(
    ({ name }, index) => columns.findIndex((other) => other.name.toLowerCase() === name.toLowerCase()) === index,
  )
  return {
    name: 'records',
    definition: { columns: unique.length > 0 ? unique : [{ name: 'record', type: 'JSON', path: '$' }] },
  }
}

function collect(record: Readonly<Record<string, unknown>>, parents: readonly string[], found: Map<string, string>): void {
  for (const [key, value] of Object.entries(record)) {
    const path = [...parents, key]
    if (isObject(value)) {
      if (path.length < 3) collect(value, path, found)
      continue
    }
    if (value === null || Array.isArray(value)) continue
    const name = JSON.stringify(path)
    const type = typeOf(value)
    const known = found.get(name)
    found.set(name, known === undefined || known === type ? type : widen(known, type))
  }
}

function typeOf(value: unknown): string {
  if (typeof value === 'boolean') return 'BOOLEAN'
  if (typeof value === 'number') return Number.isInteger(value) ? 'BIGINT' : 'DOUBLE'
  return typeof value === 'string' && /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d/.test(value) ? 'TIMESTAMP' : 'VARCHAR'
}

function widen(a: string, b: string): string {
  return [a, b].every((type) => type === 'BIGINT' || type === 'DOUBLE') ? 'DOUBLE' : 'VARCHAR'
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
