import { z } from 'zod'
import { Id } from './id.ts'
import { Sample } from './preview.ts'
import { Timestamp } from './timestamp.ts'

export const SendTestEvent = z.strictObject({
  record: Sample.optional().meta({
    description: 'one record as a client would send it; left out: a small JSON object with an `id` of its own',
    examples: ['{"type":"order","amount":12.5}'],
  }),
})
export type SendTestEvent = z.infer<typeof SendTestEvent>

/** Test event that was sent, and the receipt that ingest returned for it. */
export const TestEvent = z.object({
  url: z.string().meta({ description: 'where it was sent' }),
  record: z.string(),
  sent_at: Timestamp,
  acknowledged_after_ms: z.number().min(0).meta({ description: 'from the request to the receipt: the record is on disk' }),
  node_id: Id,
  segment_seq: z.int().min(0).meta({ description: 'with `node_id` it names the commit: see `GET /v1/endpoints/{id}/commits`' }),
})
export type TestEvent = z.infer<typeof TestEvent>
