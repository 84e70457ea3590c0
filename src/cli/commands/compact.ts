import { buildCommand } from '@stricli/core'
import type { CompactFlags } from '../compact.ts'
import type { CliContext } from '../context.ts'
import { parseId } from './id.ts'
import { json } from './json.ts'

export const compactCommand = buildCommand<CompactFlags, [], CliContext>({
  loader: async () => (await import('../compact.ts')).compactEndpoint,
  parameters: {
    flags: {
      endpoint: { kind: 'parsed', parse: parseId, brief: 'id of the endpoint', placeholder: 'ID' },
      period: { kind: 'enum', values: ['hour', 'day'], default: 'day', brief: 'what becomes one file, or several large ones' },
      from: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'only segments sealed at or after this time',
        placeholder: 'TIME',
      },
      to: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'only segments sealed before this time; all closed periods if not set',
        placeholder: 'TIME',
      },
      json,
    },
  },
  docs: {
    brief: 'merge small Parquet files of an endpoint',
    fullDescription: `Merges small Parquet files of an endpoint into files of up to 256 MB, and prints the progress. Nodes do the work, so the service must run. The job goes on if you stop this command.
The merged files are in a folder of their own, compacted/. The old files stay in the bucket, unless the endpoint removes them (remove_after_hours): then programs that read whole folders miss the rows of removed files.
docs/readers.md says what readers must know.
Exits with 1 if some files could not be merged.`,
  },
})
