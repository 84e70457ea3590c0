import { buildCommand } from '@stricli/core'
import type { CliContext } from '../context.ts'
import type { TailFlags } from '../tail/command.ts'
import { integer } from './integer.ts'

export const tailCommand = buildCommand<TailFlags, [endpoint: string], CliContext>({
  loader: async () => (await import('../tail/command.ts')).tail,
  parameters: {
    flags: {
      lines: {
        kind: 'parsed',
        parse: integer(0, 100),
        default: '10',
        brief: 'number of the latest records to begin with',
        placeholder: 'N',
      },
      follow: { kind: 'boolean', default: true, brief: 'wait for new records' },
      contains: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'only records that have this text',
        placeholder: 'TEXT',
      },
      interval: {
        kind: 'parsed',
        parse: integer(1, 3_600),
        default: '2',
        brief: 'how often to look for new records',
        placeholder: 'SECONDS',
      },
      json: { kind: 'boolean', default: false, withNegated: false, brief: 'print each record as JSON, with where it is from' },
    },
    positional: { kind: 'tuple', parameters: [{ parse: String, brief: 'name or id of the endpoint', placeholder: 'ENDPOINT' }] },
  },
  docs: {
    brief: 'print records of an endpoint as they are delivered',
    fullDescription: `Prints the latest records of an endpoint, and then new ones until it is interrupted. A record appears once its segment is in the bucket: the endpoint decides how long that takes (segment_max_age_seconds).

Of each segment the last 100 records are shown. The endpoint needs the output format parquet.`,
  },
})
