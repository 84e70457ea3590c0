import { z } from 'zod'
import { Id } from './id.ts'
import { Timestamp } from './timestamp.ts'

/** Names the segment of a receipt. Opaque, so that a request for anything else is 404. */
export const ReceiptId = z
  .string()
  .regex(/^[\w-]{1,200}$/)
  .meta({
    description: '`<node_id>-<segment_seq>` of the response of ingest',
    examples: ['4f8c1f0e-6a53-4c0e-9d3b-0000000000f1-42'],
  })

const receiptIdPattern = /^([0-9a-f-]{36})-(\d{1,15})$/i

/** Returns undefined for what is no receipt. */
export function parseReceiptId(id: string): { readonly node_id: string; readonly segment_seq: number } | undefined {
  const [, node_id, seq] = receiptIdPattern.exec(id) ?? []
  if (node_id === undefined || !Id.safeParse(node_id).success) return undefined
  return { node_id: node_id.toLowerCase(), segment_seq: Number(seq) }
}

export const ReceiptState = z.enum(['delivered', 'waiting', 'lost'])
export type ReceiptState = z.infer<typeof ReceiptState>

/** Fate of the records that ingest acknowledged with a receipt. */
export const ReceiptOutcome = z.object({
  node_id: Id,
  segment_seq: z.int().min(0),
  state: ReceiptState.meta({
    description:
      '`delivered`: in the bucket; `waiting`: on the disk of the node, as far as control knows, or in its quarantine, where an operator has to act; `lost`: the node was removed, or the segment discarded, before it was delivered',
  }),
  reason: z.string().nullable().meta({ description: 'why they are not delivered, or not all; null if all are' }),
  commit_id: z.string().nullable().meta({ description: 'of the segment; null until it is delivered' }),
  delivered_at: Timestamp.nullable(),
  keys: z.array(z.string()).meta({ description: 'objects in the bucket that have its records, merged ones included' }),
  loss_id: Id.nullable().meta({ description: 'the loss that includes the segment; see `GET /v1/losses`' }),
})
export type ReceiptOutcome = z.infer<typeof ReceiptOutcome>
