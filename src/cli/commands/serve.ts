import { buildCommand } from '@stricli/core'
import type { CliContext } from '../context.ts'
import type { NodeFlags } from '../serve/processes.ts'

const processes = () => import('../serve/processes.ts')

/** For a node whose log was written under another id. */
const adopt = {
  flags: {
    adopt: {
      kind: 'boolean',
      default: false,
      withNegated: false,
      brief: 'continue as the node that the log in the data directory belongs to, or as a new one if no id is left',
    },
  },
} as const

export const startCommand = buildCommand<NodeFlags, [], CliContext>({
  loader: async () => (await processes()).start,
  parameters: adopt,
  docs: { brief: 'run everything on one machine: control, ingest and delivery' },
})

export const controlCommand = buildCommand<object, [], CliContext>({
  loader: async () => (await processes()).control,
  parameters: {},
  docs: { brief: 'run the management API alone' },
})

export const nodeCommand = buildCommand<NodeFlags, [], CliContext>({
  loader: async () => (await processes()).node,
  parameters: adopt,
  docs: {
    brief: 'run ingest and delivery, for a control process elsewhere',
    fullDescription:
      'Runs ingest and delivery. INLET_CONTROL_URL names the API for nodes of the control process. INLET_NODE_TOKEN is its join secret, needed until the node has registered.',
  },
})

export const ingestCommand = buildCommand<NodeFlags, [], CliContext>({
  loader: async () => (await processes()).ingest,
  parameters: adopt,
  docs: { brief: 'run the ingest process alone' },
})

export const deliveryCommand = buildCommand<NodeFlags, [], CliContext>({
  loader: async () => (await processes()).delivery,
  parameters: adopt,
  docs: { brief: 'run the delivery process alone' },
})
