import { z } from 'zod'
import { Id } from './id.ts'
import { PageQuery } from './page.ts'
import { Timestamp } from './timestamp.ts'

/** `open` until every segment of it is delivered after all (`recovered`), or the owner of the endpoint accepts it (`confirmed`). */
export const LossState = z.enum(['open', 'recovered', 'confirmed'])
export type LossState = z.infer<typeof LossState>

/**
 * Why records are lost: their node was removed, its id released, its log adopted, its copies taken over, or they are only on the disk of a machine
 * that lost its place.
 */
export const LossCause = z.enum(['node_removed', 'node_released', 'node_adopted', 'node_taken_over', 'left_on_disk'])
export type LossCause = z.infer<typeof LossCause>

/** Records of one endpoint that were acknowledged, and not delivered when their node lost its place. */
export const Loss = z.object({
  id: Id,
  account_id: Id,
  endpoint_id: Id,
  endpoint_name: z.string(),
  node_id: Id,
  node_name: z.string().nullable().meta({ description: 'as it was when the node was removed; null for none' }),
  region: z.string(),
  state: LossState.meta({
    description:
      '`open`: it is a reason in the status of the endpoint; `recovered`: all of its segments were delivered after all, which cannot be known of those in quarantine, or if `first_segment_seq` is null; `confirmed`: somebody of the account, or the operator for it, accepted it',
  }),
  cause: LossCause.meta({
    description:
      '`node_removed`, `node_released`, `node_adopted`: what the node had last reported then, also if another machine adopted its log, until that has delivered it; `node_taken_over`: the same, of a node that is lost, whose copies another node delivers: what had one copy is on its disk alone; `left_on_disk`: another machine has its place, and the records are only on the disk of the one before, which said so',
  }),
  first_segment_seq: z.int().min(0).nullable().meta({
    description:
      'receipts with `node_id` and this `segment_seq` or a higher one are concerned; null if the node did not say: then only `confirmed` ends the loss',
  }),
  last_segment_seq: z
    .int()
    .min(0)
    .nullable()
    .meta({ description: 'the last segment that the node reported; null if it did not say' }),
  summary: z.string().meta({
    description: 'what is lost, as of when, and what comes on top: a sentence for people',
    examples: [
      'up to 285 acknowledged records, as of 2026-11-20T08:12:04.000Z, and what was acknowledged later',
      'any record acknowledged after 2026-11-20T08:12:04.000Z (none was known to wait then)',
    ],
  }),
  segments: z
    .int()
    .min(0)
    .meta({ description: 'by the reports of the node, without those that were delivered before it lost its place' }),
  records: z.int().min(0).nullable().meta({
    description:
      'at most so many were lost of what was acknowledged by `reported_at`; null if the node had not counted them. What it acknowledged later is lost as well, and is not counted',
  }),
  bytes: z.int().min(0).meta({ description: 'size of these segments on the disk of the node, at most' }),
  reported_at: Timestamp.meta({
    description:
      'as of when the counts are, by the last report of the node: all that it acknowledged before is in them, or delivered. A heartbeat may be later',
  }),
  recorded_at: Timestamp.meta({
    description: 'when the node was last removed, its id released or its log adopted, or its disk first reported',
  }),
  is_node_back: z.boolean().meta({
    description:
      'whether the machine joined again, or its disk was adopted, or another node is at its copies: it delivers what it still has. Another machine under its id does not',
  }),
  searched_at: Timestamp.nullable().meta({
    description:
      'when control had looked for its segments in the bucket; null: not yet since it was recorded, or became more, so they may be there',
  }),
  search_problem: z.string().nullable().meta({
    description:
      'what the search left in doubt, with the next step: segments may be there; null for nothing. Control tries again while `searched_at` is null, once a destination of the account changes, and after `inlet commits rebuild`',
  }),
  recovered: z
    .object({ segments: z.int().min(0), records: z.int().min(0), bytes: z.int().min(0) })
    .meta({ description: 'delivered since the node was removed' }),
  recovered_at: Timestamp.nullable().meta({ description: 'when the last segment of it was delivered' }),
  confirmed_at: Timestamp.nullable(),
  confirmed_by: z
    .string()
    .nullable()
    .meta({
      description: '`key:<id>` or `person:<id>` of the account; `operator` or `cli`: the operator',
      examples: ['key:4f8c1f0e-6a53-4c0e-9d3b-0000000000e1'],
    }),
})
export type Loss = z.infer<typeof Loss>

export const LossesQuery = PageQuery.extend({
  state: LossState.optional().meta({ description: 'only losses in this state' }),
  endpoint_id: Id.optional().meta({ description: 'only losses of this endpoint' }),
})
export type LossesQuery = z.infer<typeof LossesQuery>

export const InstallationLossesQuery = LossesQuery.extend({
  account_id: Id.optional().meta({ description: 'only losses of this account' }),
})
export type InstallationLossesQuery = z.infer<typeof InstallationLossesQuery>
