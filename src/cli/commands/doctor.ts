import { command } from './command.ts'
import { json, optional } from './parameters.ts'

export const doctorCommand = command(
  'check this machine, its installation and the connection, and say what to do',
  async () => (await import('../doctor/command.ts')).examine,
  {
    flags: {
      json,
      store: optional('try this copy store alone, such as s3://copies/inlet, with the other settings of INLET_COPY_…', 'URL'),
    },
  },
  `Checks the configuration, the data directory and how fast its disk syncs, free space, limits, ports, certificates, database, nodes, destinations and segments of this machine, and the Inlet that you are signed in to. If there is a copy store, writes a few small objects into it, and removes them. Else it changes nothing. It works while Inlet runs and while it is down.

With --store it tries that store from several processes at once, with objects under names of its own, and says which features of Inlet are safe there. It takes some seconds, and minutes if the store does not answer. All that it wrote is removed, also by Ctrl-C; a bucket with versions keeps them. docs/acknowledgements.md has what it found in some stores.

Each line is ok, warn or fail, with what to do next. Exits with 1 if something fails. With --json it prints an array of { check, status, message, next_step }.`,
)
