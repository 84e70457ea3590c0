import { command } from './command.ts'
import { flag, integer, oneArgument, optional, withDefault } from './parameters.ts'

export const tailCommand = command(
  'print records of an endpoint as they are delivered',
  async () => (await import('../tail/command.ts')).tail,
  {
    flags: {
      lines: withDefault('10', 'number of the latest records to begin with', 'N', integer(0, 100)),
      follow: { kind: 'boolean', default: true, brief: 'wait for new records' },
      contains: optional('only records that have this text', 'TEXT'),
      interval: withDefault('2', 'how often to look for new records', 'SECONDS', integer(1, 3_600)),
      json: flag('print each record as JSON, with where it is from'),
    },
    positional: oneArgument('name or id of the endpoint', 'ENDPOINT'),
  },
  `Prints the latest records of an endpoint, and then new ones until it is interrupted. A record appears once its segment is in the bucket: the endpoint decides how long that takes (segment_max_age_seconds).

Of each segment the last 100 records are shown. The endpoint needs the output format parquet.`,
)
