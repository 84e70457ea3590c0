import { z } from 'zod'
import { countNoun } from '#lib/count-noun.ts'
import { namedId } from '#lib/named-id.ts'
import { Id } from './id.ts'
import { nodeLimits } from './limits.ts'
import { Timestamp } from './timestamp.ts'

/** Nodes that a revocation lists by themselves. */
export const waitingNodesMax = 20

/** How far the revocation of a key got. */
export const Revocation = z.object({
  summary: z.string().meta({
    description: 'in words',
    examples: ['applied on 2 of 3 nodes; node fra-1 (4f8c1f0e-6a53-4c0e-9d3b-0000000000f1) has been out of reach for 40 s'],
  }),
  applied_nodes: z.int().min(0).meta({ description: 'nodes that refuse the key, as they reported' }),
  nodes: z.int().min(0).meta({ description: 'nodes that know keys of the account' }),
  applied_at: Timestamp.nullable().meta({ description: 'when the last node had applied it; null until then' }),
  waiting: z
    .array(
      z.object({
        node_id: Id,
        node_name: z.string().nullable(),
        region: z.string(),
        out_of_reach_seconds: z.int().min(0).nullable().meta({ description: 'null for a node that sends heartbeats' }),
      }),
    )
    .meta({ description: `nodes that may still accept the key; at most ${waitingNodesMax}` }),
})
export type Revocation = z.infer<typeof Revocation>

/** Node that knows keys of the account, as its ingest last reported. Times are epoch ms. */
export type KeyHolder = {
  readonly node_id: string
  readonly node_name: string | null
  readonly region: string
  readonly applied_epoch: number
  /** Null before the first heartbeat. */
  readonly last_seen_at: number | null
}

/** Describes a revocation that was made in an epoch, among the nodes that know the key. */
export function describeRevocation(epoch: number, holders: readonly KeyHolder[], nowMs: number): Revocation {
  const late = holders.filter(({ applied_epoch }) => applied_epoch < epoch)
  const waiting = late.slice(0, waitingNodesMax).map(({ node_id, node_name, region, last_seen_at }) => {
    const seconds = last_seen_at === null ? null : Math.max(0, Math.floor((nowMs - last_seen_at) / 1000))
    const isSilent = seconds !== null && seconds > nodeLimits.healthySeconds
    return { node_id, node_name, region, out_of_reach_seconds: isSilent ? seconds : null }
  })
  const applied_nodes = holders.length - late.length
  const parts = waiting.map(({ node_id, node_name, out_of_reach_seconds: seconds }) => {
    const state = seconds === null ? 'has not applied it yet' : `has been out of reach for ${seconds} s`
    return `node ${namedId(node_id, node_name)} ${state}`
  })
  if (late.length > waiting.length) parts.push(`${countNoun(late.length - waiting.length, 'more node')} may still accept the key`)
  const summary = [`applied on ${applied_nodes} of ${countNoun(holders.length, 'node')}`, ...parts].join('; ')
  return { summary, applied_nodes, nodes: holders.length, applied_at: null, waiting }
}
