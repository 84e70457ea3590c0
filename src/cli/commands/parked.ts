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
    retry: buildCommand<{ readonly all: boolean }, [id?: string], CliContext>({
      loader: async () => (await parked()).retryParkedSegments,
      parameters: {
        flags: { all: { kind: 'boolean', default: false, withNegated: false, brief: 'every parked segment of this node' } },
        positional: { kind: 'tuple', parameters: [{ ...segment.parameters[0], optional: true }] },
      },
      docs: { brief: 'convert a segment again, or all of them; every start does so as well' },
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
