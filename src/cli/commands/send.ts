import { type AckLevel, ackLevels } from '#model/ack-level.ts'
import { command } from './command.ts'
import { flag, integer, optional, withDefault } from './parameters.ts'

export const sendCommand = command(
  'send a file or a pipe to an endpoint',
  async () => (await import('../send/command.ts')).send,
  {
    flags: {
      parallel: withDefault('1', 'requests at the same time; with 1, records keep their order', 'N', integer(1, 64)),
      timeout: withDefault('300', 'how long a batch is attempted', 'SECONDS', integer(1, 82_800)),
      key: optional('records of the same input under the same key are stored once, also of a pipe', 'TEXT'),
      ack: optional('when records count as stored; the endpoint says it otherwise', 'disk|copied|committed', ackLevel),
      again: flag('store a file once more that was sent before'),
      json: flag('print the result as JSON'),
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, brief: 'id or name of the endpoint', placeholder: 'ENDPOINT' },
        { parse: String, optional: true, brief: 'file of NDJSON; standard input if not set, or -', placeholder: 'FILE' },
      ],
    },
  },
  `Sends lines of NDJSON to an endpoint, in batches that are repeated until they are stored.

A file that is sent again within 24 hours, for example after an interruption, is not stored again. Each run of a pipe stores its records, unless --key is given.
With --ack committed the command ends once all records are readable in the bucket, and --json prints the keys of their objects.
INLET_URL and INLET_API_KEY say where to and as whom; with INLET_INGEST_URL control is not asked for the address.`,
)

function ackLevel(text: string): AckLevel {
  const level = ackLevels.find((name) => name === text)
  if (level === undefined) throw new Error(`must be ${ackLevels.join(', ')}`)
  return level
}
