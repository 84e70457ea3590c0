import { command } from './command.ts'
import { flag, optional } from './parameters.ts'

const processes = () => import('../serve/processes.ts')

/** For a node whose log was written under another id. */
const adopt = {
  flags: {
    adopt: flag('continue as the node that the log in the data directory belongs to, or as a new one if no id is left'),
  },
} as const

export const startCommand = command(
  'run everything on one machine: control, ingest and delivery',
  async () => (await processes()).start,
  adopt,
)

export const controlCommand = command('run the management API alone', async () => (await processes()).control, {})

export const nodeCommand = command(
  'run ingest and delivery, for a control process elsewhere',
  async () => (await processes()).node,
  {
    flags: {
      adopt: {
        kind: 'parsed',
        parse: String,
        optional: true,
        inferEmpty: true,
        brief: `without DIR: ${adopt.flags.adopt.brief}. With DIR: deliver what a node whose machine is gone left there, under its id, and end`,
        placeholder: 'DIR',
      },
      adoptCopy: optional('deliver what a node whose machine is gone had in the copy store, under its id, and end', 'NODE'),
      region: optional('region of this node: INLET_REGION', 'REGION'),
      control: optional('URL of the API for nodes of control: INLET_CONTROL_URL', 'URL'),
      joinToken: optional('token with which this node joins, at its first start: INLET_JOIN_TOKEN', 'TOKEN'),
      dataDir: optional('its own directory: INLET_DATA_DIR', 'DIR'),
    },
  },
  'Runs ingest and delivery. The options are the same as the environment variables beside them. `inlet join-tokens create`, where control runs, prints a join token. The node needs it until it has joined; after that it has a credential of its own.',
)

export const ingestCommand = command('run the ingest process alone', async () => (await processes()).ingest, adopt)

export const deliveryCommand = command('run the delivery process alone', async () => (await processes()).delivery, adopt)
