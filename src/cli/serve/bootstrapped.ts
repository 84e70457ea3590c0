import { z } from 'zod'

/** The message that control sends to its supervisor after it created the first account. */
export const Bootstrapped = z.object({
  type: z.literal('bootstrapped'),
  /** Null if the operator provided the key. */
  api_key: z.string().nullable(),
  endpoint_id: z.string(),
})
export type Bootstrapped = z.infer<typeof Bootstrapped>
