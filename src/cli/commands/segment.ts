import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../context.ts'
import type { JsonFlags } from '../print-json.ts'
import { json } from './json.ts'

const segment = () => import('../segments/file.ts')
const file = { kind: 'tuple', parameters: [{ parse: String, brief: 'path of a segment', placeholder: 'FILE' }] } as const

export const segmentCommands = buildRouteMap({
  routes: {
    cat: buildCommand<object, [path: string], CliContext>({
      loader: async () => (await segment()).catSegment,
      parameters: { positional: file },
      docs: { brief: 'print every record as one line of JSON' },
    }),
    check: buildCommand<JsonFlags, [path: string], CliContext>({
      loader: async () => (await segment()).checkSegment,
      parameters: { flags: { json }, positional: file },
      docs: { brief: 'verify every checksum and print a summary' },
    }),
  },
  docs: {
    brief: 'read segments of the write-ahead log',
    fullDescription:
      'Reads a segment of the write-ahead log (.wal, .open, .quarantine) or of a bucket (.wal.zst). Continues behind damage, says where it is, and exits with 1.',
  },
})
