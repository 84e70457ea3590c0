import { buildCommand } from '@stricli/core'
import type { CliContext } from '../context.ts'
import type { DemoFlags } from '../demo/command.ts'
import { integer } from './integer.ts'

export const demoCommand = buildCommand<DemoFlags, [], CliContext>({
  loader: async () => (await import('../demo/command.ts')).runDemo,
  parameters: {
    flags: {
      file: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'NDJSON file to send instead of generated events',
        placeholder: 'FILE',
      },
      events: {
        kind: 'parsed',
        parse: integer(1, 10_000_000),
        default: '20000',
        brief: 'number of events to generate',
        placeholder: 'N',
      },
      seed: {
        kind: 'parsed',
        parse: integer(0, 2 ** 32 - 1),
        default: '1',
        brief: 'the same seed generates the same events',
        placeholder: 'N',
      },
      keep: { kind: 'boolean', default: false, withNegated: false, brief: 'keep the data directory' },
    },
  },
  docs: {
    brief: 'start a separate server, send events and print what arrives',
    fullDescription:
      'Starts a separate server, creates a destination, an endpoint and a view over the management API, sends events over MQTT and HTTP, waits for their commit and prints what arrived.',
  },
})
