import { buildCommand, buildRouteMap } from '@stricli/core'
import type { CliContext } from '../context.ts'

const parked = () => import('../parked.ts')
const segment = {
  kind: 'tuple',
  parameters: [{ parse: String, brief: 'id of a parked segment', placeholder: 'SEGMENT' }],
} as const

export const parkedCommands = buildRouteMap({
  routes: {
    list: buildCommand<object, [], CliContext>({
      loader: async () => (await parked()).listParkedSegments,
      parameters: {},
      docs: { brief: 'list the parked segments of this node, each with its reason' },
    }),
    retry: buildCommand<object, [id: string], CliContext>({
      loader: async () => (await parked()).retryParkedSegment,
      parameters: { positional: segment },
      docs: { brief: 'convert a segment again, for example after an upgrade' },
    }),
    skip: buildCommand<object, [id: string], CliContext>({
      loader: async () => (await parked()).skipParkedSegment,
      parameters: { positional: segment },
      docs: {
        brief: 'give up on a segment; its file is kept',
        fullDescription: 'Gives up on a segment. Its file is kept as .quarantine: `inlet segment cat FILE` prints it.',
      },
    }),
  },
  docs: {
    brief: 'handle segments that could not be converted',
    fullDescription:
      'A segment whose conversion keeps failing is parked. Later segments are delivered; its records stay on disk until you decide. A running node notices within a second.',
  },
})
