import { z } from 'zod'

export const NodeRegion = z.object({
  region: z.string().meta({ description: 'what an endpoint is created with to be served by these nodes' }),
})

/** The regions in which an endpoint can be served. */
export const NodeRegions = z.object({ items: z.array(NodeRegion) })
export type NodeRegions = z.infer<typeof NodeRegions>
