import { buildCommand } from '@stricli/core'
import type { CliContext } from '../terminal/context.ts'
import type { JsonFlags } from '../terminal/print-json.ts'
import { json } from './parameters.ts'

export const doctorCommand = buildCommand<JsonFlags, [], CliContext>({
  loader: async () => (await import('../doctor/command.ts')).examine,
  parameters: { flags: { json } },
  docs: {
    brief: 'check this machine, its installation and the connection, and say what to do',
    fullDescription: `Checks the configuration, the data directory and how fast its disk syncs, free space, limits, ports, certificates, database, nodes, destinations and segments of this machine, and the Inlet that you are signed in to. Changes nothing, and works while Inlet runs and while it is down.

Each line is ok, warn or fail, with what to do next. Exits with 1 if something fails. With --json it prints an array of { check, status, message, next_step }.`,
  },
})
