import { command } from './command.ts'
import { flag, oneArgument, optional, withDefault } from './parameters.ts'

const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 }

/** Parses a time, or how long ago it was: `2026-11-20`, `2026-11-20T08:15:30Z`, `90m`, `7d`. */
function parseTime(text: string): string {
  const [, amount, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const time = amount === undefined ? Date.parse(text) : Date.now() - Number(amount) * (units[unit] ?? 0) * 1000
  if (!Number.isNaN(time) && (amount !== undefined || /^\d{4}-\d\d-\d\d/.test(text))) return new Date(time).toISOString()
  throw new Error('must be a time, such as 2026-11-20T08:15:30Z, or how long ago, such as 90m or 7d')
}

function parseSize(text: string): number {
  const [, amount, unit = ''] = /^(\d+(?:\.\d+)?)(MB|GB|TB)$/i.exec(text) ?? []
  const power = ['MB', 'GB', 'TB'].indexOf(unit.toUpperCase())
  if (amount === undefined || power < 0) throw new Error('must be a size, such as 500MB or 20GB')
  return Number(amount) * 1e6 * 1000 ** power
}

export const queryCommand = command(
  'run SQL over what was delivered, on this machine',
  async () => (await import('../query/command.ts')).query,
  {
    flags: {
      since: optional('only files that were delivered since then: a time, or how long ago (90m, 7d)', 'TIME', parseTime),
      until: optional('only files that were delivered before', 'TIME', parseTime),
      endpoint: optional('only files of this endpoint, by its name or id', 'ENDPOINT'),
      fetch: withDefault('10GB', 'how much may be fetched from the bucket', 'SIZE', parseSize),
      cache: optional('directory that keeps the files for later queries; nothing is kept if not set', 'DIR'),
      json: flag('print each row as a line of JSON'),
      csv: flag('print CSV, as into a pipe'),
    },
    positional: oneArgument('one SELECT statement', 'SQL'),
  },
  `Runs a SELECT statement of DuckDB over the files of views and endpoints. They are chosen by their commits, so each row is there once, and fetched by links of the API: this machine needs no access to the bucket.

Tables are published views (orders), their versions (orders.v2), and the records of endpoints as they were received (raw."Line 1").`,
)
