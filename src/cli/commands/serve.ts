import { buildCommand } from '@stricli/core'
import type { CliContext } from '../context.ts'

const processes = () => import('../serve/processes.ts')

export const startCommand = buildCommand<object, [], CliContext>({
  loader: async () => (await processes()).start,
  parameters: {},
  docs: { brief: 'run everything on one machine: control, ingest and delivery' },
})

export const controlCommand = buildCommand<object, [], CliContext>({
  loader: async () => (await processes()).control,
  parameters: {},
  docs: { brief: 'run the management API alone' },
})

export const nodeCommand = buildCommand<object, [], CliContext>({
  loader: async () => (await processes()).node,
  parameters: {},
  docs: {
    brief: 'run ingest and delivery, for a control process elsewhere',
    fullDescription:
      'Runs ingest and delivery. INLET_CONTROL_URL names the control process, INLET_NODE_TOKEN is the secret that both share.',
  },
})

export const ingestCommand = buildCommand<object, [], CliContext>({
  loader: async () => (await processes()).ingest,
  parameters: {},
  docs: { brief: 'run the ingest process alone' },
})

export const deliveryCommand = buildCommand<object, [], CliContext>({
  loader: async () => (await processes()).delivery,
  parameters: {},
  docs: { brief: 'run the delivery process alone' },
})
