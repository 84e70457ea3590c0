import { command } from './command.ts'
import { flag, integer, optional, withDefault } from './parameters.ts'

export const demoCommand = command(
  'start a separate server, send events and print what arrives',
  async () => (await import('../demo/command.ts')).runDemo,
  {
    flags: {
      file: optional('NDJSON file to send instead of generated events', 'FILE'),
      events: withDefault('20000', 'number of events to generate', 'N', integer(1, 10_000_000)),
      seed: withDefault('1', 'the same seed generates the same events', 'N', integer(0, 2 ** 32 - 1)),
      keep: flag('keep the data directory'),
    },
  },
  'Starts a separate server, creates a destination, an endpoint and a view over the management API, sends events over MQTT and HTTP, waits for their commit and prints what arrived.',
)
